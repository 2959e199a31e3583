//! A kubelet: pods are bound to it, started, watched, and ended. It only knows the API, so that it
//! serves any API server.
//!
//! Annotations of a pod make it misbehave: `fake.cellblock.dev/start-after-ms`,
//! `fake.cellblock.dev/never-ready`, `fake.cellblock.dev/fail-after-ms`,
//! `fake.cellblock.dev/move-after-ms` (another address).

use std::collections::{HashMap, HashSet};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::bare_image;
use crate::places::{binary, home};

/// Interval between two checks of whether a starting process is ready, or a running one has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum time of a readiness probe.
const PROBE: Duration = Duration::from_millis(200);
/// Prefix of the annotations.
const FAULTS: &str = "fake.cellblock.dev/";

/// A pod to start.
#[derive(Clone, Debug)]
pub struct PodRequest {
    /// Its name.
    pub name: String,
    /// Its address.
    pub ip: IpAddr,
    /// Its annotations.
    pub annotations: HashMap<String, String>,
}

/// Process of a pod on this machine. Dropping it ends the pod.
pub trait PodProcess: Send {
    /// Returns whether its server accepts connections.
    fn is_ready(&mut self) -> bool;

    /// Returns how it ended, if it has.
    fn ended(&mut self) -> Option<String>;
}

/// Starts pods.
pub trait PodRunner: Send + Sync + 'static {
    /// Starts one.
    fn start(&self, pod: &PodRequest) -> io::Result<Box<dyn PodProcess>>;
}

/// Pods without a process: ready at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct PretendedPods;

impl PodProcess for PretendedPods {
    fn is_ready(&mut self) -> bool {
        true
    }

    fn ended(&mut self) -> Option<String> {
        None
    }
}

impl PodRunner for PretendedPods {
    fn start(&self, _: &PodRequest) -> io::Result<Box<dyn PodProcess>> {
        Ok(Box::new(Self))
    }
}

/// Pods that are processes `cellblock serve` with this configuration.
#[derive(Clone, Debug)]
pub struct ServePods {
    /// Configuration, in YAML.
    pub config: String,
    /// Arguments after `serve`.
    pub args: Vec<String>,
    /// Port that each listens on, at its own address.
    pub port: u16,
}

struct ServeProcess {
    child: Child,
    address: SocketAddr,
    folder: std::path::PathBuf,
}

impl PodRunner for ServePods {
    fn start(&self, pod: &PodRequest) -> io::Result<Box<dyn PodProcess>> {
        let address = SocketAddr::new(pod.ip, self.port);
        let folder = std::env::temp_dir().join(format!("cellblock-pod-{}", pod.ip));
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("cellblock.yaml"), &self.config)?;
        let child = Command::new(binary().map_err(io::Error::other)?)
            .args(["serve", "--listen", &address.to_string()])
            .args(&self.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("CELLBLOCK_HOME", home().map_err(io::Error::other)?)
            .env("CELLBLOCK_IMAGE", bare_image().map_err(io::Error::other)?)
            .env("CELLBLOCK_SERVE__STATE", folder.join("state"))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Box::new(ServeProcess {
            child,
            address,
            folder,
        }))
    }
}

impl PodProcess for ServeProcess {
    fn is_ready(&mut self) -> bool {
        let asked = || {
            let mut stream = TcpStream::connect_timeout(&self.address, LOOK)?;
            stream.set_read_timeout(Some(PROBE))?;
            write!(stream, "GET /readyz HTTP/1.0\r\nhost: {}\r\n\r\n", self.address)?;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer)?;
            io::Result::Ok(answer)
        };
        asked().is_ok_and(|answer| answer.ends_with(b" 200"))
    }

    fn ended(&mut self) -> Option<String> {
        let ended = self.child.try_wait().ok().flatten();
        ended.map(|status| format!("the server ended: {status}"))
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(super) struct Kubelet;

impl Kubelet {
    /// Runs the pods of a namespace until the runtime ends.
    pub(super) fn start(client: Client, namespace: String, runner: Arc<dyn PodRunner>) {
        tokio::spawn(async move {
            let mut running = HashMap::new();
            loop {
                // The API server may be gone; pods go on.
                let _ = run(&client, &namespace, &runner, &mut running).await;
                sleep(LOOK).await;
            }
        });
    }
}

static ADDRESSES: AtomicU16 = AtomicU16::new(0);

type RunningPods = HashMap<String, watch::Sender<bool>>;

async fn run(
    client: &Client,
    namespace: &str,
    runner: &Arc<dyn PodRunner>,
    running: &mut RunningPods,
) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let existing = pods.list(&ListParams::default()).await?;
    let names: HashSet<String> = existing.iter().map(ResourceExt::name_any).collect();
    running.retain(|name, _| names.contains(name));
    let mut events = pods.watch(&WatchParams::default(), "0").await?.boxed();
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                let deleted = pod.metadata.deletion_timestamp.is_some();
                if let Some(end) = running.get(&pod.name_any()) {
                    end.send_if_modified(|ending| std::mem::replace(ending, deleted) != deleted);
                } else {
                    let (end, ending) = watch::channel(deleted);
                    running.insert(pod.name_any(), end);
                    let life = live(client.clone(), pods.clone(), pod, Arc::clone(runner), ending);
                    tokio::spawn(life);
                }
            }
            WatchEvent::Deleted(pod) => drop(running.remove(&pod.name_any())),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => break,
        }
    }
    Ok(())
}

