//! A server of the dialects over a real interpreter, whose keys are the test's.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use cellblock_dialects::{DialectsOptions, Doorkeeper, Host, HostTerms, NoEntry, routes};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::hosting::{Owner, Unmetered};
use cellblock_interpreter::limits::NetworkPolicy;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Interpreter> = OnceCell::const_new();

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_mins(2);

/// The key of Ann, and that of Bob.
pub(crate) const KEYS: [(&str, &str); 2] = [("ck_ann", "ann"), ("ck_bob", "bob")];

/// A client of HTTP.
pub(crate) fn http() -> reqwest::Client {
    // Fails if another test was faster, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async { tokio::time::timeout(2 * LONG, future).await.unwrap() })
}

async fn interpreter() -> Interpreter {
    let start = async || {
        let artifacts = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artifacts");
        let built = Interpreter::builder()
            .home(cellblock_testkit::home().unwrap())
            .store(Store::local(artifacts).unwrap())
            .build()
            .await
            .unwrap();
        // On a busy machine the first sandbox takes longer than clients wait.
        built.warmed().await.unwrap();
        built
    };
    INTERPRETER.get_or_init(start).await.clone()
}

/// A server of dialects. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    ending: CancellationToken,
}

impl Server {
    /// Starts one that asks for keys.
    pub(crate) async fn start(options: DialectsOptions) -> Self {
        Self::start_with(options, KEYS.into()).await
    }

    /// Starts one with these keys and their owners; without any, everybody is one owner.
    pub(crate) async fn start_with(
        options: DialectsOptions,
        keys: BTreeMap<&'static str, &'static str>,
    ) -> Self {
        let ending = CancellationToken::new();
        let host = Host::new(HostTerms {
            interpreter: interpreter().await,
            doorkeeper: Arc::new(Keys(keys)),
            meter: Arc::new(Unmetered),
            max_network: NetworkPolicy::Loopback,
            egress: None,
            guard: Guard::Off,
            setup: Vec::new(),
            max_body: 10 << 20,
            max_upload: 32 << 20,
            max_cell_timeout: Duration::from_mins(5),
            tasks: TaskTracker::new(),
            stopping: ending.clone(),
            ending: ending.clone(),
        });
        let mut router = Router::new();
        for served in routes(&host, &options) {
            router = router.nest_service(served.path, served.routes);
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let over = ending.clone();
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move {
            let served = axum::serve(listener, service);
            tokio::select! {
                served = served => served.unwrap(),
                () = over.cancelled() => {}
            }
        });
        Self { address, ending }
    }

    /// Returns an address below a dialect's path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

/// Keys and their owners.
#[derive(Debug)]
struct Keys(BTreeMap<&'static str, &'static str>);

impl Doorkeeper for Keys {
    fn owner<'a>(
        &'a self,
        secret: Option<&'a str>,
        _path: &'a str,
        peer: Option<SocketAddr>,
    ) -> Pin<Box<dyn Future<Output = Result<Owner, NoEntry>> + Send + 'a>> {
        Box::pin(async move {
            assert!(peer.is_some(), "the dialect says where a request comes from");
            if self.0.is_empty() {
                return Ok(Owner::local());
            }
            let secret = secret.ok_or_else(|| NoEntry::NoKey("an API key is needed".to_owned()))?;
            let owner = self
                .0
                .get(secret)
                .ok_or_else(|| NoEntry::WrongKey("the API key is unknown".to_owned()));
            Ok(Owner::new(*owner?))
        })
    }
}

/// Runs a program of a client to its end, and shows what it wrote if it failed.
pub(crate) async fn passes(mut command: tokio::process::Command) {
    let shown = format!("{command:?}");
    command.kill_on_drop(true).stdin(std::process::Stdio::null());
    let ran = tokio::time::timeout(LONG, command.output()).await;
    let ran = ran
        .unwrap_or_else(|_| panic!("{shown} took longer than {LONG:?}"))
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        ran.status.success(),
        "{shown} ended with {}\n{}\n{}",
        ran.status,
        text(&ran.stdout),
        text(&ran.stderr)
    );
}

/// Runs a module of a client's tests, at `tests/clients/dialects`, against a server.
pub(crate) async fn suite(client: &str, module: &str, server: &Server) {
    let folder = cellblock_testkit::workspace_root()
        .join("tests/clients/dialects")
        .join(client);
    let mut command = tokio::process::Command::new(folder.join(".venv/bin/python"));
    command
        .args(["-m", "unittest", module])
        .env("CELLBLOCK_URL", server.url(""))
        .env("CELLBLOCK_KEY", KEYS[0].0)
        // The folder is the repository's; nothing is to be left there.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder);
    passes(command).await;
}
