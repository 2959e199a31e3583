//! The interpreter that the tests of this binary share, and servers of dialects over it.

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
pub(crate) const LONG: Duration = Duration::from_mins(4);
/// Upload limit of the servers.
pub(crate) const MAX_UPLOAD: u64 = 1 << 20;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async { tokio::time::timeout(LONG, future).await.unwrap() })
}

async fn start() -> Interpreter {
    let artifacts = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artifacts");
    Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .store(Store::local(artifacts).unwrap())
        .build()
        .await
        .unwrap()
}

/// Each secret is a key of its own; without one, callers are nobody, unless the server is open to all.
#[derive(Debug)]
struct Keys {
    are_needed: bool,
}

impl Doorkeeper for Keys {
    fn owner<'a>(
        &'a self,
        secret: Option<&'a str>,
        _: &'a str,
        _: Option<SocketAddr>,
    ) -> Pin<Box<dyn Future<Output = Result<Owner, NoEntry>> + Send + 'a>> {
        Box::pin(async move {
            match secret {
                _ if !self.are_needed => Ok(Owner::local()),
                Some(key) if key.starts_with("e2b_") => Ok(Owner::new(key)),
                Some(_) => Err(NoEntry::WrongKey("the API key is unknown".to_owned())),
                None => Err(NoEntry::NoKey("an API key is missing".to_owned())),
            }
        })
    }
}

/// A server of dialects. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) host: Host,
}

impl Server {
    /// Starts one; callers may need keys.
    pub(crate) async fn start(options: &DialectsOptions, are_needed: bool) -> Self {
        let host = Host::new(HostTerms {
            interpreter: INTERPRETER.get_or_init(start).await.clone(),
            doorkeeper: Arc::new(Keys { are_needed }),
            meter: Arc::new(Unmetered),
            max_network: NetworkPolicy::Loopback,
            egress: None,
            guard: Guard::Off,
            setup: Vec::new(),
            max_body: 1 << 20,
            max_upload: MAX_UPLOAD,
            max_cell_timeout: Duration::from_mins(2),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            ending: CancellationToken::new(),
        });
        let served = cellblock_dialects::routes(&host, options).into_iter();
        let routes = served.fold(Router::new(), |all, it| all.nest(it.path, it.routes));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let ending = host.ending.clone();
        tokio::spawn(async move {
            ending
                .run_until_cancelled(axum::serve(listener, service).into_future())
                .await
        });
        Self { address, host }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.host.stopping.cancel();
        self.host.ending.cancel();
    }
}
