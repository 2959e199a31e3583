//! What requests have in common that others answer: programs in sandboxes, and other gateways.

use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderMap, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};

use crate::state::Gateway;

/// Marks an answer of another, which the gateway does not complete as its own, in its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedOn;

/// Sets the headers that ask for another protocol, or agree to it.
pub(crate) fn set_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// Moves bytes of another protocol in both directions, until one side ends or the gateway does.
pub(crate) fn join<S>(
    gateway: &Gateway,
    client: OnUpgrade,
    server: impl Future<Output = Option<S>> + Send + 'static,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let ending = gateway.ending.clone();
    let joined = async move {
        if let (Ok(client), Some(mut server)) = tokio::join!(client, server) {
            // Either side may end it at any time.
            let _ = copy_bidirectional(&mut TokioIo::new(client), &mut server).await;
        }
    };
    gateway
        .tasks
        .spawn(async move { ending.run_until_cancelled(joined).await });
}
