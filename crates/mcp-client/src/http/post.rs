//! Requests to a server. The library decides what to send; responses are limited and sorted here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, redirect};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::address::{Address, is_loopback};
use super::body;
use super::events;

use crate::failure::Failure;
use crate::wire::Wire;

/// Maximum number of bytes of an error response.
const ERROR: u64 = 64 << 10;
/// Maximum number of redirects.
const REDIRECTS: usize = 3;
/// Maximum number of times that a broken stream is resumed, and the maximum pause before that.
const RESUMED: usize = 5;
const RESUME_WAIT: Duration = Duration::from_secs(30);

type Headers = HashMap<HeaderName, HeaderValue>;
type Error = StreamableHttpError<Failure>;

/// Creates a connection to the server at an address, without sending anything.
pub(crate) fn start(
    address: &Address,
    connect: Duration,
    wire: Arc<Wire>,
) -> Result<StreamableHttpClientTransport<Http>, Failure> {
    // An error means that a cryptography provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .connect_timeout(connect)
        .default_headers(address.headers.clone())
        .redirect(following(address.clone()));
    // The environment configures proxies; this machine is never behind one.
    let builder = if is_loopback(&address.url) {
        builder.no_proxy()
    } else {
        builder
    };
    let client = builder.build().map_err(body::broken)?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str());
    let mut resuming = ExponentialBackoff::default();
    resuming.max_times = Some(RESUMED);
    resuming.max_delay = Some(RESUME_WAIT);
    config.retry_config = Arc::new(resuming);
    Ok(StreamableHttpClientTransport::with_client(
        Http { client, wire },
        config,
    ))
}

/// Follows redirects that repeat a request at the same server, as some add or remove a `/`; all
/// others are responses.
fn following(address: Address) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        let repeats = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let same = attempt.url().origin() == address.url.origin();
        let inside = address
            .within
            .as_ref()
            .is_none_or(|pattern| pattern.allows(attempt.url()));
        if repeats && same && inside && attempt.previous().len() <= REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    client: Client,
    wire: Arc<Wire>,
}

