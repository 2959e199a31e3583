//! Requests to a provider: one POST, retried only until there is a response.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use cellblock_interpreter::text::or_space;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::OwnModel;
use super::error::ProviderError;
use super::key::ProviderKey;
use super::options::{Retries, Timeouts};

/// Maximum size in bytes of a response that is not a stream.
const MAX_BODY: usize = 8 << 20;
/// Maximum size of a stream in bytes.
const MAX_STREAM: usize = 256 << 20;
/// Maximum number of idle connections to a provider.
const MAX_IDLE: usize = 8;
/// Maximum length in characters of a provider's message in an error.
const MAX_MESSAGE: usize = 500;

/// A server with an OpenAI-compatible API, and the settings of its connection.
#[derive(Clone, Debug)]
pub struct ProviderEndpoint {
    base: Url,
    key: Option<ProviderKey>,
    timeouts: Timeouts,
    retries: Retries,
    client: Client,
}

impl ProviderEndpoint {
    /// Creates an endpoint for the server at `base`, which ends before the name of an operation, as
    /// in `http://127.0.0.1:8000/v1`.
    ///
    /// Rejects a key with `http://` to another machine; [`Endpoint::in_the_clear`] permits it.
    pub fn new(base: &str, key: Option<ProviderKey>) -> Result<Self, ProviderError> {
        let endpoint = Self::in_the_clear(base, key)?;
        if endpoint.key.is_some() && endpoint.base.scheme() == "http" && !is_loopback(&endpoint.base) {
            return Err(request(
                "the key would be sent unencrypted over `http://` to another machine; use `https://`, or \
                 permit it with `allow_http: true`",
            ));
        }
        Ok(endpoint)
    }

    /// Does the same, but permits sending the key unencrypted.
    pub fn in_the_clear(base: &str, key: Option<ProviderKey>) -> Result<Self, ProviderError> {
        let mut base =
            Url::parse(base).map_err(|error| request(format!("the address cannot be read: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(request(
                "the address must start with `http://` or `https://` and a host",
            ));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(request(
                "the address must not contain a password; set the key separately",
            ));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(request("the address must end with its path, without `?` or `#`"));
        }
        let path = format!("{}/", base.path().trim_end_matches('/'));
        base.set_path(&path);
        let timeouts = Timeouts::default();
        let client = client(timeouts, &base)?;
        Ok(Self {
            base,
            key,
            timeouts,
            retries: Retries::default(),
            client,
        })
    }

    /// Sets the timeouts.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Result<Self, ProviderError> {
        self.client = client(timeouts, &self.base)?;
        self.timeouts = timeouts;
        Ok(self)
    }

    /// Sets the retries.
    #[must_use]
    pub const fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Sends a request, retrying until there is a response.
    pub(super) async fn post(&self, operation: &str, body: &Value) -> Result<Body, ProviderError> {
        let url = self.base.join(operation);
        let url = url.map_err(|error| request(format!("the operation's address cannot be made: {error}")))?;
        let body = Bytes::from(body.to_string());
        let mut wait = self.retries.first_wait;
        for _ in 0..self.retries.count {
            match self.try_once(url.clone(), body.clone()).await {
                Err(error) if error.may_pass() => {
                    let asked = if let ProviderError::Status { retry_after, .. } = &error {
                        *retry_after
                    } else {
                        None
                    };
                    let pause = asked.unwrap_or(wait).min(self.retries.max_wait);
                    tracing::debug!(%error, ?pause, "retrying the request to the provider");
                    sleep(pause).await;
                    wait = wait.saturating_mul(2);
                }
                other => return other,
            }
        }
        self.try_once(url, body).await
    }

    /// Returns the models that the server lists, without retries.
    pub(super) async fn models(&self) -> Result<Vec<OwnModel>, ProviderError> {
        let url = self.base.join("models");
        let url = url.map_err(|error| request(format!("the operation's address cannot be made: {error}")))?;
        let whole = self.send(self.client.get(url)).await?.whole(Vec::new()).await?;
        let answer: Value = serde_json::from_slice(&whole)
            .map_err(|error| ProviderError::malformed(format!("the list of models is not JSON: {error}")))?;
        let listed = answer["data"]
            .as_array()
            .ok_or_else(|| ProviderError::malformed("the list of models has no `data`"))?;
        let model = |model: &Value| {
            Some(OwnModel {
                id: model["id"].as_str()?.to_owned(),
                created: model["created"].as_u64(),
            })
        };
        Ok(listed.iter().filter_map(model).collect())
    }

    async fn try_once(&self, url: Url, body: Bytes) -> Result<Body, ProviderError> {
        let request = self.client.post(url).header(CONTENT_TYPE, "application/json");
        self.send(request.body(body)).await
    }

    async fn send(&self, mut request: RequestBuilder) -> Result<Body, ProviderError> {
        if let Some(value) = self.key.as_ref().and_then(ProviderKey::header) {
            request = request.header(AUTHORIZATION, value);
        }
        let limit = self.timeouts.first;
        let total = self.timeouts.total;
        let deadline = Instant::now() + total;
        let late = |_| ProviderError::Timeout {
            waited: "no response",
            limit,
        };
        let response = timeout(limit, request.send())
            .await
            .map_err(late)?
            .map_err(connection)?;
        let status = response.status();
        let headers = response.headers().clone();
        let mut body = Body {
            response,
            idle: self.timeouts.idle,
            total,
            deadline,
            read: 0,
        };
        if status.is_success() {
            return Ok(body);
        }
        // The status says more than an unreadable body.
        let text = body
            .whole(Vec::new())
            .await
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        Err(ProviderError::Status {
            status: status.as_u16(),
            message: self.told(&serde_json::from_str(&text).unwrap_or(Value::String(text))),
            retry_after: retry_after(&headers),
        })
    }

    /// Returns an error as the provider reports it, in any form: its message, shortened and without
    /// the key.
    pub(super) fn told(&self, error: &Value) -> String {
        let message = [
            &error["error"]["message"],
            &error["message"],
            &error["error"],
            &error["detail"],
            error,
        ]
        .into_iter()
        .find_map(Value::as_str)
        .map_or_else(|| error.to_string(), str::to_owned);
        let message = self
            .key
            .as_ref()
            .map_or(message.clone(), |key| key.remove_from(&message));
        let visible = message.chars().map(or_space);
        visible.take(MAX_MESSAGE).collect::<String>().trim().to_owned()
    }
}

