//! The interpreter that the tests of this binary share, and servers over it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use cellblock_dialects::{DialectHost, DialectListener, DialectTerms, DialectsOptions, Doorkeeper, NoEntry};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::hosting::uploads::{UploadAllowance, UploadLimits, UploadRoom};
use cellblock_interpreter::hosting::{Admission, Meter, MeterDenial, Owner, Permit, UnlimitedMeter};
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::pool::PoolConfig;
use cellblock_testkit::wait::until_ok;
use cellblock_testkit::{SuiteCounts, judged};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Maximum time for which a request waits for a sandbox: another program of tests may keep the processors
/// busy.
const PATIENCE: Duration = Duration::from_mins(3);

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Interpreter> = OnceCell::const_new();
/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_mins(4);

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async { tokio::time::timeout(LONG, future).await.unwrap() })
}

/// The store of the interpreter's artifacts.
pub(crate) fn server_store() -> Store {
    Store::local(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artifacts")).unwrap()
}

async fn interpreter() -> Interpreter {
    let start = || async {
        let interpreter = Interpreter::builder()
            .home(cellblock_testkit::home().unwrap())
            .pool(PoolConfig {
                acquire_timeout: PATIENCE,
                ..PoolConfig::default()
            })
            .store(server_store())
            .build()
            .await
            .unwrap();
        // The first sandbox may take longer on a busy machine than a request waits for one.
        interpreter.warmed().await.unwrap();
        interpreter
    };
    INTERPRETER.get_or_init(start).await.clone()
}

/// The key of Ann, and that of Bob.
pub(crate) const KEYS: [(&str, &str); 2] = [("ck_ann", "ann"), ("ck_bob", "bob")];

/// Holders of a server's keys.
#[derive(Clone, Debug)]
pub(crate) enum KeyRing {
    /// Everybody is one owner.
    Open,
    /// The owners of known keys.
    Known(BTreeMap<&'static str, &'static str>),
    /// Each key that begins so is an owner of its own.
    Beginning(&'static str),
    /// The same, until the switch is on: then all keys are revoked.
    Until(&'static str, Arc<AtomicBool>),
}

impl Doorkeeper for KeyRing {
    fn owner<'a>(
        &'a self,
        secret: Option<&'a str>,
        _path: &'a str,
        peer: Option<SocketAddr>,
    ) -> Pin<Box<dyn Future<Output = Result<Owner, NoEntry>> + Send + 'a>> {
        Box::pin(async move {
            assert!(
                peer.is_some(),
                "the dialect does not say where a request comes from"
            );
            let found = match self {
                Self::Open => return Ok(Owner::local()),
                Self::Known(owners) => secret.and_then(|secret| owners.get(secret)).copied(),
                Self::Until(_, revoked) if revoked.load(Ordering::Relaxed) => None,
                Self::Beginning(start) | Self::Until(start, _) => {
                    secret.filter(|secret| secret.starts_with(start))
                }
            };
            match (found, secret) {
                (Some(owner), _) => Ok(Owner::new(owner)),
                (None, Some(_)) => Err(NoEntry::WrongKey("the API key is unknown".to_owned())),
                (None, None) => Err(NoEntry::NoKey("an API key is needed".to_owned())),
            }
        })
    }

    fn admits<'a>(
        &'a self,
        _owner: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<bool, NoEntry>> + Send + 'a>> {
        let revoked = matches!(self, Self::Until(_, revoked) if revoked.load(Ordering::Relaxed));
        Box::pin(std::future::ready(Ok(!revoked)))
    }
}

/// A server of dialects. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct DialectServer {
    pub(crate) address: SocketAddr,
    pub(crate) host: DialectHost,
}

impl DialectServer {
    /// Starts one, on terms that the test may change.
    pub(crate) async fn with(
        options: &DialectsOptions,
        keys: KeyRing,
        change: impl FnOnce(&mut DialectTerms),
    ) -> Self {
        let ending = CancellationToken::new();
        let mut terms = DialectTerms {
            interpreter: interpreter().await,
            doorkeeper: Arc::new(keys),
            meter: Arc::new(UnlimitedMeter),
            max_network: NetworkPolicy::Loopback,
            egress: None,
            origins: Vec::new(),
            guard: Guard::Off,
            setup: Vec::new(),
            requirements: options.requirements.clone(),
            max_body: 1 << 20,
            max_upload: 4 << 20,
            uploads: UploadRoom::new(UploadLimits::default(), None),
            volumes: None,
            max_cell_timeout: Duration::from_mins(2),
            mark: None,
            authorities: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("authorities"),
            tasks: TaskTracker::new(),
            stopping: ending.clone(),
            ending,
        };
        change(&mut terms);
        let host = DialectHost::new(terms);
        let mut router = Router::new();
        // Those of debug mode are among the ports that the system gives to anybody's connections for a while.
        let all = until_ok(async || cellblock_dialects::routes(&host, options)).await;
        for served in all.served {
            router = router.nest_service(served.path, served.routes);
        }
        for DialectListener { listener, routes, .. } in all.listeners {
            serve_at(&host, listener, routes);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        serve_at(&host, listener, router);
        Self { address, host }
    }

    /// Starts one for [`KEYS`].
    pub(crate) async fn start(options: DialectsOptions) -> Self {
        Self::start_with(options, KEYS.into()).await
    }

    /// Starts one with these keys and their owners; without any, everybody is one owner.
    pub(crate) async fn start_with(
        options: DialectsOptions,
        keys: BTreeMap<&'static str, &'static str>,
    ) -> Self {
        let ring = if keys.is_empty() {
            KeyRing::Open
        } else {
            KeyRing::Known(keys)
        };
        let change = |terms: &mut DialectTerms| {
            (terms.max_body, terms.max_upload) = (10 << 20, 32 << 20);
        };
        Self::with(&options, ring, change).await
    }

    /// Returns an address at it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for DialectServer {
    fn drop(&mut self) {
        self.host.ending.cancel();
    }
}

/// Answers on a listener until the host ends.
fn serve_at(host: &DialectHost, listener: TcpListener, routes: Router) {
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let ending = host.ending.clone();
    tokio::spawn(async move {
        let serving = axum::serve(listener, service).into_future();
        ending.run_until_cancelled(serving).await
    });
}

/// Bytes that a [`Quota`] allows.
pub(crate) const QUOTA: u64 = 1 << 20;

/// Lets an owner upload [`QUOTA`] bytes in a request.
#[derive(Debug, Default)]
pub(crate) struct Quota(u64);

impl Quota {
    fn check(&self, bytes: u64) -> Result<(), MeterDenial> {
        if self.0 + bytes <= QUOTA {
            return Ok(());
        }
        Err(MeterDenial(format!(
            "the quota `upload_bytes_per_day` of this key is used up: its limit is {QUOTA} bytes, {} are \
             used, and {bytes} more were sent; send less, or try again in 5 s",
            self.0
        )))
    }
}

impl UploadAllowance for Quota {
    fn take(&mut self, bytes: u64) -> Result<(), MeterDenial> {
        self.check(bytes)?;
        self.0 += bytes;
        Ok(())
    }

