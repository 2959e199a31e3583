//! Connecting to a server: TCP, TLS, the WebSocket handshake. Only this step is ever retried.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, TryStreamExt, future};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, crypto};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::{Host, Url};

use super::link::Link;
use super::mux::{MuxTransport, Pulse};
use super::refusal::told;
use super::wire::{Hello, MAX_MESSAGE};
use crate::error::{RemoteError, http_status, is_unreachable};
use cellblock_sandbox::{Error, Result};

/// Maximum duration of one attempt.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Pauses between attempts.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
];

/// Address of another Cellblock's sandboxes, and how to connect to it.
#[derive(Clone)]
pub struct RemoteConfig {
    url: Url,
    key: Option<HeaderValue>,
    pulse: Pulse,
    allow_plain: bool,
}

impl std::fmt::Debug for RemoteConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RemoteConfig")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

impl RemoteConfig {
    /// Takes the server's address, `wss://…` or `https://…`. Unencrypted addresses, `ws://…` or
    /// `http://…`, must be on this machine unless [`allow_plain`](Self::allow_plain) permits
    /// others.
    pub fn new(url: &str) -> Result<Self> {
        let wrong = |reason: String| Error::request(format!("the address of remote sandboxes {reason}"));
        let mut url = Url::parse(url).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let scheme = match url.scheme() {
            "ws" | "http" => "ws",
            "wss" | "https" => "wss",
            other => {
                return Err(wrong(format!(
                    "starts with `{other}://`; use `wss://`, `https://`, `ws://` or `http://`"
                )));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "must not contain a password; set the key separately".to_owned(),
            ));
        }
        url.set_fragment(None);
        if url.host().is_none() || url.set_scheme(scheme).is_err() {
            return Err(wrong("has no host".to_owned()));
        }
        Ok(Self {
            url,
            key: None,
            pulse: Pulse::default(),
            allow_plain: false,
        })
    }

    /// Sends a key as `Authorization: Bearer …`.
    pub fn with_key(mut self, key: &str) -> Result<Self> {
        let value = HeaderValue::from_str(&format!("Bearer {}", key.trim()));
        let mut value = value.map_err(|_| {
            Error::request(
                "the key of remote sandboxes contains characters that are invalid in an HTTP header",
            )
        })?;
        value.set_sensitive(true);
        self.key = Some(value);
        Ok(self)
    }

    /// Permits code, data and key to be sent unencrypted to other machines. Only for networks
    /// without other users.
    #[must_use]
    pub const fn allow_plain(mut self) -> Self {
        self.allow_plain = true;
        self
    }

    /// Sets the pulse, whose limit is the time without messages after which the peer counts as
    /// gone.
    #[must_use]
    pub const fn with_pulse(mut self, pulse: Pulse) -> Self {
        self.pulse = pulse;
        self
    }

    /// Returns the address without its query, which may contain a key.
    pub fn address(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.into()
    }

    /// Connects, in a few attempts with pauses.
    pub(super) async fn connect(&self) -> Result<(Link, Hello)> {
        self.check()?;
        for pause in PAUSES {
            match self.try_once().await {
                Err(error) if may_pass(&error) => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        ?pause,
                        "retrying the connection"
                    );
                    sleep(pause).await;
                }
                other => return other,
            }
        }
        self.try_once().await
    }

    async fn try_once(&self) -> Result<(Link, Hello)> {
        let connected = timeout(CONNECT_LIMIT, self.transport()).await;
        let socket = connected
            .map_err(|_| self.unreachable(&format!("no response within {} s", CONNECT_LIMIT.as_secs())))??;
        Link::start(socket, self.pulse, None).await
    }

    async fn transport(&self) -> Result<impl MuxTransport<tungstenite::Error> + use<>> {
        let secure = self.url.scheme() == "wss";
        let port = self.url.port_or_known_default().unwrap_or(443);
        let tcp = match self.url.host() {
            Some(Host::Ipv4(address)) => self.tcp(&[(IpAddr::V4(address), port)]).await?,
            Some(Host::Ipv6(address)) => self.tcp(&[(IpAddr::V6(address), port)]).await?,
            Some(Host::Domain(name)) => {
                let found = tokio::net::lookup_host((name, port)).await;
                let found = found.map_err(|error| self.unreachable(&error.to_string()))?;
                let addresses: Vec<_> = found.map(|it| (it.ip(), port)).collect();
                self.tcp(&addresses).await?
            }
            None => return Err(self.unreachable("it has no host")),
        };
        let _ = tcp.set_nodelay(true);
        let socket: Socket = if secure {
            let name = ServerName::try_from(self.url.host_str().unwrap_or_default().trim_matches(['[', ']']))
                .map_err(|error| self.unreachable(&error.to_string()))?
                .to_owned();
            let tls = TlsConnector::from(tls().map_err(|reason| self.unreachable(&reason))?);
            let stream = tls.connect(name, tcp).await;
            Box::new(stream.map_err(|error| self.unreachable(&error.to_string()))?)
        } else {
            Box::new(tcp)
        };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let upgraded = client_async_with_config(self.request()?, socket, Some(config)).await;
        let (socket, _) = upgraded.map_err(|error| self.refused(&error))?;
        Ok(binary(socket))
    }

    /// Tries each address. Unless unencrypted connections to others are permitted, only those of
    /// this machine, whatever the name server returns.
    async fn tcp(&self, addresses: &[(IpAddr, u16)]) -> Result<TcpStream> {
        let mut reason = "it has no address".to_owned();
        for address in addresses {
            if self.url.scheme() == "ws" && !self.allow_plain && !address.0.is_loopback() {
                return Err(self.plain());
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => reason = error.to_string(),
            }
        }
        Err(self.unreachable(&reason))
    }

    /// Rejects unencrypted connections before a name is looked up.
    fn check(&self) -> Result<()> {
        let here = match self.url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if self.url.scheme() == "wss" || self.allow_plain || here {
            Ok(())
        } else {
            Err(self.plain())
        }
    }

    fn plain(&self) -> Error {
        Error::request(format!(
            "connect to the sandboxes at `{}`: code, data and key would be sent unencrypted to another \
             machine; use `https://`, or allow it",
            self.address()
        ))
    }

    fn request(&self) -> Result<Request> {
        let request = self.url.as_str().into_client_request();
        let mut request = request.map_err(|error| self.unreachable(&error.to_string()))?;
        if let Some(key) = &self.key {
            request.headers_mut().insert(header::AUTHORIZATION, key.clone());
        }
        Ok(request)
    }

    fn unreachable(&self, reason: &str) -> Error {
        RemoteError::Unreachable {
            address: self.address(),
            reason: told(reason),
        }
        .into()
    }

    fn refused(&self, error: &tungstenite::Error) -> Error {
        let tungstenite::Error::Http(response) = error else {
            return self.unreachable(&error.to_string());
        };
        let status = response.status().as_u16();
        RemoteError::Status {
            address: self.address(),
            status,
            hint: match status {
                401 | 403 => ": it requires another key",
                404 | 405 | 426 => ": it serves no sandboxes",
                429 | 503 => ": it is busy",
                _ => "",
            },
        }
        .into()
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

type Socket = Box<dyn Duplex>;

/// Returns whether another attempt may succeed: nothing has been requested yet.
fn may_pass(error: &Error) -> bool {
    is_unreachable(error) || matches!(http_status(error), Some(429 | 502..=504))
}

fn tls() -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier);
    match config {
        Ok(config) => Ok(Arc::new(config.with_no_client_auth())),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the binary messages of a WebSocket. The protocol has no text messages; a peer that sends
/// one is cut off.
fn binary<S>(socket: WebSocketStream<S>) -> impl MuxTransport<tungstenite::Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    socket
        .try_filter_map(|message| {
            future::ok(match message {
                Message::Binary(bytes) => Some(bytes),
                Message::Text(_) => Some(Bytes::new()),
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => None,
            })
        })
        .with(|bytes| future::ok(Message::Binary(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_invalid_address_names_valid_ones() {
        for (url, reason) in [
            ("sandbox", "cannot be read: relative URL without a base"),
            (
                "ftp://host/",
                "starts with `ftp://`; use `wss://`, `https://`, `ws://` or `http://`",
            ),
            (
                "https://user:secret@host/",
                "must not contain a password; set the key separately",
            ),
        ] {
            let error = RemoteConfig::new(url).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the address of remote sandboxes {reason}")
            );
        }
    }

    #[test]
    fn unencrypted_connections_to_other_machines_need_permission() {
        let check = |url: &str| RemoteConfig::new(url).unwrap().check();
        for url in [
            "http://127.0.0.1:1",
            "ws://[::1]:1",
            "http://localhost:1/x",
            "https://10.0.0.1",
            "wss://host",
        ] {
            check(url).unwrap();
        }
        for url in ["http://10.0.0.1", "ws://sandbox.internal", "http://0.0.0.0"] {
            let error = check(url).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("would be sent unencrypted to another machine"),
                "{error}"
            );
            assert_eq!(error.blame(), cellblock_sandbox::error::Blame::Caller);
            RemoteConfig::new(url).unwrap().allow_plain().check().unwrap();
        }
    }

    #[test]
    fn a_key_is_sent_and_not_shown() {
        let config = RemoteConfig::new("https://host/v1/sandbox?token=secret")
            .unwrap()
            .with_key("sk-secret\n")
            .unwrap();
        assert_eq!(config.address(), "wss://host/v1/sandbox");
        assert_eq!(
            config.request().unwrap().headers()["authorization"],
            "Bearer sk-secret"
        );
        assert!(!format!("{config:?}").contains("sk-"), "{config:?}");
        assert!(RemoteConfig::new("wss://host").unwrap().with_key("a\nb").is_err());
    }
}
