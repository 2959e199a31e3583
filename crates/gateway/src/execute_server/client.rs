//! Asking a server that keeps nothing.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cellblock_agent::provider::ProviderKey;
use cellblock_interpreter::text::or_space;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::address::base;
use super::answer::{ExecuteServerAnswer, read};
use super::error::ExecuteServerError;
use super::place::{ExecutePlace, StartExecuteServer};

/// Maximum time of one attempt to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Maximum time in which a server reports its health.
const HEALTH_LIMIT: Duration = Duration::from_secs(10);
/// The pauses between tries to connect.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
];
/// Additional time for a server on top of that for code and its packages.
const SLACK: Duration = Duration::from_secs(30);
/// Maximum number of bytes that are read of a response that is not a result.
const SMALL: usize = 64 << 10;
/// Maximum number of characters of a server's message in an error.
const MESSAGE: usize = 500;

/// Options for the requests to a server.
#[derive(Clone, Debug)]
pub struct ExecuteServerOptions {
    /// Sent as `Authorization: Bearer …`.
    pub key: Option<ProviderKey>,
    /// Whether code and key may travel unencrypted to another machine.
    pub allow_plain: bool,
    /// The most bytes of an answer, files in base64 included.
    pub answer_bytes: usize,
}

impl Default for ExecuteServerOptions {
    fn default() -> Self {
        Self {
            key: None,
            allow_plain: false,
            answer_bytes: 64 << 20,
        }
    }
}

/// A server that runs code and keeps nothing.
#[derive(Clone, Debug)]
pub struct ExecuteServer {
    place: ExecutePlace,
    options: ExecuteServerOptions,
    client: Client,
}

/// Health that a server reports.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ServerHealth {
    /// `healthy`.
    pub status: String,
    /// Mode of execution; `python` is required here.
    #[serde(default)]
    pub mode: Option<String>,
    /// The version of that.
    #[serde(default)]
    pub runtime_version: Option<String>,
    /// Maximum number of executions at a time.
    #[serde(default)]
    pub capacity: Option<f64>,
    /// Number of executions that run now.
    #[serde(default)]
    pub current_load: Option<f64>,
}

impl ServerHealth {
    /// The health of a server that is not running yet.
    fn unasked() -> Self {
        Self {
            status: "healthy".to_owned(),
            mode: None,
            runtime_version: None,
            capacity: None,
            current_load: None,
        }
    }
}

/// Code to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Execute {
    /// The code.
    pub code: String,
    /// Packages that it needs.
    pub requirements: Vec<String>,
    /// Maximum time of the code, and of the installation of its packages.
    pub timeout: Duration,
    /// Files beside it, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

#[derive(Serialize)]
struct Body<'a> {
    code: &'a str,
    /// Whole seconds, which every server takes.
    timeout_seconds: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    requirements: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<&'a str, String>,
}

impl ExecuteServer {
    /// A server at this address. Nothing is sent yet.
    pub fn new(address: &str, options: ExecuteServerOptions) -> Result<Self, ExecuteServerError> {
        let base = base(address, options.allow_plain)?;
        Self::at(ExecutePlace::Fixed(base), options)
    }

    /// A server that is started for each call, and ended after it.
    pub fn starting(
        start: StartExecuteServer,
        options: ExecuteServerOptions,
    ) -> Result<Self, ExecuteServerError> {
        Self::at(ExecutePlace::Started(start), options)
    }

