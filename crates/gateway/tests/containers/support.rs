//! A gateway with models that a test scripts, and short ways to ask it for things.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::provider::{ModelRequest, ModelStream, Provider, ProviderError};
use cellblock_artifact::Store;
use cellblock_gateway::records::Records;
use cellblock_gateway::{Caller, Gateway};
use cellblock_gateway::{Models, Options};
use cellblock_interpreter::Interpreter;
use cellblock_testkit::wait::until_ok;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// The gateway's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static USUAL: OnceCell<Bench> = OnceCell::const_new();

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

async fn interpreter() -> Interpreter {
    Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .pool(0)
        .preload(Vec::new())
        .store(Store::local(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("containers")).unwrap())
        .build()
        .await
        .unwrap()
}

/// Models by their names, each with a script of its own.
#[derive(Default)]
struct Scripts(Mutex<HashMap<String, Arc<ScriptedProvider>>>);

impl Provider for Scripts {
    fn stream(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelStream, ProviderError>> {
        let script = Arc::clone(&self.0.lock()[&request.model]);
        Box::pin(async move { script.stream(request).await })
    }
}

/// A gateway that answers on loopback, seen by one owner.
#[derive(Clone)]
pub(crate) struct Bench {
    address: String,
    pub(crate) gateway: Gateway,
    scripts: Arc<Scripts>,
    client: reqwest::Client,
    owner: &'static str,
}

/// The gateway that most tests share.
pub(crate) async fn bench() -> &'static Bench {
    USUAL
        .get_or_init(|| start(Records::in_memory().unwrap(), |_| {}))
        .await
}

/// A gateway of a test's own.
pub(crate) async fn start(records: Records, change: impl FnOnce(&mut Options)) -> Bench {
    let mut options = Options::default();
    change(&mut options);
    let scripts = Arc::new(Scripts::default());
    let models = Models::default().with("*", Arc::clone(&scripts) as Arc<dyn Provider>);
    let gateway = Gateway::new(options, records, models, interpreter().await);
    // One listener looks after containers; the other one says who calls by a header, which here
    // stands for keys.
    let watched = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = gateway.clone();
    tokio::spawn(async move { serving.serve(watched).await.unwrap() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let owner = from_fn(async |mut request: Request, next: Next| {
        let owner = request.headers()["x-owner"].to_str().unwrap().to_owned();
        request.extensions_mut().insert(Caller { owner });
        next.run(request).await
    });
    let router = gateway.router().layer(owner);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let _ = rustls::crypto::ring::default_provider().install_default();
    Bench {
        address,
        gateway,
        scripts,
        client: reqwest::Client::new(),
        owner: "ann",
    }
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

    pub(crate) fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap()
    }
}

impl Bench {
    /// The same gateway, for somebody else.
    pub(crate) fn of(&self, owner: &'static str) -> Self {
        Self {
            owner,
            ..self.clone()
        }
    }

    /// Has a model give these answers, one for each of its steps.
    pub(crate) fn script(
        &self,
        model: &str,
        answers: impl IntoIterator<Item = ScriptedAnswer>,
    ) -> Arc<ScriptedProvider> {
        let script = Arc::new(ScriptedProvider::new(answers));
        let mut scripts = self.scripts.0.lock();
        scripts.insert(model.to_owned(), Arc::clone(&script));
        script
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}/v1/{path}", self.address);
        self.client
            .request(method.parse().unwrap(), url)
            .header("x-owner", self.owner)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> HttpAnswer {
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
        HttpAnswer { status, body }
    }

    pub(crate) async fn get(&self, path: &str) -> HttpAnswer {
        self.send(self.request("GET", path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> HttpAnswer {
        self.send(self.request("DELETE", path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> HttpAnswer {
        let request = self
            .request("POST", path)
            .header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// Sends a form with a file and other fields.
    pub(crate) async fn upload(
        &self,
        path: &str,
        name: &str,
        bytes: &[u8],
        fields: &[(&str, &str)],
    ) -> HttpAnswer {
        let mut body = Vec::new();
        for (field, value) in fields {
            let part =
                format!("--cut\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
            body.extend(part.into_bytes());
        }
        let part =
            format!("--cut\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
        body.extend(part.into_bytes());
        body.extend(bytes);
        body.extend(b"\r\n--cut--\r\n");
        let request = self.request("POST", path);
        let request = request.header("content-type", "multipart/form-data; boundary=cut");
        self.send(request.body(body)).await
    }

    /// The id of an uploaded file.
    pub(crate) async fn file(&self, name: &str, bytes: &[u8]) -> String {
        let file = self
            .upload("files", name, bytes, &[("purpose", "user_data")])
            .await
            .ok();
        file["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn content(&self, path: &str) -> Vec<u8> {
        let answer = self.request("GET", path).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap().to_vec()
    }

    /// The id of a new container.
    pub(crate) async fn container(&self) -> String {
        let made = self.post("containers", &json!({"name": "mine"})).await.ok();
        made["id"].as_str().unwrap().to_owned()
    }

    /// A response of a model to what is said, whose code runs in a container.
    pub(crate) async fn respond(&self, model: &str, input: &Value, container: &Value) -> HttpAnswer {
        let body = json!({
            "model": model, "input": input, "include": ["code_interpreter_call.outputs"],
            "tools": [{"type": "code_interpreter", "container": container}],
        });
        self.post("responses", &body).await
    }

    /// Runs code in a container and returns its result: the item of its call.
    pub(crate) async fn run(&self, container: &str, code: &str) -> Value {
        let model = format!("run-{container}");
        self.script(&model, [runs("c", code), ScriptedAnswer::new().text("Done.")]);
        let response = self.respond(&model, &json!("go"), &json!(container)).await.ok();
        response["output"][0].clone()
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        until_ok(async || {
            let got = self.get(path).await.body;
            if is(&got) { Ok(got) } else { Err(got) }
        })
        .await
    }
}

/// An answer that runs code.
pub(crate) fn runs(id: &str, code: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().call(id, "code_interpreter", &json!({"code": code}).to_string())
}

/// The logs of a call, joined.
pub(crate) fn logs(call: &Value) -> String {
    let outputs = call["outputs"].as_array().unwrap().iter();
    let logs: Vec<_> = outputs.filter_map(|output| output["logs"].as_str()).collect();
    logs.join("\n")
}

/// The paths of a list of container files, and who made them.
pub(crate) fn paths(list: &Value) -> Vec<(&str, &str)> {
    let data = list["data"].as_array().unwrap().iter();
    data.map(|file| (file["path"].as_str().unwrap(), file["source"].as_str().unwrap()))
        .collect()
}