impl Http {
    async fn answer(
        &self,
        sent: &ClientJsonRpcMessage,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let request = request(sent);
        if !status.is_success() {
            return self.refused(sent, response).await;
        }
        let Some(id) = request else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = header(&response, HEADER_SESSION_ID);
        match kind(&response) {
            BodyKind::Events => {
                let events = events::read(response, Some(id), Arc::clone(&self.wire));
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            BodyKind::Json => {
                let text = body::whole(response, &self.wire).await?;
                let message = self.wire.read(&text)?;
                let message = message.map(|message| of(message, &id));
                let answers = matches!(
                    &message,
                    Some(ServerJsonRpcMessage::Response(answer)) if same(&answer.id, &id)
                ) || matches!(&message, Some(ServerJsonRpcMessage::Error(_)));
                match message {
                    Some(message) if answers => Ok(StreamableHttpPostResponse::Json(message, session)),
                    _ => Err(Failure::malformed("it responds to another request")),
                }
            }
            BodyKind::Other(kind) => Err(Failure::malformed(format!("its content type is {kind}"))),
        }
    }

    /// Handles an unsuccessful response.
    async fn refused(
        &self,
        sent: &ClientJsonRpcMessage,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let failure = Failure::Status {
            status: status.as_u16(),
            retry_after: cellblock_connector::retry_after(response.headers(), SystemTime::now()),
        };
        // These say more than a message: code can catch each as an error of its own.
        let typed = matches!(
            status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::PAYMENT_REQUIRED
                | StatusCode::TOO_MANY_REQUESTS
        );
        let Some(id) = request(sent).filter(|_| !typed) else {
            return Err(failure);
        };
        let json = matches!(kind(&response), BodyKind::Json);
        let text = if json {
            body::whole(response, &Wire::new(ERROR)).await.unwrap_or_default()
        } else {
            String::new()
        };
        let told = serde_json::from_str(&text)
            .ok()
            .and_then(|message| match message {
                ServerJsonRpcMessage::Error(mut error) => {
                    error.id = Some(id.clone());
                    Some(ServerJsonRpcMessage::Error(error))
                }
                _ => None,
            });
        let told = told.or_else(|| {
            // Servers of earlier revisions reject discovery in various ways; the library then
            // starts the older handshake.
            let discovers = matches!(
                sent,
                ClientJsonRpcMessage::Request(sent)
                    if matches!(sent.request, ClientRequest::DiscoverRequest(_))
            );
            let refused = || ErrorData::invalid_request(format!("HTTP status {}", status.as_u16()), None);
            (discovers && status.is_client_error()).then(|| ServerJsonRpcMessage::error(refused(), Some(id)))
        });
        told.map(|message| StreamableHttpPostResponse::Json(message, None))
            .ok_or(failure)
    }
}

impl StreamableHttpClient for Http {
    type Error = Failure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.wire.sending(&message);
        let body = serde_json::to_vec(&message).map_err(Error::Deserialize)?;
        let with_session = session.is_some();
        let sent = with(self.client.post(uri.as_ref()), session, headers)
            .header(ACCEPT, format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}"))
            .header(CONTENT_TYPE, JSON_MIME_TYPE)
            .body(body)
            .send();
        let answered = match sent.await {
            Ok(response) if response.status() == StatusCode::NOT_FOUND && with_session => {
                return Err(Error::SessionExpired);
            }
            Ok(response) => self.answer(&message, response).await,
            Err(error) => Err(body::broken(error)),
        };
        answered.or_else(|failure| {
            // The wire reports it precisely to a waiting caller, the error to others.
            let told = request(&message).and_then(|id| self.wire.fail(&id, &failure));
            told.map(|message| StreamableHttpPostResponse::Json(message, None))
                .ok_or(Error::Client(failure))
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        let sent = with(self.client.delete(uri.as_ref()), Some(session), headers).send();
        sent.await
            .map(drop)
            .map_err(|error| Error::Client(body::broken(error)))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let mut request =
            with(self.client.get(uri.as_ref()), session, headers).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        if let Some(id) = last_event {
            request = request.header(HEADER_LAST_EVENT_ID, id);
        }
        let response = request
            .send()
            .await
            .map_err(|error| Error::Client(body::broken(error)))?;
        match (response.status(), kind(&response)) {
            (StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND, _) => {
                Err(Error::ServerDoesNotSupportSse)
            }
            (status, BodyKind::Events) if status.is_success() => {
                Ok(events::read(response, None, Arc::clone(&self.wire)))
            }
            (status, _) => Err(Error::Client(Failure::status(status.as_u16()))),
        }
    }
}

fn with(mut request: RequestBuilder, session: Option<Arc<str>>, headers: Headers) -> RequestBuilder {
    if let Some(session) = session {
        request = request.header(HEADER_SESSION_ID, session.as_ref());
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
}

/// Declared type of a body.
enum BodyKind {
    Json,
    Events,
    Other(String),
}

fn kind(response: &Response) -> BodyKind {
    let Some(kind) = header(response, CONTENT_TYPE.as_str()) else {
        return BodyKind::Other("missing".to_owned());
    };
    let essence = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        JSON_MIME_TYPE => BodyKind::Json,
        EVENT_STREAM_MIME_TYPE => BodyKind::Events,
        other => BodyKind::Other(format!("`{}`", crate::words::told(other, 100))),
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

fn request(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// Compares ids; some servers return numbers as text.
fn same(answered: &RequestId, asked: &RequestId) -> bool {
    answered == asked || answered.to_string() == asked.to_string()
}

/// Assigns an error without an id to the request that it answers.
fn of(message: ServerJsonRpcMessage, id: &RequestId) -> ServerJsonRpcMessage {
    match message {
        ServerJsonRpcMessage::Error(mut error) if error.id.is_none() => {
            error.id = Some(id.clone());
            ServerJsonRpcMessage::Error(error)
        }
        other => other,
    }
}
