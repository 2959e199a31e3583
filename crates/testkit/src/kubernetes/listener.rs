//! Listening at a port that can be closed and opened again, as that of a killed and restarted API server.

use std::net::SocketAddr;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Serves while `serving` is true, each time on the same port.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(super) async fn serve(router: Router, mut serving: watch::Receiver<bool>) -> SocketAddr {
    let first = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = first.local_addr().unwrap();
    tokio::spawn(async move {
        let mut listener = Some(first);
        while serving.wait_for(|on| *on).await.is_ok() {
            let listening = listener.take().unwrap_or_else(|| listen(address));
            let mut connections = JoinSet::new();
            let accepting = async {
                while let Ok((stream, _)) = listening.accept().await {
                    let service = hyper_util::service::TowerToHyperService::new(router.clone());
                    let io = hyper_util::rt::TokioIo::new(stream);
                    connections.spawn(async move {
                        let server = hyper::server::conn::http1::Builder::new();
                        let _ = server.serve_connection(io, service).await;
                    });
                }
            };
            tokio::select! {
                () = accepting => {}
                _ = serving.wait_for(|on| !*on) => {}
            }
            // An answer that is under way is not given any more; then nobody listens.
            connections.shutdown().await;
        }
    });
    address
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(1024).unwrap()
}
