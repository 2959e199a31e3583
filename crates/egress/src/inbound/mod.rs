//! HTTP from clients to programs in sandboxes, the other direction than the proxy's.
//!
//! ```text
//! client ── request ──▶ server ── ProgramPort::to_program ── stream ──▶ program
//!        ◀─ answer ───         ◀─ ProgramPort::to_client ──
//! ```
//!
//! Everything that forwards requests to a port of a sandbox calls [`forward`], so that there is one
//! list of what passes. Programs are written by code that nobody trusts. They get nothing that a
//! client sends for the server or for other pages, and their answers change nothing about the
//! server: at an address of the server's own, browsers show their pages in a separate origin
//! ([`PageOrigin`]).

mod headers;

use http::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use http::{Request, Response, StatusCode, Uri, Version};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::upgrade::{OnUpgrade, on};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use headers::SEPARATE_ORIGIN;

/// Marks the answer of a program or another server, in its extensions. The server adds nothing to it.
#[derive(Clone, Copy, Debug)]
pub struct ProgramAnswer;

/// A port of a sandbox as its clients see it.
#[derive(Clone, Debug)]
pub struct ProgramPort {
    /// The port.
    pub port: u16,
    /// Origin of its pages.
    pub origin: PageOrigin,
    /// Request headers of the server or its protocol, in addition to those that no program gets.
    pub private: &'static [&'static str],
}

/// Origin of a program's pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageOrigin {
    /// An address of the server: browsers give its pages an opaque origin without cookies, storage
    /// and workers.
    Server {
        /// Path of the program's root for clients, without a `/` at its end; `None` if only a proxy
        /// before the server knows it.
        root: Option<String>,
        /// Whether any page may read the program's answers. Pages of the program need that to load
        /// their own data.
        is_readable: bool,
    },
    /// A host that serves nothing else.
    Host,
}

/// Lifetime of forwarded connections.
#[derive(Clone, Debug)]
pub struct ForwardScope {
    /// Tasks that are waited for when the server stops.
    pub tasks: TaskTracker,
    /// Canceled when connections have to end.
    pub ending: CancellationToken,
}

/// A request did not get an answer.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The program does not speak HTTP, or closed the connection early.
    #[error(transparent)]
    Broken(#[from] hyper::Error),
    /// The program answered with another protocol.
    #[error("it changed the protocol without being asked")]
    Unasked,
}

/// Returns the address of a request at the program: the path below a prefix, as it was sent.
///
/// # Errors
///
/// Returns the path if it is not one.
pub fn program_uri(uri: &Uri, prefix: &str) -> Result<Uri, String> {
    let path = uri.path().strip_prefix(prefix).unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{slash}{path}{query}")
        .parse()
        .map_err(|_| path.to_owned())
}

/// Forwards a request over a connection to the program, and returns its answer. A protocol to which
/// both sides upgrade passes, too.
///
/// The request's address is the program's ([`program_uri`]). `held` is dropped when an upgraded
/// connection ends, or with the answer's head.
///
/// # Errors
///
/// The program broke off, or changed the protocol without being asked.
pub async fn forward<S, B, H>(
    program: &ProgramPort,
    stream: S,
    mut request: Request<B>,
    scope: &ForwardScope,
    held: H,
) -> Result<Response<Incoming>, ForwardError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    H: Send + 'static,
{
    let client = request.extensions_mut().remove::<OnUpgrade>();
    let client = client.filter(|_| request.headers().contains_key(UPGRADE));
    let path = request.uri().path().to_owned();
    *request.version_mut() = Version::HTTP_11;
    program.to_program(request.headers_mut());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let ending = scope.ending.clone();
    // It ends with the answer's body, or with the client.
    tokio::spawn(async move { ending.run_until_cancelled(connection.with_upgrades()).await });
    let mut response = sender.send_request(request).await?;
    let is_upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if is_upgraded {
        let client = client.ok_or(ForwardError::Unasked)?;
        let upgraded = on(&mut response);
        scope.join(client, async { upgraded.await.ok().map(TokioIo::new) }, held);
    }
    program.to_client(response.headers_mut(), &path, is_upgraded);
    response.extensions_mut().insert(ProgramAnswer);
    Ok(response)
}

/// Sets the headers that ask for another protocol, or agree to it.
pub fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

impl ForwardScope {
    /// Moves bytes of another protocol in both directions until one side ends, or the scope does.
    /// Then `held` is dropped.
    pub fn join<S>(
        &self,
        client: OnUpgrade,
        server: impl Future<Output = Option<S>> + Send + 'static,
        held: impl Send + 'static,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let ending = self.ending.clone();
        let joined = async move {
            let _held = held;
            if let (Ok(client), Some(mut server)) = tokio::join!(client, server) {
                // Either side may end it at any time.
                let _ = copy_bidirectional(&mut TokioIo::new(client), &mut server).await;
            }
        };
        self.tasks
            .spawn(async move { ending.run_until_cancelled(joined).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_at_the_program_is_the_rest_of_the_path_as_it_was_sent() {
        let there = |path: &str| program_uri(&path.parse().unwrap(), "/ports/80").unwrap();
        assert_eq!(there("/ports/80/a%2Fb?c=d&e"), "/a%2Fb?c=d&e");
        assert_eq!(there("/ports/80//x"), "//x");
        assert_eq!(there("/ports/80"), "/");
        assert_eq!(there("/ports/80?a"), "/?a");
        assert_eq!(program_uri(&"/x?y".parse().unwrap(), "").unwrap(), "/x?y");
    }
}
