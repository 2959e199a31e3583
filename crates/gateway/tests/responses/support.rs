//! A gateway with a provider of the test's own, and short ways to ask it for things.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_artifact::Store;
use cellblock_gateway::records::Records;
use cellblock_gateway::{Caller, Gateway};
use cellblock_gateway::{Models, Options};
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::pool::PoolConfig;
use cellblock_testkit::wait::until_ok;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Arc<Interpreter>> = OnceCell::const_new();

/// Maximum wait of a test for what has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

pub(crate) async fn interpreter() -> &'static Arc<Interpreter> {
    let start = || async {
        let interpreter = Interpreter::builder()
            .home(cellblock_testkit::home().unwrap())
            .pool(PoolConfig {
                acquire_timeout: 6 * PATIENCE,
                ..PoolConfig::default()
            })
            .store(
                Store::local(std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("responses"))
                    .unwrap(),
            )
            .build();
        Arc::new(interpreter.await.unwrap())
    };
    INTERPRETER.get_or_init(start).await
}

/// A gateway that answers on loopback.
pub(crate) struct Server {
    pub(crate) address: String,
    /// Its shared state, if it is in this process.
    here: Option<Gateway>,
    client: reqwest::Client,
    /// Whose things are asked for.
    owner: &'static str,
}

/// The model `m` gives these answers, each request the next one.
pub(crate) async fn scripted(
    answers: impl IntoIterator<Item = ScriptedAnswer>,
) -> (Server, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(answers));
    (serve(Arc::clone(&provider) as Arc<dyn Provider>).await, provider)
}

/// The model `m` is this one.
pub(crate) async fn serve(provider: Arc<dyn Provider>) -> Server {
    serve_with(provider, |_| {}).await
}

pub(crate) async fn serve_with(provider: Arc<dyn Provider>, change: impl FnOnce(&mut Options)) -> Server {
    let mut options = Options::default();
    change(&mut options);
    listen(gateway(provider, options, Records::in_memory().unwrap()).await).await
}

/// Lets a gateway answer, with a header that stands for keys.
pub(crate) async fn listen(gateway: Gateway) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Who calls is what the keys say; here a header stands for them.
    let owner = from_fn(async |mut request: Request, next: Next| {
        if let Some(owner) = request.headers().get("x-owner") {
            let owner = owner.to_str().unwrap().to_owned();
            request.extensions_mut().insert(Caller { owner });
        }
        next.run(request).await
    });
    let router = gateway.router().layer(owner);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Server {
        address,
        here: Some(gateway),
        client: client(),
        owner: "ann",
    }
}

pub(crate) async fn gateway(provider: Arc<dyn Provider>, options: Options, records: Records) -> Gateway {
    let models = Models::default().with("m", provider);
    Gateway::new(options, records, models, Arc::clone(interpreter().await))
}

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl HttpAnswer {
    /// The body of an answer that has to be good.
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    /// The status and the error's code, which have to be there.
    pub(crate) fn error(&self) -> (u16, &str) {
        assert!(self.body["error"]["message"].is_string(), "{}", self.body);
        (self.status, self.body["error"]["code"].as_str().unwrap())
    }
}

impl Server {
    /// A gateway without the header that stands for keys.
    pub(crate) fn at(address: String, gateway: Gateway) -> Self {
        Self {
            here: Some(gateway),
            ..Self::elsewhere(address)
        }
    }

    /// A gateway of another process.
    pub(crate) fn elsewhere(address: String) -> Self {
        Self {
            address,
            here: None,
            client: client(),
            owner: "local",
        }
    }

    /// Its shared state.
    pub(crate) fn gateway(&self) -> &Gateway {
        self.here.as_ref().unwrap()
    }

    /// The same, for somebody else.
    pub(crate) fn of(&self, owner: &'static str) -> Self {
        Self {
            address: self.address.clone(),
            here: self.here.clone(),
            client: client(),
            owner,
        }
    }

    /// Returns the metrics of the process.
    pub(crate) async fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.address);
        self.client.get(url).send().await.unwrap().text().await.unwrap()
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}/v1/{path}", self.address);
        self.client
            .request(method.parse().unwrap(), url)
            .header("x-owner", self.owner)
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> HttpAnswer {
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
        HttpAnswer { status, body }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        let request = self
            .request("POST", path)
            .header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    pub(crate) async fn get(&self, path: &str) -> HttpAnswer {
        self.send(self.request("GET", path)).await
    }

    /// A response to a request with these fields.
    pub(crate) async fn create(&self, fields: Value) -> HttpAnswer {
        self.post("responses", &body(fields)).await
    }

    /// A stream that is not read yet.
    pub(crate) async fn stream(&self, fields: Value) -> reqwest::Response {
        let mut body = body(fields);
        body["stream"] = json!(true);
        let request = self.request("POST", "responses").body(body.to_string());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer
    }

    /// Waits until a response has this status, and gives it.
    pub(crate) async fn until(&self, id: &str, status: &str) -> Value {
        until_ok(async || {
            let response = self.get(&format!("responses/{id}")).await.ok();
            if response["status"] == status {
                Ok(response)
            } else {
                Err(format!("not {status}: {response}"))
            }
        })
        .await
    }
}

fn body(mut fields: Value) -> Value {
    fields["model"] = json!("m");
    fields
}

/// The frames of a stream that has ended as streams have to.
pub(crate) fn frames(text: &str) -> impl Iterator<Item = &str> {
    let text = text
        .strip_suffix("data: [DONE]\n\n")
        .unwrap_or_else(|| panic!("{text}"));
    text.split_terminator("\n\n")
        .filter(|frame| !frame.starts_with(':'))
}

/// The events of a stream.
pub(crate) fn events(text: &str) -> Vec<Value> {
    frames(text)
        .map(|frame| {
            let (name, data) = frame.split_once("\ndata: ").unwrap();
            let event: Value = serde_json::from_str(data).unwrap();
            assert_eq!(name.strip_prefix("event: ").unwrap(), event["type"]);
            event
        })
        .collect()
}

pub(crate) fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

/// The interpreter as a tool.
pub(crate) fn interpreter_tool() -> Value {
    json!([{"type": "code_interpreter", "container": {"type": "auto"}}])
}

/// An answer that runs code.
pub(crate) fn runs(id: &str, code: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "code_interpreter", &json!({"code": code}).to_string())
}

/// The types of items.
pub(crate) fn types(items: &Value) -> Vec<&str> {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap()).collect()
}

/// The texts of items, each with its kind.
pub(crate) fn told(items: &Value) -> Vec<String> {
    let items = items.as_array().unwrap().iter();
    let told = items.map(|item| {
        let text = [
            &item["content"][0]["text"],
            &item["output"],
            &item["output"][0]["text"],
            &item["arguments"],
        ]
        .into_iter()
        .find_map(Value::as_str);
        let who = item["role"].as_str().or(item["type"].as_str()).unwrap();
        format!("{who}: {}", text.unwrap_or_default().trim())
    });
    told.collect()
}
