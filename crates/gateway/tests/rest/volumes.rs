//! Files that outlive sessions and servers.

mod bounded;
mod kept;
mod owned;

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_gateway::records::Records;
use cellblock_gateway::{Gateway, Models, Options};
use cellblock_interpreter::Interpreter;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::support::Api;

const FOLDER: &str = "/workspace/volume";

static INTERPRETER: OnceCell<Arc<Interpreter>> = OnceCell::const_new();
static STORE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// A server over files of its own, which the next one finds again.
struct VolumeServer {
    api: Api,
    gateway: Gateway,
    served: JoinHandle<()>,
}

/// Starts a server over records in a folder.
async fn serve(folder: &Path, options: Options) -> VolumeServer {
    // One interpreter serves all: a template for each test would be slow.
    let interpreter = INTERPRETER.get_or_init(async || Arc::new(interpreter_over(STORE.path()).await));
    serve_with(folder, options, Arc::clone(interpreter.await)).await
}

async fn serve_with(folder: &Path, options: Options, interpreter: Arc<Interpreter>) -> VolumeServer {
    let records = Records::open(&folder.join("records.sqlite")).unwrap();
    let gateway = Gateway::new(options, records, Models::default(), interpreter);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api = Api::at(listener.local_addr().unwrap());
    let serving = gateway.start(listener, &[]).await.unwrap();
    let served = tokio::spawn(async move { serving.run().await.unwrap() });
    VolumeServer { api, gateway, served }
}

async fn interpreter_over(store: &Path) -> Interpreter {
    let builder = Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .preload(Vec::new());
    let interpreter = builder.store(Store::local(store).unwrap()).build().await.unwrap();
    interpreter.warmed().await.unwrap();
    interpreter
}

impl VolumeServer {
    async fn stop(self) {
        self.gateway.stop();
        tokio::time::timeout(Duration::from_mins(1), self.served)
            .await
            .unwrap()
            .unwrap();
    }

    async fn volume(&self, name: &str) -> Value {
        let (status, volume) = self.api.get(&format!("/v1/volumes/{name}")).await;
        assert_eq!(status, StatusCode::OK, "{volume}");
        volume
    }
}

/// A server with an artifact store of its own.
async fn with_store() -> (TempDir, VolumeServer) {
    let folder = tempfile::tempdir().unwrap();
    let interpreter = interpreter_over(&folder.path().join("artifacts")).await;
    let server = serve_with(folder.path(), Options::default(), Arc::new(interpreter)).await;
    (folder, server)
}

/// A server of one test.
async fn alone(change: impl FnOnce(&mut Options)) -> (TempDir, VolumeServer) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    change(&mut options);
    let server = serve(folder.path(), options).await;
    (folder, server)
}

fn written(name: &str) -> Value {
    json!({"volume": name})
}

fn id(session: &str) -> &str {
    session.rsplit('/').next().unwrap()
}

/// Runs a cell that completes; its note.
async fn note(api: &Api, session: &str, code: &str) -> String {
    let cell = api.run(session, code).await;
    assert_eq!(cell["outcome"], "completed", "{cell}");
    cell["note"].as_str().unwrap_or_default().to_owned()
}

/// Returns what an expression prints.
async fn printed(api: &Api, session: &str, expression: &str) -> String {
    let cell = api.run(session, &format!("print({expression}, end='')")).await;
    assert_eq!(cell["outcome"], "completed", "{cell}");
    cell["stdout"].as_str().unwrap().to_owned()
}
