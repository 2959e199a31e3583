//! A real control plane on loopback, without nodes: etcd, kube-apiserver, the garbage collector of
//! kube-controller-manager, and the controller of agent-sandbox, from the folder that
//! `CELLBLOCK_TEST_KUBE` names.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::{ADMIN, GATEWAY, NOBODY};
use crate::capability::kubernetes_programs;
use crate::wait::block_until;

/// Definitions of agent-sandbox, in the order in which its controller needs them.
const DEFINITIONS: [&str; 4] = [
    include_str!("crds/sandboxes.yaml"),
    include_str!("crds/sandboxtemplates.yaml"),
    include_str!("crds/sandboxwarmpools.yaml"),
    include_str!("crds/sandboxclaims.yaml"),
];

/// A control plane. Dropping it ends its programs and removes their files.
#[derive(Debug)]
pub struct Plane {
    folder: TempDir,
    programs: PathBuf,
    etcd: u16,
    api: u16,
    running: Vec<(&'static str, Child)>,
}

#[expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]
impl Plane {
    /// Starts one. The programs are those of `CELLBLOCK_TEST_KUBE`.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("cb-plane").tempdir().unwrap();
        let users = format!("{ADMIN},admin,1,\"system:masters\"\n{NOBODY},dev,2\n{GATEWAY},gateway,3\n");
        fs::write(folder.path().join("tokens.csv"), users).unwrap();
        let made = Command::new("openssl")
            .args(["genrsa", "-out", "sa.key", "2048"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut plane = Self {
            folder,
            programs: kubernetes_programs().unwrap(),
            etcd: free_port(),
            api: free_port(),
            running: Vec::new(),
        };
        plane.start_store();
        plane.start_api();
        plane.define();
        let kubeconfig = plane.kubeconfig(ADMIN, "default").display().to_string();
        plane.run(
            "kube-controller-manager",
            &[
                "--kubeconfig",
                &kubeconfig,
                "--controllers=garbage-collector-controller,namespace-controller",
                "--leader-elect=false",
                "--secure-port=0",
            ],
        );
        let probe = format!("--health-probe-bind-address=127.0.0.1:{}", free_port());
        plane.run(
            "agent-sandbox-controller",
            &[
                "--kubeconfig",
                &kubeconfig,
                "--extensions",
                "--leader-elect=false",
                "--enable-webhook=false",
                "--metrics-bind-address=0",
                &probe,
            ],
        );
        plane
    }

    /// Returns what another process needs to connect to this plane.
    pub fn connection(&self) -> String {
        self.kubeconfig(ADMIN, "default").display().to_string()
    }

    /// Writes a kubeconfig for the user of a token, and returns its path.
    pub fn kubeconfig(&self, token: &str, namespace: &str) -> PathBuf {
        let path = self.folder.path().join(format!("{token}-{namespace}"));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.api),
                "certificate-authority": self.folder.path().join("pki/apiserver.crt"),
            }}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test",
                "namespace": namespace}}],
        });
        fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// Starts etcd over the data that it has.
    pub fn start_store(&mut self) {
        let url = format!("http://127.0.0.1:{}", self.etcd);
        let peer = format!("http://127.0.0.1:{}", free_port());
        self.run(
            "etcd",
            &[
                "--data-dir=etcd",
                "--unsafe-no-fsync",
                "--listen-client-urls",
                &url,
                "--advertise-client-urls",
                &url,
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
                "--initial-cluster",
                &format!("default={peer}"),
            ],
        );
        let port = self.etcd;
        block_until("etcd accepts connections", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
    }

    /// Starts the API server, and waits until it is ready.
    pub fn start_api(&mut self) {
        self.run(
            "kube-apiserver",
            &[
                "--etcd-servers",
                &format!("http://127.0.0.1:{}", self.etcd),
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                &format!("--secure-port={}", self.api),
                "--cert-dir=pki",
                "--service-account-key-file=sa.key",
                "--service-account-signing-key-file=sa.key",
                &format!("--service-account-issuer=https://127.0.0.1:{}", self.api),
                "--service-cluster-ip-range=10.0.0.0/24",
                "--token-auth-file=tokens.csv",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
                "--endpoint-reconciler-type=none",
                "--enable-priority-and-fairness=false",
            ],
        );
        let certificate = self.folder.path().join("pki/apiserver.crt");
        block_until("the API server has a certificate", || certificate.is_file());
        let connection = self.connection();
        block_until("the API server is ready", || {
            block_on(|| async {
                let client = client(Path::new(&connection)).await;
                let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
                client
                    .request_text(request)
                    .await
                    .is_ok_and(|answer| answer == "ok")
            })
        });
    }

    /// Kills a program with SIGKILL.
    pub fn kill(&mut self, program: &str) {
        let at = self
            .running
            .iter()
            .position(|(name, _)| *name == program)
            .unwrap();
        let (_, mut child) = self.running.swap_remove(at);
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Forgets all events until now. Watches that begin from an older version are answered with 410
    /// once the API server has restarted.
    pub fn compact(&self) {
        let found = self.ask_store("range", &json!({"key": "AA=="}));
        let revision = &found["header"]["revision"];
        assert!(revision.is_string(), "{found}");
        self.ask_store("compaction", &json!({"revision": revision, "physical": true}));
    }

    /// Returns the resident memory of a program in bytes.
    pub fn memory(&self, program: &str) -> u64 {
        let (_, child) = self.running.iter().find(|(name, _)| *name == program).unwrap();
        let text = fs::read_to_string(format!("/proc/{}/statm", child.id())).unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    fn ask_store(&self, method: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.etcd)).unwrap();
        let body = body.to_string();
        let length = body.len();
        write!(
            stream,
            "POST /v3/kv/{method} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    fn run(&mut self, name: &'static str, args: &[&str]) {
        let log = self.folder.path().join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let child = Command::new(self.programs.join(name))
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.running.push((name, child));
    }

    /// Defines the resources of agent-sandbox, without which its controller ends.
    fn define(&self) {
        let connection = self.connection();
        block_on(|| async {
            let client = client(Path::new(&connection)).await;
            let api: Api<CustomResourceDefinition> = Api::all(client);
            for text in DEFINITIONS {
                let definition: Value = serde_saphyr::from_str(text).unwrap();
                let name = definition["metadata"]["name"].as_str().unwrap();
                let params = PatchParams::apply("cellblock-test");
                let defined = api
                    .patch(name, &params, &Patch::Apply(&definition))
                    .await
                    .unwrap();
                let name = defined.name_any();
                crate::wait::until_ok(async || {
                    let conditions = api.get(&name).await.map_err(|error| error.to_string())?;
                    let conditions = conditions.status.and_then(|it| it.conditions).unwrap_or_default();
                    let established = conditions
                        .iter()
                        .any(|it| it.type_ == "Established" && it.status == "True");
                    established
                        .then_some(())
                        .ok_or_else(|| format!("{name} is not established"))
                })
                .await;
            }
        });
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // The programs after the store go first, and none of them keeps anything.
        for (_, child) in self.running.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Connects as the user of a kubeconfig.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(super) async fn client(kubeconfig: &Path) -> Client {
    Client::try_from(configuration(kubeconfig).await).unwrap()
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(super) async fn configuration(kubeconfig: &Path) -> Config {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .unwrap()
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn block_on<T: Send, F: Future<Output = T>>(future: impl FnOnce() -> F + Send) -> T {
    // The caller may be a test with a runtime of its own.
    std::thread::scope(|scope| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        scope.spawn(move || runtime.block_on(future())).join().unwrap()
    })
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
