//! A Kubernetes cluster without nodes, for tests: an API server that behaves as the real one was seen to, the controllers of
//! agent-sandbox, a garbage collector, and a kubelet whose pods are processes of this machine, or nothing at all.
//!
//! ```text
//! code under test ── HTTP ── API server ── store ── controllers
//!                               └─ HTTP ── kubelet ── pods at 127.1.x.y
//! ```

mod api;
mod controller;
mod fault;
mod kubelet;
mod schema;
mod status;
mod store;

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use api::ApiServer;
use fault::Faults;
use kubelet::Kubelet;
use store::Store;

use crate::wait::block_until;

pub use fault::{Fault, FaultKind};
pub use kubelet::{PodProcess, PodRequest, PodRunner, PretendedPods, ServePods};

/// Token of an administrator.
pub const ADMIN: &str = "admin-token";
/// Token of a user without rights.
pub const NOBODY: &str = "dev-token";
/// Namespace of everything.
pub const NAMESPACE: &str = "cellblock-test";

/// A cluster. Dropping it ends it, with its pods.
#[derive(Debug)]
pub struct FakeCluster {
    store: Arc<Store>,
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
impl FakeCluster {
    /// Starts a cluster whose pods are what `runner` makes of them. It runs in threads of its own, so that a blocked test does
    /// not stop it.
    pub fn start(runner: impl PodRunner) -> Self {
        let store = Arc::new(Store::default());
        let faults = Arc::new(Faults::default());
        let (serving, is_serving) = watch::channel(true);
        let (end, ended) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        let (of_store, of_faults) = (Arc::clone(&store), Arc::clone(&faults));
        let thread = thread::spawn(move || {
            let runtime = Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let server = ApiServer::new(Arc::clone(&of_store), of_faults);
                let address = server.serve(is_serving).await;
                tokio::spawn(controller::run(Arc::clone(&of_store)));
                Kubelet::start(address, Arc::new(runner));
                tell.send(address).unwrap();
                let _ = ended.await;
            });
            runtime.shutdown_background();
        });
        let address = told.recv().unwrap();
        let folder = std::env::temp_dir().join(format!("cellblock-cluster-{}", address.port()));
        std::fs::create_dir_all(&folder).unwrap();
        Self {
            store,
            faults,
            address,
            serving,
            end: Some(end),
            thread: Some(thread),
            folder,
        }
    }

    /// Writes a kubeconfig for the user of a token.
    pub fn kubeconfig(&self, token: &str) -> PathBuf {
        let path = self.folder.join(token);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": NAMESPACE}}],
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
        self.store.create("sandboxwarmpools", NAMESPACE, pool).unwrap();
    }

    /// Creates a template with these annotations for its pods.
    pub fn create_template(&self, name: &str, annotations: &Value) {
        let template = json!({
            "metadata": {"name": name},
            "spec": {
                "networkPolicy": {"egress": []},
                "podTemplate": {
                    "metadata": {"annotations": annotations},
                    "spec": {"automountServiceAccountToken": false, "containers": []},
                },
            },
        });
        self.store
            .create("sandboxtemplates", NAMESPACE, template)
            .unwrap();
    }

    /// Creates an object as another client would.
    pub fn create(&self, plural: &str, object: Value) {
        self.store.create(plural, NAMESPACE, object).unwrap();
    }

    /// Deletes an object, and creates another one that is equal except for its UID.
    pub fn replace(&self, plural: &str, name: &str) {
        let removed = self.store.remove(plural, NAMESPACE, name).unwrap();
        self.store.create(plural, NAMESPACE, removed).unwrap();
    }

    /// Returns all objects of a resource, named in the plural.
    pub fn all(&self, plural: &str) -> Vec<Value> {
        self.store.list(plural)
    }

    /// Returns how many objects of a resource there are.
    pub fn count(&self, plural: &str) -> usize {
        self.store.count(plural)
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
        self.store
            .update(plural, NAMESPACE, name, |object| store::merge(object, patch))
            .unwrap();
    }

    /// Deletes an object as another client would.
    pub fn delete(&self, plural: &str, name: &str) {
        self.store.remove(plural, NAMESPACE, name).unwrap();
    }

    /// Returns how many requests with this method there were for a resource.
    pub fn requests(&self, method: &str, plural: &str) -> usize {
        self.faults.requests(method, plural)
    }

    /// Breaks requests that match, until the fault is used up.
    pub fn inject(&self, fault: Fault) {
        self.faults.add(fault);
    }

    /// Forgets events, as etcd does when it is compacted: watches from older versions are answered with 410.
    pub fn compact(&self) {
        self.store.compact();
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

impl Drop for FakeCluster {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all::<&Path>(&self.folder);
    }
}