async fn live(
    client: Client,
    pods: Api<Pod>,
    pod: Pod,
    runner: Arc<dyn PodRunner>,
    mut ending: watch::Receiver<bool>,
) {
    let name = pod.name_any();
    let life = async {
        if pod.spec.as_ref().is_none_or(|it| it.node_name.is_none()) {
            bind(&client, pod.namespace().unwrap_or_default(), &name).await;
        }
        let annotations: HashMap<String, String> = pod.annotations().clone().into_iter().collect();
        run_pod(&pods, &name, annotations, runner).await;
    };
    tokio::select! {
        () = life => {}
        // It was deleted while nobody watched.
        ended = ending.wait_for(|ending| *ending) => if ended.is_err() { return },
    }
    let params = DeleteParams::default().grace_period(0);
    while pods
        .delete(&name, &params)
        .await
        .is_err_and(|error| !is_gone(&error))
    {
        sleep(LOOK).await;
    }
}

/// Runs a pod until it is dropped; its process is dropped with it.
async fn run_pod(
    pods: &Api<Pod>,
    name: &str,
    annotations: HashMap<String, String>,
    runner: Arc<dyn PodRunner>,
) {
    let number = ADDRESSES.fetch_add(1, Ordering::Relaxed);
    let [high, low] = number.to_be_bytes();
    // Not 127.0.0.x, where servers of other tests are.
    let ip = IpAddr::V4(Ipv4Addr::new(127, 1, high, low));
    let millis = |key: &str| {
        let written = annotations.get(&format!("{FAULTS}{key}"));
        written.and_then(|it| it.parse().ok()).map(Duration::from_millis)
    };
    sleep(millis("start-after-ms").unwrap_or_default()).await;
    let request = PodRequest {
        name: name.to_owned(),
        ip,
        annotations: annotations.clone(),
    };
    let mut process = match runner.start(&request) {
        Ok(process) => process,
        Err(error) => {
            set(pods, name, "Failed", None, &error.to_string()).await;
            return std::future::pending().await;
        }
    };
    while !process.is_ready() || annotations.contains_key(&format!("{FAULTS}never-ready")) {
        sleep(LOOK).await;
    }
    set(pods, name, "Running", Some(ip), "").await;
    let fails = async {
        match millis("fail-after-ms") {
            Some(after) => sleep(after).await,
            None => std::future::pending().await,
        }
        "the pod was killed".to_owned()
    };
    let moves = async {
        if let Some(after) = millis("move-after-ms") {
            sleep(after).await;
            let other = IpAddr::V4(Ipv4Addr::new(127, 2, high, low));
            set(pods, name, "Running", Some(other), "").await;
        }
        std::future::pending::<String>().await
    };
    let ends = async {
        loop {
            if let Some(how) = process.ended() {
                return how;
            }
            sleep(LOOK * 5).await;
        }
    };
    let how = tokio::select! { how = fails => how, how = ends => how, how = moves => how };
    drop(process);
    set(pods, name, "Failed", None, &how).await;
    std::future::pending::<()>().await;
}

async fn bind(client: &Client, namespace: String, name: &str) {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "fake"},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(binding.to_string().into_bytes());
    if let Ok(request) = request {
        let _ = client.request::<Value>(request).await;
    }
}

async fn set(pods: &Api<Pod>, name: &str, phase: &str, ip: Option<IpAddr>, message: &str) {
    let ready = if phase == "Running" { "True" } else { "False" };
    let status = json!({"status": {
        "phase": phase, "message": message, "podIP": ip,
        "podIPs": ip.map(|ip| vec![json!({"ip": ip})]),
        "conditions": [{"type": "Ready", "status": ready}],
    }});
    let (params, patch) = (PatchParams::default(), Patch::Merge(&status));
    while pods
        .patch_status(name, &params, &patch)
        .await
        .is_err_and(|error| !is_gone(&error))
    {
        sleep(LOOK).await;
    }
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [404, 409].contains(&status.code))
}
