//! Open Terminal, as Open WebUI uses it.

mod client;
mod commands;
mod files;
mod isolation;
mod notebooks;
mod python;
mod skills;
mod terminals;

use cellblock_dialects::DialectsOptions;
use cellblock_dialects::open_terminal::OpenTerminalOptions;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::support::{DialectServer, KEYS, RequestExt, client};

/// A chat of one user of Open WebUI.
#[derive(Clone, Debug)]
pub(crate) struct Chat {
    base: String,
    http: Client,
    pub(crate) key: &'static str,
    pub(crate) user: &'static str,
    pub(crate) id: &'static str,
}

pub(crate) async fn server() -> DialectServer {
    DialectServer::start(DialectsOptions {
        open_terminal: Some(OpenTerminalOptions::default()),
        ..DialectsOptions::default()
    })
    .await
}

impl Chat {
    pub(crate) fn new(server: &DialectServer) -> Self {
        Self {
            base: server.url("/open-terminal"),
            http: client(),
            key: KEYS[0].0,
            user: "user-1",
            id: "chat-1",
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(self.key)
            .header("X-User-Id", self.user)
            .header("X-Session-Id", self.id)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        answer(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::DELETE, path)).await
    }

    /// The answer of a request that must succeed.
    pub(crate) async fn done(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.post(path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub(crate) async fn read(&self, path: &str) -> Value {
        let (status, answer) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}

async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.sent().await;
    let status = response.status();
    let text = response.text().await.unwrap();
    let answer = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: not JSON: {text}"));
    (status, answer)
}