    fn at(place: ExecutePlace, options: ExecuteServerOptions) -> Result<Self, ExecuteServerError> {
        // An error means that a provider of cryptography is there already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            // A key is for the server that it was given for.
            .redirect(reqwest::redirect::Policy::none())
            // A connection that was used may be closed at any moment, and a request on it would be
            // of unknown fate.
            .pool_max_idle_per_host(0)
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| ExecuteServerError::Request(format!("prepare a client: {error}")))?;
        Ok(Self {
            place,
            options,
            client,
        })
    }

    /// Connects, and makes sure that Python can be run. Servers that are started for calls are not
    /// asked: that would start one.
    pub async fn health(&self) -> Result<ServerHealth, ExecuteServerError> {
        let ExecutePlace::Fixed(base) = &self.place else {
            return Ok(ServerHealth::unasked());
        };
        let url = url(base, "health")?;
        let asked = async {
            let response = self.send(|| self.client.get(url.clone())).await?;
            let bytes = self.ok(response, SMALL).await?;
            serde_json::from_slice::<ServerHealth>(&bytes).map_err(|error| ExecuteServerError::Unread {
                reason: format!(
                    "its health cannot be read at line {}, column {}",
                    error.line(),
                    error.column()
                ),
            })
        };
        let health = timeout(HEALTH_LIMIT + CONNECT_LIMIT, asked).await.map_err(|_| {
            ExecuteServerError::NotReady {
                reason: format!("it did not tell its health within {} s", HEALTH_LIMIT.as_secs()),
            }
        })??;
        let not = |what: &str, said: &str| ExecuteServerError::NotReady {
            reason: format!("its {what} is `{}`", visible(said)),
        };
        if health.status != "healthy" {
            return Err(not("status", &health.status));
        }
        match health.mode.as_deref() {
            None | Some("python") => Ok(health),
            Some(mode) => Err(not("mode", mode)),
        }
    }

    /// Runs code once. Only a connection that could not be made is tried again.
    pub async fn run(&self, execute: &Execute) -> Result<ExecuteServerAnswer, ExecuteServerError> {
        let seconds = execute.timeout.as_secs_f64().ceil().max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast of a float saturates"
        )]
        let timeout_seconds = seconds.min(f64::from(u32::MAX)) as u64;
        let body = Body {
            code: &execute.code,
            timeout_seconds,
            requirements: &execute.requirements,
            files: execute
                .files
                .iter()
                .map(|(name, bytes)| (name.as_str(), STANDARD.encode(bytes)))
                .collect(),
        };
        let body = serde_json::to_vec(&body)
            .map_err(|error| ExecuteServerError::Request(format!("write the request: {error}")))?;
        let body = Bytes::from(body);
        // What was started ends when this returns, or is dropped.
        let (base, _keep) = self.place.find(self.options.allow_plain).await?;
        let url = url(&base, "execute")?;
        // Its packages have as long as the code.
        let limit = Duration::from_secs(timeout_seconds)
            .saturating_mul(2)
            .saturating_add(SLACK);
        let response = self
            .send(|| {
                self.client
                    .post(url.clone())
                    .header(CONTENT_TYPE, "application/json")
                    .body(body.clone())
                    .timeout(limit)
            })
            .await
            .map_err(|error| late(error, limit))?;
        let whole = timeout(limit, self.ok(response, self.options.answer_bytes));
        let bytes = whole.await.map_err(|_| ExecuteServerError::Late { limit })?;
        read(&bytes.map_err(|error| late(error, limit))?)
    }

    /// Sends what `request` makes until it is sent.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, ExecuteServerError> {
        let once = || {
            let request = request();
            match self.options.key.as_ref().and_then(ProviderKey::header) {
                Some(key) => request.header(AUTHORIZATION, key),
                None => request,
            }
            .send()
        };
        for pause in PAUSES {
            match once().await {
                // There was no connection, so nothing has reached anybody.
                Err(error) if error.is_connect() => {
                    tracing::debug!(
                        error = reason(&error),
                        ?pause,
                        "connect to the execution server again"
                    );
                    sleep(pause).await;
                }
                other => return other.map_err(|error| unsent(&error)),
            }
        }
        once().await.map_err(|error| unsent(&error))
    }

    /// The bytes of an answer that is one.
    async fn ok(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, ExecuteServerError> {
        let status = response.status();
        let limit = if status.is_success() { limit } else { SMALL };
        let mut whole = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) if whole.len() + bytes.len() <= limit => whole.extend_from_slice(&bytes),
                Ok(Some(_)) if status.is_success() => return Err(ExecuteServerError::TooLarge { limit }),
                Ok(Some(_) | None) => break,
                Err(_) if !status.is_success() => break,
                Err(error) => return Err(cut(&error)),
            }
        }
        if status.is_success() {
            return Ok(whole);
        }
        let reason = self.told(&whole);
        Err(match status.as_u16() {
            429 => ExecuteServerError::Busy { reason },
            status => ExecuteServerError::Status { status, reason },
        })
    }

    /// A server's message: short, visible, and without the key.
    fn told(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let message = serde_json::from_slice::<serde_json::Value>(body)
            .ok()
            .and_then(|body| {
                [
                    &body["error"]["message"],
                    &body["error"],
                    &body["message"],
                    &body["detail"],
                ]
                .into_iter()
                .find_map(|message| message.as_str().map(str::to_owned))
            });
        let message = message.unwrap_or_else(|| text.into_owned());
        let key = self.options.key.as_ref();
        visible(&key.map_or(message.clone(), |key| key.remove_from(&message)))
    }
}

fn url(base: &Url, operation: &str) -> Result<Url, ExecuteServerError> {
    let url = base.join(operation);
    url.map_err(|error| {
        ExecuteServerError::Request(format!("the operation's address cannot be made: {error}"))
    })
}

fn visible(text: &str) -> String {
    let visible = text.chars().map(or_space);
    visible.take(MESSAGE).collect::<String>().trim().to_owned()
}

fn unsent(error: &reqwest::Error) -> ExecuteServerError {
    if error.is_connect() {
        ExecuteServerError::Unreachable {
            reason: reason(error),
        }
    } else {
        cut(error)
    }
}

/// Describes an answer that did not arrive, or not completely.
fn cut(error: &reqwest::Error) -> ExecuteServerError {
    if error.is_timeout() {
        // The caller knows how long that was.
        return ExecuteServerError::Late {
            limit: Duration::ZERO,
        };
    }
    ExecuteServerError::Cut {
        reason: reason(error),
    }
}

fn late(error: ExecuteServerError, limit: Duration) -> ExecuteServerError {
    match error {
        ExecuteServerError::Late { .. } => ExecuteServerError::Late { limit },
        other => other,
    }
}

/// The innermost cause, which names no address.
fn reason(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(next) = cause.and_then(std::error::Error::source) {
        cause = Some(next);
    }
    cause.map_or_else(
        || "the request failed".to_owned(),
        |cause| visible(&cause.to_string()),
    )
}
