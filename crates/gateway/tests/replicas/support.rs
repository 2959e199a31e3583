//! Gateways that share a database, a folder of artifacts and a model, and a client of each.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_artifact::Store;
use cellblock_gateway::keys::KeyTerms;
use cellblock_gateway::records::{PostgresUrl, Records};
use cellblock_gateway::server::Mount;
use cellblock_gateway::{Gateway, Models, Options};
use cellblock_interpreter::Interpreter;
use cellblock_sandbox::pool::PoolConfig;
use cellblock_testkit::DatabaseServer;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// The gateways' tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Arc<Interpreter>> = OnceCell::const_new();
/// Maximum time of a sandbox on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Databases that tests of this process have made.
static MADE: AtomicU32 = AtomicU32::new(0);

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// An interpreter whose artifacts are where those of all others are, as in S3.
pub(crate) async fn interpreter() -> Arc<Interpreter> {
    let store = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("replicas");
    let interpreter = Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        // Each test has several gateways, and none imports what a template does.
        .preload(Vec::new())
        .store(Store::local(store).unwrap())
        .pool(PoolConfig {
            acquire_timeout: PATIENCE,
            ..PoolConfig::default()
        })
        .build();
    Arc::new(interpreter.await.unwrap())
}

/// The one that most gateways of this process share.
pub(crate) async fn shared_interpreter() -> Arc<Interpreter> {
    Arc::clone(INTERPRETER.get_or_init(interpreter).await)
}

/// A new database, and connections to it.
pub(crate) async fn database(server: &DatabaseServer) -> PostgresUrl {
    let name = format!("replicas{}", MADE.fetch_add(1, Ordering::Relaxed));
    let url = server.create_database(&name).await;
    PostgresUrl::new(&url, "/".as_ref()).unwrap()
}

/// Starts a gateway that others reach by the address that is returned.
pub(crate) async fn replica(
    url: &PostgresUrl,
    provider: Arc<dyn Provider>,
    interpreter: Arc<Interpreter>,
    change: impl FnOnce(&mut Options),
) -> (Gateway, SocketAddr) {
    replica_with(url, provider, interpreter, change, |_| Vec::new()).await
}

/// The same with services beside its routes.
pub(crate) async fn replica_with(
    url: &PostgresUrl,
    provider: Arc<dyn Provider>,
    interpreter: Arc<Interpreter>,
    change: impl FnOnce(&mut Options),
    mounts: impl FnOnce(&Gateway) -> Vec<Mount>,
) -> (Gateway, SocketAddr) {
    // Only the first has to install it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut options = Options {
        advertise: Some(format!("http://{address}").parse().unwrap()),
        ..Options::default()
    };
    options.auth.required = true;
    change(&mut options);
    let records = Records::connect(url).await.unwrap();
    let models = Models::default().with("m", provider);
    let gateway = Gateway::new(options, records, models, interpreter);
    let serving = gateway.start(listener, &mounts(&gateway)).await.unwrap();
    // It may stop after its database.
    tokio::spawn(async move { serving.run().await.ok() });
    (gateway, address)
}

/// Two gateways, and a client of each with the same key.
pub(crate) struct Pair {
    pub(crate) one: Api,
    pub(crate) two: Api,
    pub(crate) gateways: [Gateway; 2],
    _server: Arc<DatabaseServer>,
}

