//! Connections: taken one by one, encrypted where that is wanted, and let come to their end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::http::uri::Scheme;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::guarded::GuardedStream;
use super::throttle::Throttle;
use super::tls::Tls;
use crate::replicas::DRAINING;
use crate::state::connections::{ConnectionPlace, LiveConnections};

/// Bytes that are sent and not taken yet, of a connection.
const SEND_BUFFER: usize = 256 << 10;
/// Pause if no connection can be accepted, as when no descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);

/// Connections that were not taken, of addresses that have their share.
static CROWDS: Throttle = Throttle::new();

/// Returns the address that a request comes from, if it came over a connection.
pub(super) fn peer(request: &axum::extract::Request) -> Option<SocketAddr> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map(|ConnectInfo(peer)| *peer)
}

/// Takes connections, and answers them with a router.
#[derive(Clone, Debug)]
pub(super) struct Acceptor {
    pub(super) router: Router,
    pub(super) max_connections: usize,
    pub(super) header_timeout: Duration,
    /// Maximum time in which a client reads nothing of what is sent to it.
    pub(super) write_timeout: Duration,
    /// All open connections, of other listeners, too.
    pub(super) live: LiveConnections,
    pub(super) tls: Option<Arc<Tls>>,
    /// Token whose cancellation makes each answer end its connection, so that clients open the next
    /// one elsewhere.
    pub(super) draining: CancellationToken,
    /// Token whose cancellation ends connections with the answer that they are giving, and new ones
    /// after the first.
    pub(super) stopping: CancellationToken,
    /// Token whose cancellation ends the acceptance of connections, and all connections where they are.
    pub(super) closing: CancellationToken,
    /// Connections that are open.
    pub(super) connections: TaskTracker,
}

impl Acceptor {
    /// Accepts connections until it is closed.
    pub(super) async fn run(self, listener: &TcpListener) {
        let room = self.live.room(self.max_connections);
        loop {
            let next = async {
                let (stream, peer) = listener.accept().await?;
                let place = room.place(peer.ip()).await;
                Ok::<_, std::io::Error>((stream, peer, place))
            };
            let accepted = tokio::select! {
                next = next => next,
                () = self.closing.cancelled() => return,
            };
            match accepted {
                Ok((stream, peer, Some(place))) => {
                    let acceptor = self.clone();
                    self.connections.spawn(async move {
                        let [closing, ended] =
                            [&acceptor.closing, &place.connection.closing].map(Clone::clone);
                        tokio::select! {
                            () = acceptor.serve(stream, peer, place) => {}
                            () = closing.cancelled() => {}
                            () = ended.cancelled() => {}
                        }
                    });
                }
                Ok((_, peer, None)) => {
                    if let Some(more) = CROWDS.pass() {
                        tracing::warn!(%peer, not_logged = more, "an address has its share of connections");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "take a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, stream: TcpStream, peer: SocketAddr, place: ConnectionPlace) {
        // Events of a stream are small, and should not wait for one another.
        let _ = stream.set_nodelay(true);
        // What a client does not read waits here and at the client; left alone, the kernel lets it
        // grow to megabytes.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER);
        let place = Arc::new(place);
        let stream = GuardedStream::new(stream, Arc::clone(&place), self.write_timeout);
        let Some(tls) = &self.tls else {
            return self.answer(stream, peer, place).await;
        };
        let encrypted = tls.acceptor().accept(stream);
        match tokio::time::timeout(self.header_timeout, encrypted).await {
            Ok(Ok(stream)) => self.answer(stream, peer, place).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "begin TLS"),
            Err(_) => tracing::debug!(%peer, "TLS was not begun in time"),
        }
    }

    async fn answer(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        place: Arc<ConnectionPlace>,
    ) {
        let router = self.router.clone();
        let is_encrypted = self.tls.is_some();
        let draining = self.draining.clone();
        let retiring = place.connection.retiring.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            if is_encrypted {
                // Routes whose answers have addresses of this server name it as the client does.
                request.extensions_mut().insert(Scheme::HTTPS);
            }
            let served = place.request();
            let router = router.clone();
            let draining = draining.clone();
            async move {
                let mut response = served.answer(router.oneshot(request)).await?;
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    served.upgraded();
                } else if draining.is_cancelled() {
                    let headers = response.headers_mut();
                    headers.insert(CONNECTION, HeaderValue::from_static("close"));
                    headers.insert(DRAINING, HeaderValue::from_static("true"));
                }
                // The closure goes with the body, which is dropped when it was sent or nobody wants
                // it any more.
                let hold = move |error| {
                    let _held = &served;
                    error
                };
                Ok::<_, std::convert::Infallible>(response.map(|body| body.map_err(hold)))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        // hyper cuts a connection that has sent nothing yet. One that begins now gets its first
        // answer, which ends it.
        let is_late = self.stopping.is_cancelled();
        let last = async {
            tokio::select! {
                () = self.stopping.cancelled(), if !is_late => {}
                () = retiring.cancelled() => {}
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = last => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = &error as &dyn std::error::Error, %peer, "a connection broke");
        }
    }
}
