//! Use of a client connection after CONNECT or an upgrade.

use std::sync::Arc;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

use crate::authority::refusing;
use crate::connection;
use crate::dial::{Socket, classify};
use crate::entry::RequestEntry;
use crate::front::Front;
use crate::proxy::ProxyState;
use crate::refusal::EgressRefusal;
use crate::rules::TUNNEL;
use crate::target::{EgressTarget, TargetHost};
use crate::upstream::Upstream;

/// Size of the buffer of each direction.
const BUFFER: usize = 64 << 10;

/// The rest of a client connection.
#[derive(Debug)]
pub(crate) enum ConnectionRest {
    /// Bytes are copied to a server and back.
    Tunnel {
        client: OnUpgrade,
        upstream: Socket,
        entry: RequestEntry,
    },
    /// TLS ends here, and requests follow.
    Intercept { client: OnUpgrade, target: EgressTarget },
    /// A WebSocket: bytes are copied between two connections that were HTTP.
    Socket {
        client: OnUpgrade,
        server: OnUpgrade,
        upstream: Upstream,
        entry: RequestEntry,
    },
}

impl ConnectionRest {
    /// Serves the rest of a connection to the proxy.
    pub(crate) async fn serve(self, shared: &Arc<ProxyState>) {
        match self {
            Self::Intercept { client, target } => intercept(shared, client, target).await,
            copied => copied.copy(shared).await,
        }
    }

    /// Serves a tunnel or a WebSocket. Nothing else is possible inside an intercepted connection.
    async fn copy(self, shared: &Arc<ProxyState>) {
        match self {
            Self::Tunnel {
                client,
                upstream,
                entry,
            } => {
                if let Ok(client) = client.await {
                    relay(shared, entry, TokioIo::new(client), upstream).await;
                }
            }
            Self::Socket {
                client,
                server,
                upstream,
                entry,
            } => {
                if let (Ok(client), Ok(server)) = (client.await, server.await) {
                    relay(shared, entry, TokioIo::new(client), TokioIo::new(server)).await;
                }
                drop(upstream);
            }
            Self::Intercept { .. } => {}
        }
    }
}

/// Copies bytes in both directions until both sides have ended, or one fails or is idle.
async fn relay<C, S>(shared: &ProxyState, mut entry: RequestEntry, mut client: C, mut server: S)
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let copied = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
    let Some(target) = entry.named().cloned() else {
        return;
    };
    if let Err(error) = copied
        && let Some(refusal) = classify(shared, &target, &error)
        && matches!(refusal.reason, "quota_bytes" | "restricted")
    {
        entry.refuse(&refusal);
    }
}

async fn intercept(shared: &Arc<ProxyState>, client: OnUpgrade, target: EgressTarget) {
    let (Ok(client), Some(authority)) = (client.await, &shared.authority) else {
        return;
    };
    let mut entry = RequestEntry::new(shared, TUNNEL);
    entry.target(&target);
    // Before the handshake has ended, everything is its failure.
    entry.fail("client_tls");
    let handshake = async {
        let acceptor = LazyConfigAcceptor::new(Acceptor::default(), TokioIo::new(client));
        let start = acceptor.await.ok()?;
        if !agrees(start.client_hello().server_name(), &target.host) {
            entry.refuse(&EgressRefusal::sni(&target));
            // The client gets an alert.
            start.into_stream(refusing()).await.ok();
            return None;
        }
        let config = authority.server(&target.host).ok()?;
        start.into_stream(config).await.ok()
    };
    let Ok(Some(stream)) = timeout(shared.timeouts.header, handshake).await else {
        return;
    };
    entry.discard();
    let after = connection::serve(shared, Front::Inside(target), stream).await;
    if let Some(after) = after {
        after.copy(shared).await;
    }
}

/// Returns whether the server name of TLS is the host of CONNECT. An address does not have one.
fn agrees(name: Option<&str>, host: &TargetHost) -> bool {
    name.is_none_or(|name| TargetHost::parse(name).as_ref() == Ok(host))
}
