//! Requests to a provider: one POST, tried again only as long as there is no answer.

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
use super::key::Key;

/// The most bytes of an answer that is not a stream.
const MAX_BODY: usize = 8 << 20;
/// The most bytes of a stream.
const MAX_STREAM: usize = 256 << 20;
/// The most connections to a provider that are kept without a request.
const MAX_IDLE: usize = 8;
/// The most characters of a provider's message that are shown.
const MAX_MESSAGE: usize = 500;

/// A server that speaks OpenAI's protocol, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    base: Url,
    key: Option<Key>,
    timeouts: Timeouts,
    retries: Retries,
    client: Client,
}

/// How long a provider may say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until it is connected to.
    pub connect: Duration,
    /// Until its answer begins.
    pub first: Duration,
    /// Between two pieces of its answer.
    pub idle: Duration,
    /// Until the end of its answer, however busy it is.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            total: Duration::from_mins(30),
        }
    }
}

/// How often a request is tried again, and when. A provider's own `Retry-After` counts, up to `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Tries after the first.
    pub count: u32,
    /// The wait before the second try; each later one is twice as long.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            count: 2,
            first: Duration::from_millis(500),
            most: Duration::from_secs(20),
        }
    }
}

impl Endpoint {
    /// The server at `base`, which ends before the name of an operation, as in `http://127.0.0.1:8000/v1`.
    ///
    /// A key over `http://` to another machine is refused; [`Endpoint::in_the_clear`] does it.
    pub fn new(base: &str, key: Option<Key>) -> Result<Self, ProviderError> {
        let endpoint = Self::in_the_clear(base, key)?;
        if endpoint.key.is_some() && endpoint.base.scheme() == "http" && !is_loopback(&endpoint.base) {
            return Err(request(
                "the key would go over `http://` to another machine, and anybody on the way could read it; use `https://`, or allow it by \
                 `allow_http: true`",
            ));
        }
        Ok(endpoint)
    }

    /// The same, also where anybody on the way can read the key.
    pub fn in_the_clear(base: &str, key: Option<Key>) -> Result<Self, ProviderError> {
        let mut base =
            Url::parse(base).map_err(|error| request(format!("the address cannot be read: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(request(
                "the address has to begin with `http://` or `https://` and a host",
            ));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(request(
                "the address must not hold a password; give the key by itself",
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

    /// Waits as long as these say.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Result<Self, ProviderError> {
        self.client = client(timeouts, &self.base)?;
        self.timeouts = timeouts;
        Ok(self)
    }

    /// Tries as often as these say.
    #[must_use]
    pub const fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Sends a request until there is an answer, which no later failure repeats.
    pub(super) async fn post(&self, operation: &str, body: &Value) -> Result<Body, ProviderError> {
        let url = self.base.join(operation);
        let url = url.map_err(|error| request(format!("the operation's address cannot be made: {error}")))?;
        let body = Bytes::from(body.to_string());
        let mut wait = self.retries.first;
        for _ in 0..self.retries.count {
            match self.try_once(url.clone(), body.clone()).await {
                Err(error) if error.may_pass() => {
                    let asked = if let ProviderError::Status { retry_after, .. } = &error {
                        *retry_after
                    } else {
                        None
                    };
                    let pause = asked.unwrap_or(wait).min(self.retries.most);
                    tracing::debug!(%error, ?pause, "ask the provider again");
                    sleep(pause).await;
                    wait = wait.saturating_mul(2);
                }
                other => return other,
            }
        }
        self.try_once(url, body).await
    }

    /// The models that the server lists, asked once.
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
        if let Some(value) = self.key.as_ref().and_then(Key::header) {
            request = request.header(AUTHORIZATION, value);
        }
        let limit = self.timeouts.first;
        let total = self.timeouts.total;
        let deadline = Instant::now() + total;
        let late = |_| ProviderError::Timeout {
            waited: "no answer",
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
        // A body that cannot be read says less than the status does.
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

    /// An error as a provider reports it, in whichever form: its message, shortened and without the key.
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

/// An answer whose status is known and whose bytes come.
#[derive(Debug)]
pub(super) struct Body {
    response: Response,
    idle: Duration,
    total: Duration,
    deadline: Instant,
    /// How many bytes were read.
    read: usize,
}

impl Body {
    /// The next bytes. However busy a server is, there are not more of them than allowed, and not for longer.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ProviderError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let (waited, limit) = if left < self.idle {
            ("the answer had no end", self.total)
        } else {
            ("the answer stopped and nothing came", self.idle)
        };
        let late = || ProviderError::Timeout { waited, limit };
        // What is there at once is never late for `timeout`.
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

    /// All bytes after those that were read already, which are bounded.
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

/// Whether an address leads nowhere but to this machine.
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
    // An error means that a provider of cryptography is there already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .connect_timeout(timeouts.connect)
        // Many requests at once would otherwise leave a connection each.
        .pool_max_idle_per_host(MAX_IDLE)
        // A key is for the server that it was given for.
        .redirect(reqwest::redirect::Policy::none());
    // Proxies are those of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`); this machine is never behind one.
    let builder = if is_loopback(base) {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build().map_err(connection)
}

/// An error without the address, in which a key may stand.
fn connection(error: reqwest::Error) -> ProviderError {
    ProviderError::Connection(error.without_url())
}

fn request(message: impl Into<String>) -> ProviderError {
    ProviderError::Request {
        message: message.into(),
    }
}

/// Seconds; dates are rare, and then our own waits count.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