    fn keep(&mut self) {}
}

impl Meter for Quota {
    fn session<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { Ok(Permit::new(())) })
    }

    fn cell<'a>(&'a self, _: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { Ok(Permit::new(())) })
    }

    fn upload<'a>(&'a self, _: &'a Owner, bytes: u64) -> Admission<'a, Box<dyn UploadAllowance>> {
        Box::pin(async move {
            let quota = Self::default();
            quota.check(bytes)?;
            Ok(Box::new(quota) as _)
        })
    }
}

/// Terms of a server whose callers have a [`Quota`] and ten seconds for an upload. Uploads stand in a folder.
pub(crate) fn bounded(folder: &Path) -> impl FnOnce(&mut DialectTerms) {
    move |terms| {
        let limits = UploadLimits {
            timeout: Duration::from_secs(10),
            ..UploadLimits::default()
        };
        terms.meter = Arc::new(Quota::default());
        terms.max_upload = 128 << 20;
        terms.uploads = UploadRoom::new(limits, Some(folder.to_owned()));
    }
}

/// Serves dialects to callers without keys.
pub(crate) async fn serve(options: DialectsOptions) -> DialectServer {
    DialectServer::with(&options, KeyRing::Open, |_| {}).await
}

/// Serves dialects to callers with these keys, whose owners have the same names. Without keys all
/// callers are one owner.
pub(crate) async fn serve_with(
    options: DialectsOptions,
    keys: &'static [&'static str],
    meter: Arc<dyn Meter>,
) -> DialectServer {
    let ring = if keys.is_empty() {
        KeyRing::Open
    } else {
        KeyRing::Known(keys.iter().map(|key| (*key, *key)).collect())
    };
    DialectServer::with(&options, ring, |terms| terms.meter = meter).await
}

/// A client. It waits for as long as the test may take.
pub(crate) fn client() -> reqwest::Client {
    // Only one provider is compiled in, but it has to be named.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Runs a program of a folder of `tests/clients`, which has to succeed, and records the numbers of
/// its tests under a name in `docs/judges.md`. A program with a path is one of the folder.
pub(crate) async fn run(
    judge: &str,
    folder: &str,
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) {
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
        // The folder is the repository's; nothing is to be left there.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(&folder)
        .kill_on_drop(true)
        .output();
    let output = output.await.unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let printed = printed.join("\n");
    assert!(
        output.status.success(),
        "{} failed with {}:\n{printed}",
        program.display(),
        output.status,
    );
    let counts = SuiteCounts::read(&printed).unwrap_or_else(|| panic!("no numbers in:\n{printed}"));
    judged(judge, counts);
}

/// Runs a module of a client's tests, at `tests/clients/dialects`, against a server.
pub(crate) async fn suite(judge: &str, client_name: &str, module: &str, server: &DialectServer) {
    let url = server.url("");
    let variables = [("CELLBLOCK_URL", url.as_str()), ("CELLBLOCK_KEY", KEYS[0].0)];
    let folder = format!("dialects/{client_name}");
    run(
        judge,
        &folder,
        ".venv/bin/python",
        &["-m", "unittest", module],
        &variables,
    )
    .await;
}

/// Requests of tests.
pub(crate) trait RequestExt {
    /// Sends it.
    async fn sent(self) -> Response;
    /// The status of the answer.
    async fn status(self) -> StatusCode;
    /// The answer's text.
    async fn text(self) -> String;
    /// The answer, which is JSON.
    async fn read<T: DeserializeOwned>(self) -> T;
}

impl RequestExt for RequestBuilder {
    async fn sent(self) -> Response {
        self.send().await.unwrap()
    }

    async fn status(self) -> StatusCode {
        self.sent().await.status()
    }

    async fn text(self) -> String {
        self.sent().await.text().await.unwrap()
    }

    async fn read<T: DeserializeOwned>(self) -> T {
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}
