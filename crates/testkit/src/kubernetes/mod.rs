//! A Kubernetes cluster without nodes, for tests: an API server that behaves as the real one was
//! seen to, the controllers of agent-sandbox, a garbage collector, and a kubelet whose pods are
//! processes of this machine, or nothing at all.
//!
//! ```text
//! code under test ── HTTP ── API server ── store ── controllers
//!                               └─ HTTP ── kubelet ── pods at 127.1.x.y
//!
//! code under test ── HTTP ── proxy ── kube-apiserver ── etcd          a `Plane`, one namespace for each cluster
//!                            kubelet ─────┴── controllers
//! ```

mod api;
mod controller;
mod fault;
mod kubelet;
mod listener;
mod objects;
mod plane;
mod proxy;
mod schema;
mod status;
mod store;

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

use api::ApiServer;
use fault::Faults;
use kubelet::Kubelet;
use objects::{ApiNamespace, Objects};
use store::Store;

use crate::wait::block_until;

pub use fault::{Fault, FaultKind};
pub use kubelet::{PodProcess, PodRequest, PodRunner, PretendedPods, ServePods};
pub use plane::Plane;

/// Token of an administrator.
pub const ADMIN: &str = "admin-token";
/// Token of a user without rights.
pub const NOBODY: &str = "dev-token";
/// Token of a user who may do what [`TestCluster::grant`] permits.
pub const GATEWAY: &str = "gateway-token";
/// Namespace of everything in a fake cluster.
const NAMESPACE: &str = "cellblock-test";
/// Names the connection of a [`Plane`] in which [`TestCluster::start`] makes clusters, instead of fake ones.
pub const PLANE: &str = "CELLBLOCK_TEST_PLANE";

/// A cluster. Dropping it ends it, with its pods.
#[derive(Debug)]
pub struct TestCluster {
    objects: Objects,
    faults: Arc<Faults>,
    address: SocketAddr,
    serving: watch::Sender<bool>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    folder: PathBuf,
}

#[expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]
impl TestCluster {
    /// Starts a cluster whose pods are what `runner` makes of them: a fake one, unless [`PLANE`]
    /// names a real one. It runs in threads of its own, so that a blocked test does not stop it.
    pub fn start(runner: impl PodRunner) -> Self {
        match std::env::var_os(PLANE) {
            Some(connection) => Self::in_plane(Path::new(&connection), runner),
            None => Self::run(runner, fake),
        }
    }

    /// Starts a cluster that is a namespace of a [`Plane`].
    pub fn in_plane(connection: &Path, runner: impl PodRunner) -> Self {
        let connection = connection.to_owned();
        Self::run(runner, async move |runner, faults, serving| {
            real(&connection, runner, faults, serving).await
        })
    }

    fn run<R: PodRunner, F: Future<Output = (Objects, SocketAddr)>>(
        runner: R,
        make: impl FnOnce(Arc<dyn PodRunner>, Arc<Faults>, watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Self {
        let faults = Arc::new(Faults::default());
        let (serving, is_serving) = watch::channel(true);
        let (end, ended) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let of_faults = Arc::clone(&faults);
        let thread = thread::spawn(move || {
            let runtime = Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                tell.send(make(Arc::new(runner), of_faults, is_serving).await)
                    .unwrap();
                let _ = ended.await;
            });
            runtime.shutdown_background();
        });
        let (objects, address) = told.recv().unwrap();
        let folder = std::env::temp_dir().join(format!("cellblock-cluster-{}", address.port()));
        std::fs::create_dir_all(&folder).unwrap();
        Self {
            objects,
            faults,
            address,
            serving,
            end: Some(end),
            thread: Some(thread),
            folder,
        }
    }

    /// Returns the namespace of everything.
    pub fn namespace(&self) -> &str {
        match &self.objects {
            Objects::Stored(_) => NAMESPACE,
            Objects::Served(served) => &served.namespace,
        }
    }

    /// Permits the user of [`GATEWAY`] exactly these verbs: API group, resource, verb. Until then,
    /// a fake cluster permits everything.
    pub fn grant(&self, rules: &[(&str, &str, &str)]) {
        match &self.objects {
            Objects::Stored(_) => self.faults.grant(rules),
            Objects::Served(served) => served.grant(rules),
        }
    }