/// Two gateways whose model gives these answers, each request the next one.
pub(crate) async fn pair(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Pair {
    pair_with(Arc::new(ScriptedProvider::new(answers)), |_| {}).await
}

pub(crate) async fn pair_with(provider: Arc<dyn Provider>, change: impl Fn(&mut Options)) -> Pair {
    let server = DatabaseServer::shared_postgres().await;
    let url = database(&server).await;
    let interpreter = shared_interpreter().await;
    let (first, at) = replica(&url, Arc::clone(&provider), Arc::clone(&interpreter), &change).await;
    let (second, other) = replica(&url, provider, interpreter, &change).await;
    let key = key(&first, "ann").await;
    Pair {
        one: Api::new(at, &key),
        two: Api::new(other, &key),
        gateways: [first, second],
        _server: server,
    }
}

impl Pair {
    /// Whether a statement finds a row in the records.
    pub(crate) async fn exists(&self, statement: &'static str) -> bool {
        exists(&self.gateways[0], statement.to_owned()).await
    }

    /// Runs a statement in the records.
    pub(crate) async fn sql(&self, statement: String) {
        let records = &self.gateways[0].records;
        records
            .with(move |database| database.batch(&statement))
            .await
            .unwrap();
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for gateway in &self.gateways {
            gateway.stop();
            gateway.stop();
        }
    }
}

/// Whether a statement finds a row in a gateway's records.
pub(crate) async fn exists(gateway: &Gateway, statement: String) -> bool {
    let records = &gateway.records;
    records
        .with(move |database| database.exists(&statement, &[]))
        .await
        .unwrap()
}

/// Makes a key.
pub(crate) async fn key(gateway: &Gateway, name: &str) -> String {
    let made = gateway.keys.create(name, KeyTerms::default()).await;
    made.unwrap().1.reveal()
}

/// A client of one gateway.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
}

impl Api {
    pub(crate) fn new(address: SocketAddr, key: &str) -> Self {
        Self {
            client: Client::new(),
            address,
            key: key.to_owned(),
        }
    }

    /// The same with another key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(method, url).bearer_auth(&self.key)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        read(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        read(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        read(self.start(path, body).await).await
    }

    /// An answer whose body is not read yet.
    pub(crate) async fn start(&self, path: &str, body: &Value) -> Response {
        let request = self
            .request(Method::POST, path)
            .header("content-type", "application/json");
        request.body(body.to_string()).send().await.unwrap()
    }

    /// Makes a session; its path.
    pub(crate) async fn session(&self) -> String {
        let (status, session) = self.post("/v1/sessions", &json!({})).await;
        assert_eq!(status, 201, "{session}");
        format!("/v1/sessions/{}", session["id"].as_str().unwrap())
    }

    /// The value of a cell that has to run.
    pub(crate) async fn run(&self, session: &str, code: &str) -> Value {
        let (status, cell) = self
            .post(&format!("{session}/cells"), &json!({"code": code}))
            .await;
        assert_eq!(status, 200, "{cell}");
        cell["outputs"][0]["value"].clone()
    }

    /// A response that has to be made.
    pub(crate) async fn respond(&self, fields: Value) -> Value {
        let (status, response) = self.post("/v1/responses", &model(fields)).await;
        assert_eq!(status, 200, "{response}");
        response
    }
}

pub(crate) async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The code of an error.
pub(crate) fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["error"]["code"].as_str().unwrap_or_default())
}

/// A request of the model.
pub(crate) fn model(mut fields: Value) -> Value {
    fields["model"] = json!("m");
    fields
}

/// An answer that runs code.
pub(crate) fn runs(id: &str, code: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "code_interpreter", &json!({"code": code}).to_string())
}

pub(crate) fn says(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().text(text)
}

/// A model that counts in three turns.
pub(crate) fn three_turns() -> [ScriptedAnswer; 6] {
    [
        runs("c1", "x = 1; print(x)"),
        says("one"),
        runs("c2", "x += 1; print(x)"),
        says("two"),
        runs("c3", "x += 1; print(x)"),
        says("three"),
    ]
}

/// The fields of a request whose code runs in a container, and returns what it prints.
pub(crate) fn in_container(container: &Value) -> Value {
    json!({
        "input": "go",
        "include": ["code_interpreter_call.outputs"],
        "tools": [{"type": "code_interpreter", "container": container}],
    })
}

/// Returns the output that the code of a response has printed.
pub(crate) fn printed(response: &Value) -> &str {
    response["output"][0]["outputs"][0]["logs"]
        .as_str()
        .unwrap_or_default()
}
