//! Connections: taken one by one, encrypted where that is wanted, and let come to their end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::tls::Tls;

/// Bytes that are sent and not taken yet, of a connection.
const SEND_BUFFER: usize = 256 << 10;
/// How long to wait when no connection can be taken, as when no descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);

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
    pub(super) tls: Option<Arc<Tls>>,
    /// When it is cancelled, connections are taken no more, and those that there are end with the answer that they are giving.
    pub(super) stopping: CancellationToken,
    /// When it is cancelled, they end where they are.
    pub(super) closing: CancellationToken,
    /// What is running.
    pub(super) connections: TaskTracker,
}

impl Acceptor {
    /// Accepts connections until it is stopped.
    pub(super) async fn run(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(self.max_connections));
        loop {
            let next = async {
                // The semaphore is never closed.
                let place = Arc::clone(&places).acquire_owned().await.ok();
                (place, listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                next = next => next,
                () = self.stopping.cancelled() => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let acceptor = self.clone();
                    self.connections.spawn(async move {
                        let _place = place;
                        let closing = acceptor.closing.clone();
                        tokio::select! {
                            () = acceptor.serve(stream, peer) => {}
                            () = closing.cancelled() => {}
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "take a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        // Events of a stream are small, and should not wait for one another.
        let _ = stream.set_nodelay(true);
        // What a client does not read waits here and at the client; left alone, the kernel lets it grow to megabytes.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER);
        let Some(tls) = &self.tls else {
            return self.answer(stream, peer).await;
        };
        let encrypted = tls.acceptor().accept(stream);
        match tokio::time::timeout(self.header_timeout, encrypted).await {
            Ok(Ok(stream)) => self.answer(stream, peer).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "begin TLS"),
            Err(_) => tracing::debug!(%peer, "TLS was not begun in time"),
        }
    }

    async fn answer(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: SocketAddr) {
        let router = self.router.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = &error as &dyn std::error::Error, %peer, "a connection broke");
        }
    }
}
