//! The layer above the protocol's own service: revisions before 2026-07-28 have no connection by
//! which a call can be stopped, so it follows their conversations.
//!
//! Such a client says in a request of its own that it gives a call up. Its `initialize` is answered
//! with a name for the conversation, which it sends with all that follows; by that and the
//! request's id the call is found. Its `DELETE` ends the conversation, and what it sends after that
//! is answered with 404. Sessions remember the conversations that have used them; nothing else is
//! remembered of one that goes on.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::http::header::CONTENT_TYPE;
use ::http::request::Parts;
use ::http::{HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body::Body;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use rmcp::ServerHandler;
use rmcp::model::{Implementation, RequestId};
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::Deserialize;
use tower_service::Service;

use crate::conversations::{CONVERSATION, McpConversation, conversation, stops_by_stream};
use crate::display::shows_images;
use crate::server::{OwnerOf, Server};

/// Bytes of a message that is looked into: those that are of interest are short.
const LOOKED_INTO: usize = 64 << 10;

type EndpointAnswer = Response<BoxBody<Bytes, Infallible>>;

/// A server over HTTP: a tower service to mount at `/mcp`.
#[derive(Clone)]
pub struct Endpoint<H = Server> {
    pub(super) inner: StreamableHttpService<H, LocalSessionManager>,
    pub(super) server: Server,
    pub(super) owner: OwnerOf,
    pub(super) max_body: usize,
}

/// As much of a message as is of interest.
#[derive(Deserialize)]
struct EndpointMessage {
    method: Option<String>,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    request_id: Option<RequestId>,
    client_info: Option<Implementation>,
}

impl<B, H> Service<Request<B>> for Endpoint<H>
where
    H: ServerHandler + Clone,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>> + std::fmt::Display,
{
    type Response = EndpointAnswer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<EndpointAnswer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move {
            if stops_by_stream(request.headers()) {
                return Ok(endpoint.inner.handle(request).await);
            }
            let (parts, body) = request.into_parts();
            let conversation = endpoint.conversation(&parts);
            if let Some(ended) = &conversation
                && endpoint.server.conversations().has_ended(ended)
            {
                let why = format!(
                    "the session of the header `{CONVERSATION}` has ended; send `initialize` without it"
                );
                return Ok(refuse(StatusCode::NOT_FOUND, why));
            }
            match (&parts.method, conversation) {
                (&Method::POST, conversation) => Ok(endpoint.earlier(parts, body, conversation).await),
                (&Method::DELETE, Some(conversation)) => {
                    endpoint.server.leave(&conversation);
                    let mut answer = Response::new(Full::default().boxed());
                    *answer.status_mut() = StatusCode::NO_CONTENT;
                    Ok(answer)
                }
                _ => Ok(endpoint.inner.handle(Request::from_parts(parts, body)).await),
            }
        })
    }
}

impl<H: ServerHandler> Endpoint<H> {
    /// Answers a request of an earlier revision.
    async fn earlier<B>(&self, parts: Parts, body: B, conversation: Option<McpConversation>) -> EndpointAnswer
    where
        B: Body + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let body = match Limited::new(body, self.max_body).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return refuse(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!(
                        "the request has more than {} bytes, the limit; send less, or raise \
                         `http.max_body` in the configuration",
                        self.max_body
                    ),
                );
            }
            Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("read the request: {error}")),
        };
        let message = looked_into(&body);
        let method = message.as_ref().and_then(|message| message.method.as_deref());
        let begins = method == Some("initialize");
        let client = message
            .as_ref()
            .and_then(|message| message.params.client_info.as_ref());
        let shows = client.is_some_and(shows_images);
        if method == Some("notifications/cancelled")
            && let Some(conversation) = conversation
            && let Some(id) = message.and_then(|message| message.params.request_id)
        {
            self.server.conversations().stop(&conversation, &id);
        }
        let mut answer = self
            .inner
            .handle(Request::from_parts(parts, Full::new(body)))
            .await;
        if begins
            && answer.status().is_success()
            && let Ok(name) = HeaderValue::from_str(&McpConversation::mint(shows))
        {
            answer.headers_mut().insert(CONVERSATION, name);
        }
        answer
    }

    fn conversation(&self, parts: &Parts) -> Option<McpConversation> {
        conversation(parts, (self.owner)(parts)?)
    }
}

fn looked_into(body: &Bytes) -> Option<EndpointMessage> {
    (body.len() <= LOOKED_INTO).then(|| serde_json::from_slice(body).ok())?
}

fn refuse(status: StatusCode, why: String) -> EndpointAnswer {
    let mut answer = Response::new(Full::new(Bytes::from(why)).boxed());
    *answer.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, text);
    answer
}

impl<H> std::fmt::Debug for Endpoint<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
