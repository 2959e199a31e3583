//! A gateway that the tests of this binary share, and a client that asks it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use cellblock_gateway::Gateway;
use cellblock_gateway::keys::{ConnectorGrant, KeyTerms};
use cellblock_gateway::quotas::{Allowance, Quota};
use cellblock_gateway::records::Records;
use cellblock_gateway::{Models, Options};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::builder::{BackendKind, InterpreterBuilder};
use cellblock_interpreter::pool::PoolConfig;
use cellblock_testkit::wait::until_ok;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, OnceCell};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::weather::Weather;

/// Maximum time for which a request waits for a sandbox: another program of tests may keep the processors
/// busy.
const PATIENCE: Duration = Duration::from_mins(3);

/// The gateway's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static SERVER: OnceCell<(Gateway, SocketAddr)> = OnceCell::const_new();
static KEYS: Mutex<BTreeMap<String, String>> = Mutex::const_new(BTreeMap::new());

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// A gateway that has just been started.
pub(crate) async fn gateway(options: Options) -> Gateway {
    gateway_with(options, Models::default()).await
}

/// The same with models. Few of these tests import what a template does, which would cost each of
/// them a second.
pub(crate) async fn gateway_with(options: Options, models: Models) -> Gateway {
    over(options, models, builder().preload(Vec::new())).await
}

async fn over(options: Options, models: Models, builder: InterpreterBuilder) -> Gateway {
    let interpreter = builder.build().await.unwrap();
    Gateway::new(options, Records::in_memory().unwrap(), models, interpreter)
}

fn builder() -> InterpreterBuilder {
    Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .pool(PoolConfig {
            acquire_timeout: PATIENCE,
            ..PoolConfig::default()
        })
}

/// A gateway of a test's own, served without keys.
pub(crate) async fn served(options: Options) -> Api {
    let router = gateway(options).await.router();
    Api::at(serve(router).await)
}

/// Serves on this machine, and returns the address.
pub(crate) async fn serve(router: axum::Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// The shared one. Each owner has a key.
async fn server() -> &'static (Gateway, SocketAddr) {
    SERVER
        .get_or_init(|| async {
            let mut options = Options {
                connectors: vec![Weather::named("weather"), Weather::named("climate")],
                ..Options::default()
            };
            options.execute.max_concurrent = 16;
            options.sessions.max_per_key = 4;
            options.sessions.max_upload = 1 << 20;
            options.http.max_body = 2 << 20;
            let gateway = over(options, Models::default(), builder()).await;
            let address = serve(gateway.router()).await;
            (gateway, address)
        })
        .await
}

/// The key of an owner of the shared gateway.
async fn key_of(owner: &str) -> String {
    let mut keys = KEYS.lock().await;
    if let Some(key) = keys.get(owner) {
        return key.clone();
    }
    let gateway = &server().await.0;
    let connectors = match owner {
        "ungranted" => ConnectorGrant::default(),
        "only climate" => ConnectorGrant::new(["climate".to_owned()]),
        _ => ConnectorGrant::new(["*".to_owned()]),
    };
    let allowance = match owner {
        "one fetch" | "one noted fetch" => Allowance::default().with(Quota::FetchesPerMinute, Some(1)),
        "two fetches" | "console" => Allowance::default().with(Quota::FetchesPerMinute, Some(2)),
        "no layers" => Allowance::default().with(Quota::LayersPerDay, Some(0)),
        "one second" => Allowance::default().with(Quota::CellSecondsPerDay, Some(1)),
        "ten bytes" => Allowance::default().with(Quota::FetchedBytesPerDay, Some(10)),
        _ => Allowance::default(),
    };
    let terms = KeyTerms {
        allowance,
        connectors,
        minimum_backend: (owner == "behind gVisor").then_some(BackendKind::Gvisor),
        admin: owner.starts_with("administrator"),
        ..KeyTerms::default()
    };
    let made = gateway.keys.create(owner, terms).await;
    let key = made.unwrap().1.reveal();
    keys.insert(owner.to_owned(), key.clone());
    key
}

/// Revokes the key of an owner of the shared gateway.
pub(crate) async fn revoke(owner: &str) {
    key_of(owner).await;
    server().await.0.keys.revoke(owner).await.unwrap();
}

