//! A connection with HTTP requests, to the proxy or inside an intercepted one.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::after::ConnectionRest;
use crate::exchange::Exchange;
use crate::front::Front;
use crate::proxy::ProxyState;
use crate::strict::{MAX_HEAD, StrictHeads};

/// Maximum number of headers of a request or a response.
pub(crate) const MAX_HEADERS: usize = 128;

/// Serves the requests of a connection, and returns what follows them.
pub(crate) async fn serve<S>(shared: &Arc<ProxyState>, front: Front, stream: S) -> Option<ConnectionRest>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (stream, verdicts) = StrictHeads::new(stream);
    let exchange = Arc::new(Exchange::new(shared, front, verdicts));
    let service = service_fn(|request| {
        let exchange = Arc::clone(&exchange);
        async move { Ok::<_, Infallible>(exchange.answer(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.timeouts.header)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(session = %shared.session, %error, "egress connection ended early");
    }
    exchange.after()
}
