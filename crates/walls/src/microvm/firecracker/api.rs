//! Firecracker's API: JSON over HTTP on a Unix socket.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

/// Maximum size of an answer in bytes.
const ANSWER: usize = 64 << 10;
/// Maximum time for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A connection on which requests are answered.
#[derive(Debug)]
pub(super) struct FirecrackerApi {
    sender: SendRequest<Full<Bytes>>,
}

impl FirecrackerApi {
    /// Starts HTTP on a connected socket.
    pub(super) async fn start(stream: UnixStream) -> Result<Self, String> {
        let started = handshake(TokioIo::new(stream)).await;
        let (sender, connection) =
            started.map_err(|error| format!("start HTTP with Firecracker: {error}"))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to Firecracker ended");
            }
        });
        Ok(Self { sender })
    }

    /// Sets a resource.
    pub(super) async fn put(&mut self, path: &str, body: Value) -> Result<(), String> {
        self.request(Method::PUT, path, &body, ANSWER_LIMIT).await
    }

    /// Does the same for a request that takes time.
    pub(super) async fn put_within(
        &mut self,
        path: &str,
        body: Value,
        limit: Duration,
    ) -> Result<(), String> {
        self.request(Method::PUT, path, &body, limit).await
    }

    /// Changes a resource.
    pub(super) async fn patch(&mut self, path: &str, body: Value) -> Result<(), String> {
        self.request(Method::PATCH, path, &body, ANSWER_LIMIT).await
    }

    async fn request(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<(), String> {
        let name = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", "localhost")
            .header("Accept", "application/json")
            .header("Content-Type", "application/json")
            .body(Full::from(body.to_string()))
            .map_err(|error| format!("write `{name}`: {error}"))?;
        let exchange = async {
            let unanswered = |error| format!("Firecracker did not answer `{name}`: {error}");
            self.sender.ready().await.map_err(unanswered)?;
            let answer = self.sender.send_request(request).await.map_err(unanswered)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER).collect().await;
            let body = body.map_err(|error| format!("read Firecracker's answer to `{name}`: {error}"))?;
            Ok::<_, String>((status, body.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(limit, exchange)
            .await
            .map_err(|_| format!("Firecracker did not answer `{name}` within {} s", limit.as_secs()))??;
        if status == StatusCode::NO_CONTENT {
            return Ok(());
        }
        let told = serde_json::from_slice::<Value>(&body).ok();
        let told = told.as_ref().and_then(|it| it["fault_message"].as_str());
        Err(format!(
            "Firecracker rejected `{name}` with {status}: {}",
            told.unwrap_or("it gave no reason")
        ))
    }
}