/// Waits until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    until_ok(async || holds().await.then_some(()).ok_or(what)).await;
}

/// Somebody who asks.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
    base: String,
    key: Option<String>,
}

impl Api {
    /// The shared gateway, as this owner.
    pub(crate) async fn of(owner: &str) -> Self {
        let key = Some(key_of(owner).await);
        Self {
            key,
            ..Self::at(server().await.1)
        }
    }

    /// Somebody without a key.
    pub(crate) fn at(address: SocketAddr) -> Self {
        // Only the first has to install it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            client: Client::builder().build().unwrap(),
            base: format!("http://{address}"),
            key: None,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.base);
        let request = self.client.request(method, url);
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// A request that shows no key.
    pub(crate) fn without_key(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, self.url(path))
    }

    /// The same server with another key.
    pub(crate) fn with_key(&self, secret: &str) -> Self {
        Self {
            key: Some(secret.to_owned()),
            ..self.clone()
        }
    }

    /// The secret of its key.
    pub(crate) fn key(&self) -> &str {
        self.key.as_deref().unwrap()
    }

    /// The whole address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Opens a WebSocket.
    pub(crate) async fn socket(
        &self,
        path: &str,
    ) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, tokio_tungstenite::tungstenite::Error> {
        let url = format!("{}{path}", self.base.replacen("http", "ws", 1));
        let mut request = url.into_client_request()?;
        if let Some(key) = &self.key {
            let value = format!("Bearer {key}").parse().unwrap();
            request.headers_mut().insert("authorization", value);
        }
        Ok(connect_async(request).await?.0)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        read(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn raw(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) -> (StatusCode, Value) {
        read(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        read(self.start(path, body).await).await
    }

    /// An answer whose body is not read yet.
    pub(crate) async fn start(&self, path: &str, body: &Value) -> Response {
        let request = self.request(Method::POST, path);
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        request.send().await.unwrap()
    }

    /// Bytes, with a content type.
    pub(crate) async fn put(&self, path: &str, media_type: &str, body: Vec<u8>) -> (StatusCode, Value) {
        let request = self.request(Method::PUT, path).header("content-type", media_type);
        read(request.body(body).send().await.unwrap()).await
    }

    /// Makes a session; its path.
    pub(crate) async fn session(&self, options: &Value) -> String {
        let (status, session) = self.post("/v1/sessions", options).await;
        assert_eq!(status, StatusCode::CREATED, "{session}");
        format!("/v1/sessions/{}", session["id"].as_str().unwrap())
    }

    /// Runs a cell that has to be served.
    pub(crate) async fn run(&self, session: &str, code: &str) -> Value {
        let (status, cell) = self
            .post(&format!("{session}/cells"), &json!({"code": code}))
            .await;
        assert_eq!(status, StatusCode::OK, "{cell}");
        cell
    }

    /// Starts a cell that never ends by itself, and waits until it runs; its stream, and what has
    /// come of that.
    pub(crate) async fn endless(&self, session: &str) -> (Response, String) {
        let body =
            json!({"code": "print('on', flush=True)\nwhile True: pass", "timeout": 120, "stream": true});
        let mut response = self.start(&format!("{session}/cells"), &body).await;
        let mut text = String::new();
        while !text.contains("cell.stdout") {
            text += &String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap());
        }
        (response, text)
    }

    /// Ends a session.
    pub(crate) async fn end(&self, session: &str) {
        let (status, gone) = self.delete(session).await;
        assert_eq!((status, &gone["deleted"]), (StatusCode::OK, &json!(true)));
    }
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    let text = response.text().await.unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, value)
}

/// Returns the end of a stream's cell.
pub(crate) async fn ending((response, mut text): (Response, String)) -> Value {
    text += &response.text().await.unwrap();
    let (name, data) = events(&text).pop().unwrap();
    assert_eq!(name, "cell.done", "{data}");
    data["cell"]["outcome"].clone()
}

/// The events of a stream: names and bodies, without comments.
pub(crate) fn events(text: &str) -> Vec<(String, Value)> {
    let frames = text
        .split_terminator("\n\n")
        .filter(|frame| !frame.starts_with(':'));
    let event = |frame: &str| {
        let (name, data) = frame.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap().to_owned();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["type"], name);
        (name, data)
    };
    frames.map(event).collect()
}
