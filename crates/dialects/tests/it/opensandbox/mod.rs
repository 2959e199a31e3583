//! The OpenSandbox protocol on the wire.

mod client;
mod execd;
mod files;
mod lifecycle;
mod terminals;

use cellblock_dialects::{DialectsOptions, OpenSandboxOptions};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::support::{DialectServer, RequestExt, client, serve};

pub(crate) fn options() -> DialectsOptions {
    DialectsOptions {
        opensandbox: Some(OpenSandboxOptions::default()),
        ..DialectsOptions::default()
    }
}

/// A sandbox of a server of its own, as a client has it.
pub(crate) struct SandboxClient {
    pub(crate) served: DialectServer,
    pub(crate) client: Client,
    pub(crate) id: String,
    pub(crate) execd: String,
    pub(crate) token: String,
}

/// Makes a sandbox and asks for its execd, with the requests of LiteLLM.
pub(crate) async fn open() -> SandboxClient {
    open_at(serve(options()).await).await
}

/// The same at a server of the test's own.
pub(crate) async fn open_at(served: DialectServer) -> SandboxClient {
    let client = client();
    let request = json!({
        "image": {"uri": "opensandbox/code-interpreter:v1.1.0"},
        "entrypoint": ["/opt/code-interpreter/code-interpreter.sh"],
        "timeout": 300,
        "resourceLimits": {"cpu": "1", "memory": "2Gi"},
        "env": {"COLOR": "blue"},
        "networkPolicy": {"defaultAction": "deny", "egress": []},
    });
    let made = client
        .post(served.url("/opensandbox/sandboxes"))
        .json(&request)
        .sent()
        .await;
    assert_eq!(made.status(), StatusCode::ACCEPTED);
    let made: Value = made.json().await.unwrap();
    assert_eq!(made["status"]["state"], "Running", "{made}");
    let id = made["id"].as_str().unwrap().to_owned();
    let place = format!("/opensandbox/sandboxes/{id}/endpoints/44772?use_server_proxy=false");
    let endpoint: Value = client.get(served.url(&place)).read().await;
    let address = served.address;
    assert_eq!(endpoint["endpoint"], format!("{address}/opensandbox/execd/{id}"));
    SandboxClient {
        execd: format!("http://{}", endpoint["endpoint"].as_str().unwrap()),
        token: endpoint["headers"]["X-EXECD-ACCESS-TOKEN"]
            .as_str()
            .unwrap()
            .to_owned(),
        id,
        served,
        client,
    }
}

impl SandboxClient {
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.execd))
            .header("X-EXECD-ACCESS-TOKEN", &self.token)
    }

    /// The events of a run.
    pub(crate) async fn events(&self, path: &str, request: Value) -> Vec<Value> {
        let answer = self.request(Method::POST, path).json(&request).sent().await;
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert_eq!(status, StatusCode::OK, "{text}");
        events(&text)
    }

    pub(crate) async fn code(&self, code: &str) -> Vec<Value> {
        let request = json!({"code": code, "context": {"language": "python"}});
        self.events("/code", request).await
    }
}

pub(crate) fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The text of a stream.
pub(crate) fn text(events: &[Value], stream: &str) -> String {
    let of = events.iter().filter(|it| it["type"] == stream);
    of.map(|it| it["text"].as_str().unwrap()).collect()
}

pub(crate) fn of<'a>(events: &'a [Value], kind: &str) -> Option<&'a Value> {
    events.iter().find(|it| it["type"] == kind)
}
