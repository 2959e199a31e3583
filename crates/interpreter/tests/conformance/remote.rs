//! Sandboxes at the other end of connections, with an interpreter in this process.

use std::path::PathBuf;
use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::protection::Demands;
use cellblock_interpreter::remote::{Remote, ServeTerms};
use cellblock_interpreter::remote::{RemoteBackend, RemoteConfig};
use cellblock_sandbox::pool::PoolConfig;
use cellblock_testkit::WebSockets;

const KEY: &str = "sk-of-the-tests";

/// A server, and the interpreter that gives its sandboxes.
#[derive(Debug)]
pub(crate) struct SandboxServer {
    pub(crate) sockets: WebSockets,
    pub(crate) interpreter: Arc<Interpreter>,
}

/// Serves an interpreter's sandboxes.
pub(crate) async fn serve(interpreter: Interpreter, most: Limits) -> SandboxServer {
    let interpreter = Arc::new(interpreter);
    let served = Arc::clone(&interpreter);
    let sockets = WebSockets::start(KEY, move |messages| {
        let (served, most) = (Arc::clone(&served), most.clone());
        async move {
            let terms = ServeTerms {
                most: Some(most),
                ..ServeTerms::default()
            };
            // Why a connection was cut is told by the client's side.
            let _ = served.serve(messages, terms).await;
        }
    });
    SandboxServer {
        sockets: sockets.await.unwrap(),
        interpreter,
    }
}

/// An interpreter whose sandboxes a server has.
pub(crate) async fn client(server: &SandboxServer, pool: PoolConfig, store: Store) -> Interpreter {
    let config = RemoteConfig::new(&server.sockets.url())
        .unwrap()
        .with_key(KEY)
        .unwrap();
    let backend = RemoteBackend::start(config, Demands::default()).await.unwrap();
    Interpreter::start_remote(Remote {
        backend,
        limits: Limits::default(),
        pool,
        store,
        spool: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("remote-spool"),
    })
}
