//! The interpreter that the tests of this binary share, and servers over it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use cellblock_artifact::Store;
use cellblock_dialects::{DialectsOptions, Doorkeeper, Host, HostTerms, NoEntry};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::hosting::{Meter, Owner, Unmetered};
use cellblock_interpreter::limits::NetworkPolicy;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Interpreter> = OnceCell::const_new();
/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_mins(4);

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async { tokio::time::timeout(LONG, future).await.unwrap() })
}

async fn interpreter() -> Interpreter {
    let start = || async {
        let artifacts = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artifacts");
        let interpreter = Interpreter::builder()
            .home(cellblock_testkit::home().unwrap())
            .store(Store::local(artifacts).unwrap())
            .build()
            .await
            .unwrap();
        // The first sandbox may take longer on a busy machine than a request waits for one.
        interpreter.warmed().await.unwrap();
        interpreter
    };
    INTERPRETER.get_or_init(start).await.clone()
}

/// A server of dialects. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    /// Host and port.
    pub(crate) address: SocketAddr,
    _end: DropGuard,
}

impl Served {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Serves dialects to callers without keys.
pub(crate) async fn serve(options: DialectsOptions) -> Served {
    serve_with(options, &[], Arc::new(Unmetered)).await
}

/// Serves dialects to callers with these keys; a key's owner has its name. Without keys all callers are one owner.
pub(crate) async fn serve_with(
    options: DialectsOptions,
    keys: &'static [&'static str],
    meter: Arc<dyn Meter>,
) -> Served {
    let ending = CancellationToken::new();
    let host = Host::new(HostTerms {
        interpreter: interpreter().await,
        doorkeeper: Arc::new(Keys(keys)),
        meter,
        max_network: NetworkPolicy::Loopback,
        egress: None,
        guard: Guard::Off,
        setup: Vec::new(),
        max_body: 1 << 20,
        max_upload: 4 << 20,
        max_cell_timeout: Duration::from_mins(2),
        tasks: tokio_util::task::TaskTracker::new(),
        stopping: ending.clone(),
        ending: ending.clone(),
    });
    let mut router = Router::new();
    for served in cellblock_dialects::routes(&host, &options) {
        router = router.nest_service(served.path, served.routes);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let end = ending.clone();
    tokio::spawn(async move {
        let serving = axum::serve(listener, router).with_graceful_shutdown(end.cancelled_owned());
        serving.await.unwrap();
    });
    Served {
        address,
        _end: ending.drop_guard(),
    }
}

#[derive(Debug)]
struct Keys(&'static [&'static str]);

impl Doorkeeper for Keys {
    fn owner<'a>(
        &'a self,
        secret: Option<&'a str>,
        _path: &'a str,
        _peer: Option<SocketAddr>,
    ) -> Pin<Box<dyn Future<Output = Result<Owner, NoEntry>> + Send + 'a>> {
        Box::pin(async move {
            match secret {
                _ if self.0.is_empty() => Ok(Owner::local()),
                Some(key) if self.0.contains(&key) => Ok(Owner::new(key)),
                Some(_) => Err(NoEntry::WrongKey("the API key is not known here".to_owned())),
                None => Err(NoEntry::NoKey("an API key is needed".to_owned())),
            }
        })
    }
}

/// A client. It waits for as long as the test may take.
pub(crate) fn client() -> reqwest::Client {
    // Only one provider is compiled in, but it has to be named.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Runs a program of a folder of `tests/clients`, which has to succeed. A program with a path is one of the folder.
pub(crate) async fn run(folder: &str, program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
    let folder = cellblock_testkit::workspace_root()
        .join("tests/clients")
        .join(folder);
    let program = if program.contains('/') {
        folder.join(program)
    } else {
        program.into()
    };
    let output = tokio::process::Command::new(&program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(&folder)
        .kill_on_drop(true)
        .output();
    let output = output.await.unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{} failed with {}:\n{}\n{}",
        program.display(),
        output.status,
        said(&output.stdout),
        said(&output.stderr)
    );
}