/// A response whose status is known and whose bytes are still arriving.
#[derive(Debug)]
pub(super) struct Body {
    response: Response,
    idle: Duration,
    total: Duration,
    deadline: Instant,
    /// Number of bytes that were read.
    read: usize,
}

impl Body {
    /// Returns the next bytes, within the maximum size and time.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ProviderError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let (waited, limit) = if left < self.idle {
            ("the response did not end", self.total)
        } else {
            ("the response stopped", self.idle)
        };
        let late = || ProviderError::Timeout { waited, limit };
        // For `timeout`, data that is already there is never late.
        if left.is_zero() {
            return Err(late());
        }
        let piece = timeout(left.min(self.idle), self.response.chunk())
            .await
            .map_err(|_| late())?
            .map_err(connection)?;
        self.read += piece.as_ref().map_or(0, Bytes::len);
        if self.read > MAX_STREAM {
            let limit = MAX_STREAM;
            return Err(ProviderError::TooLarge { what: "it", limit });
        }
        Ok(piece)
    }

    /// Returns all remaining bytes, up to the maximum.
    pub(super) async fn whole(&mut self, mut read: Vec<u8>) -> Result<Vec<u8>, ProviderError> {
        while let Some(bytes) = self.next().await? {
            read.extend_from_slice(&bytes);
            if read.len() > MAX_BODY {
                let limit = MAX_BODY;
                return Err(ProviderError::TooLarge { what: "it", limit });
            }
        }
        Ok(read)
    }
}

/// Returns whether an address leads only to this machine.
fn is_loopback(base: &Url) -> bool {
    match base.host_str() {
        Some(host) if host == "localhost" || host.ends_with(".localhost") => true,
        Some(host) => {
            let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
            address.is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

fn client(timeouts: Timeouts, base: &Url) -> Result<Client, ProviderError> {
    // An error means that a cryptography provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .connect_timeout(timeouts.connect)
        // Otherwise, many concurrent requests would leave a connection each.
        .pool_max_idle_per_host(MAX_IDLE)
        // A key is only for its own server.
        .redirect(reqwest::redirect::Policy::none());
    // The environment configures proxies (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`);
    // this machine is never behind one.
    let builder = if is_loopback(base) {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build().map_err(connection)
}

/// Returns an error without the address, which may contain a key.
fn connection(error: reqwest::Error) -> ProviderError {
    ProviderError::Connection(error.without_url())
}

fn request(message: impl Into<String>) -> ProviderError {
    ProviderError::Request {
        message: message.into(),
    }
}

/// Parses seconds; for the rare dates, our own delays are used.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
