//! E2B's API.

mod branches;
mod clients;
mod code;
mod control;
mod envd;
mod fields;
mod network;
mod processes;
mod shelf;
mod templates;
mod volumes;

use cellblock_dialects::{DialectTerms, DialectsOptions, E2bOptions};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::support::{DialectServer, KeyRing, RequestExt};

/// Upload limit of the servers.
const MAX_UPLOAD: u64 = 1 << 20;

const KEY: &str = "e2b_0123456789abcdef";

/// A server of this dialect, and a client of it.
struct E2bFixture {
    server: DialectServer,
    http: reqwest::Client,
}

/// A sandbox.
#[derive(Clone, Debug)]
struct Sandbox {
    id: String,
    access: Option<String>,
}

impl E2bFixture {
    async fn start() -> Self {
        Self::with(E2bOptions::default()).await
    }

    async fn with(e2b: E2bOptions) -> Self {
        Self::on(e2b, |_| {}).await
    }

    /// Starts one on terms that the test changes.
    async fn on(e2b: E2bOptions, change: impl FnOnce(&mut DialectTerms)) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Clients in debug mode have no key.
        let keys = if e2b.debug {
            KeyRing::Open
        } else {
            KeyRing::Beginning("e2b_")
        };
        let options = DialectsOptions {
            e2b: Some(e2b),
            ..DialectsOptions::default()
        };
        Self {
            server: DialectServer::with(&options, keys, |terms| {
                terms.max_upload = MAX_UPLOAD;
                change(terms);
            })
            .await,
            http: reqwest::Client::builder().tls_certs_only([]).build().unwrap(),
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/e2b{path}", self.server.address)
    }

    /// A request to the control API.
    fn api(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path)).header("x-api-key", KEY)
    }

    /// A request to a sandbox.
    fn inside(&self, sandbox: &Sandbox, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, self.url(path));
        let request = request.header("e2b-sandbox-id", &sandbox.id);
        match &sandbox.access {
            Some(access) => request.header("x-access-token", access),
            None => request,
        }
    }

    async fn create(&self, body: Value) -> Sandbox {
        let mut body = body;
        if body.get("templateID").is_none() {
            body["templateID"] = json!("base");
        }
        let made = self.api(Method::POST, "/v2/sandboxes").json(&body).sent().await;
        assert_eq!(made.status(), 201, "{:?}", made.text().await);
        let made: Value = made.json().await.unwrap();
        Sandbox {
            id: made["sandboxID"].as_str().unwrap().to_owned(),
            access: made["envdAccessToken"].as_str().map(str::to_owned),
        }
    }

    /// Runs code, and returns the lines of the answer.
    async fn run(&self, sandbox: &Sandbox, body: Value) -> Vec<Value> {
        let ran = self
            .inside(sandbox, Method::POST, "/execute")
            .json(&body)
            .sent()
            .await;
        assert_eq!(ran.status(), 200, "{:?}", ran.text().await);
        let text = ran.text().await.unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The text of the value that code ends with.
    async fn value(&self, sandbox: &Sandbox, body: Value) -> String {
        let lines = self.run(sandbox, body).await;
        let found = lines.iter().find(|it| it["is_main_result"] == json!(true));
        let text = found.and_then(|it| it["text"].as_str());
        text.unwrap_or_else(|| panic!("no value in {lines:#?}"))
            .to_owned()
    }

    /// Calls a method of the daemon.
    async fn call(&self, sandbox: &Sandbox, method: &str, body: Value) -> Response {
        self.inside(sandbox, Method::POST, method)
            .json(&body)
            .sent()
            .await
    }
}

/// The message of an answer in E2B's form of an error.
async fn refused(response: Response, status: u16) -> String {
    assert_eq!(response.status(), status, "{:?}", response.text().await);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], json!(status), "{body}");
    body["message"].as_str().unwrap().to_owned()
}
