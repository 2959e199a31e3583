//! The objects of a cluster, as its administrator sees them: those of a fake one, or of a namespace
//! of a real one.

use std::fmt;
use std::sync::{Arc, mpsc};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::NAMESPACE;
use super::status::Resource;
use super::store::{Store, merge};

/// The objects of a cluster.
#[derive(Debug)]
pub(super) enum Objects {
    /// Of the fake API server.
    Stored(Arc<Store>),
    /// Of a real API server.
    Served(ApiNamespace),
}

/// A namespace of a real API server.
pub(super) struct ApiNamespace {
    pub(super) runtime: Handle,
    pub(super) client: Client,
    pub(super) namespace: String,
}

impl fmt::Debug for ApiNamespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Served");
        shown.field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
impl Objects {
    pub(super) fn create(&self, plural: &str, object: Value) {
        match self {
            Self::Stored(store) => drop(store.create(plural, NAMESPACE, object).unwrap()),
            Self::Served(served) => served.create(plural, object),
        }
    }

    pub(super) fn list(&self, plural: &str) -> Vec<Value> {
        match self {
            Self::Stored(store) => store.list(plural),
            Self::Served(served) => served.list(plural),
        }
    }

    pub(super) fn patch(&self, plural: &str, name: &str, patch: &Value) {
        match self {
            Self::Stored(store) => {
                let change = |object: &mut Value| merge(object, patch);
                store.update(plural, NAMESPACE, name, change).unwrap();
            }
            Self::Served(served) => served.patch(plural, name, patch),
        }
    }

    /// Deletes an object, and returns it.
    pub(super) fn remove(&self, plural: &str, name: &str) -> Value {
        match self {
            Self::Stored(store) => store.remove(plural, NAMESPACE, name).unwrap(),
            Self::Served(served) => served.remove(plural, name),
        }
    }
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
impl ApiNamespace {
    fn create(&self, plural: &str, mut object: Value) {
        let resource = Resource::of(plural).unwrap();
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let api = self.api(plural);
        self.wait(async move { api.create(&PostParams::default(), &object).await })
            .unwrap();
    }

    fn list(&self, plural: &str) -> Vec<Value> {
        let api = self.api(plural);
        let found = self.wait(async move { api.list(&ListParams::default()).await });
        let objects = found.unwrap().items.into_iter();
        objects.map(|it| serde_json::to_value(it).unwrap()).collect()
    }

    fn patch(&self, plural: &str, name: &str, patch: &Value) {
        let (api, name, patch) = (self.api(plural), name.to_owned(), patch.clone());
        self.wait(async move {
            let params = PatchParams::default();
            match patch.get("status") {
                Some(_) => api.patch_status(&name, &params, &Patch::Merge(&patch)).await,
                None => api.patch(&name, &params, &Patch::Merge(&patch)).await,
            }
        })
        .unwrap();
    }

    fn remove(&self, plural: &str, name: &str) -> Value {
        let (api, name) = (self.api(plural), name.to_owned());
        let removed = self.wait(async move {
            let found = api.get(&name).await?;
            api.delete(&name, &DeleteParams::default()).await?;
            Ok::<_, kube::Error>(found)
        });
        let mut object = serde_json::to_value(removed.unwrap()).unwrap();
        for key in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            object["metadata"].as_object_mut().unwrap().remove(key);
        }
        object
    }

    pub(super) async fn create_namespace(&self) {
        let namespace = json!({"metadata": {"name": self.namespace}});
        let namespace: Namespace = serde_json::from_value(namespace).unwrap();
        let api = Api::all(self.client.clone());
        api.create(&PostParams::default(), &namespace).await.unwrap();
    }

    /// Permits the user `gateway` these verbs, by API group and resource.
    pub(super) fn grant(&self, rules: &[(&str, &str, &str)]) {
        let rules: Vec<Value> = rules
            .iter()
            .map(|(group, resource, verb)| {
                json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]})
            })
            .collect();
        let role = json!({"metadata": {"name": "gateway"}, "rules": rules});
        let binding = json!({
            "metadata": {"name": "gateway"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "gateway"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "gateway"}],
        });
        let role: Role = serde_json::from_value(role).unwrap();
        let binding: RoleBinding = serde_json::from_value(binding).unwrap();
        let of_roles: Api<Role> = Api::namespaced(self.client.clone(), &self.namespace);
        let of_bindings: Api<RoleBinding> = Api::namespaced(self.client.clone(), &self.namespace);
        self.wait(async move {
            // What was permitted before is replaced.
            let params = PatchParams::apply("cellblock-test").force();
            of_roles.patch("gateway", &params, &Patch::Apply(&role)).await?;
            of_bindings
                .patch("gateway", &params, &Patch::Apply(&binding))
                .await
        })
        .unwrap();
    }

    fn api(&self, plural: &str) -> Api<DynamicObject> {
        let resource = Resource::of(plural).unwrap();
        let version = resource.api_version();
        let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
        let kind = GroupVersionKind::gvk(group, version, resource.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Waits for a request, which is made in another thread's runtime: tests ask from their own.
    fn wait<T: Send + 'static>(&self, request: impl Future<Output = T> + Send + 'static) -> T {
        let (tell, told) = mpsc::channel();
        self.runtime.spawn(async move {
            let _ = tell.send(request.await);
        });
        told.recv().unwrap()
    }
}