    /// Writes a kubeconfig for the user of a token.
    pub fn kubeconfig(&self, token: &str) -> PathBuf {
        let path = self.folder.join(token);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test",
                "namespace": self.namespace()}}],
        });
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// Creates a template with these annotations for its pods, and a warm pool of it with the same name.
    pub fn create_pool(&self, name: &str, replicas: u32, annotations: &Value) {
        self.create_template(name, annotations);
        let pool = json!({
            "metadata": {"name": name},
            "spec": {"replicas": replicas, "sandboxTemplateRef": {"name": name}},
        });
        self.create("sandboxwarmpools", pool);
    }

    /// Creates a template with these annotations for its pods.
    pub fn create_template(&self, name: &str, annotations: &Value) {
        let template = json!({
            "metadata": {"name": name},
            "spec": {
                "networkPolicy": {"egress": []},
                "podTemplate": {
                    "metadata": {"annotations": annotations},
                    "spec": {
                        "automountServiceAccountToken": false,
                        "containers": [{"name": "cellblock", "image": "cellblock:core"}],
                    },
                },
            },
        });
        self.create("sandboxtemplates", template);
    }

    /// Creates an object as another client would.
    pub fn create(&self, plural: &str, object: Value) {
        self.objects.create(plural, object);
    }

    /// Deletes an object, and creates another one that is equal except for its UID.
    pub fn replace(&self, plural: &str, name: &str) {
        let removed = self.objects.remove(plural, name);
        self.objects.create(plural, removed);
    }

    /// Returns all objects of a resource, named in the plural.
    pub fn all(&self, plural: &str) -> Vec<Value> {
        self.objects.list(plural)
    }

    /// Returns how many objects of a resource there are.
    pub fn count(&self, plural: &str) -> usize {
        self.all(plural).len()
    }

    /// Returns the numbers of claims, sandboxes and pods.
    pub fn counts(&self) -> (usize, usize, usize) {
        (
            self.count("sandboxclaims"),
            self.count("sandboxes"),
            self.count("pods"),
        )
    }

    /// Changes an object as another client would, by a merge patch.
    pub fn patch(&self, plural: &str, name: &str, patch: &Value) {
        self.objects.patch(plural, name, patch);
    }

    /// Deletes an object as another client would.
    pub fn delete(&self, plural: &str, name: &str) {
        self.objects.remove(plural, name);
    }

    /// Returns how many requests with this method there were for a resource.
    pub fn requests(&self, method: &str, plural: &str) -> usize {
        self.faults.requests(method, plural)
    }

    /// Breaks requests that match, until the fault is used up.
    pub fn inject(&self, fault: Fault) {
        self.faults.add(fault);
    }

    /// Forgets events, as etcd does when it is compacted: watches from older versions are answered
    /// with 410. Only a fake cluster can do it without a restart.
    pub fn compact(&self) {
        let Objects::Stored(store) = &self.objects else {
            panic!("a real API server keeps events in its memory: compact its `Plane`, and restart it");
        };
        store.compact();
    }

    /// Serves only `v1alpha1` from now on, as releases of agent-sandbox before 0.5 did.
    pub fn serve_old_version(&self) {
        self.faults.serve_old_version();
    }

    /// Cuts all connections and accepts none, as a killed API server.
    pub fn stop_api(&self) {
        self.serving.send_replace(false);
        block_until("the API server refuses connections", || {
            TcpStream::connect(self.address).is_err()
        });
    }

    /// Accepts connections again, on the same port.
    pub fn start_api(&self) {
        self.serving.send_replace(true);
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all::<&Path>(&self.folder);
    }
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
async fn fake(
    runner: Arc<dyn PodRunner>,
    faults: Arc<Faults>,
    serving: watch::Receiver<bool>,
) -> (Objects, SocketAddr) {
    let store = Arc::new(Store::default());
    let server = ApiServer::new(Arc::clone(&store), faults);
    let address = listener::serve(server.router(), serving).await;
    tokio::spawn(controller::run(Arc::clone(&store)));
    let mut config = Config::new(format!("http://{address}").parse().unwrap());
    config.auth_info.token = Some(ADMIN.to_owned().into());
    Kubelet::start(Client::try_from(config).unwrap(), NAMESPACE.to_owned(), runner);
    (Objects::Stored(store), address)
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
async fn real(
    connection: &Path,
    runner: Arc<dyn PodRunner>,
    faults: Arc<Faults>,
    serving: watch::Receiver<bool>,
) -> (Objects, SocketAddr) {
    let mut config = plane::configuration(connection).await;
    let client = Client::try_from(config.clone()).unwrap();
    config.auth_info = kube::config::AuthInfo::default();
    let anonymous = Client::try_from(config).unwrap();
    let address = listener::serve(proxy::router(anonymous, faults), serving).await;
    // The port is nobody else's while the proxy listens.
    let namespace = format!("{NAMESPACE}-{}-{}", std::process::id(), address.port());
    let served = ApiNamespace {
        runtime: Handle::current(),
        client: client.clone(),
        namespace: namespace.clone(),
    };
    served.create_namespace().await;
    Kubelet::start(client, namespace, runner);
    (Objects::Served(served), address)
}
