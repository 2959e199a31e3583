//! HTTP connections to servers, which are used again for the next request of the same client connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::connection::MAX_HEADERS;
use crate::dial::{classify, dial, encrypt};
use crate::meter::Flow;
use crate::proxy::ProxyState;
use crate::refusal::EgressRefusal;
use crate::strict::MAX_HEAD;
use crate::target::EgressTarget;

/// Maximum time for a connection to become ready for another request. It is ready at once, unless the server
/// is still reading or writing.
const READY: Duration = Duration::from_millis(20);

/// A connection to a server that was checked.
#[derive(Debug)]
pub(crate) struct Upstream {
    target: EgressTarget,
    address: IpAddr,
    pub(crate) flow: Arc<Flow>,
    sender: SendRequest<Incoming>,
    /// Drives the connection, and ends with it.
    _driver: AbortOnDropHandle<()>,
}

/// A request that was not answered, and the request itself if it was not sent.
pub(crate) struct UnansweredRequest {
    pub(crate) refusal: EgressRefusal,
    pub(crate) request: Option<Request<Incoming>>,
}

impl Upstream {
    /// Connects to a target for a method.
    pub(crate) async fn connect(
        shared: &ProxyState,
        target: &EgressTarget,
        encrypted: bool,
        method: &str,
    ) -> Result<Self, EgressRefusal> {
        let (socket, address) = dial(shared, target, method).await?;
        let flow = socket.flow();
        let (sender, driver) = if encrypted {
            start(encrypt(shared, target, socket).await?).await
        } else {
            start(socket).await
        }
        .map_err(|error| EgressRefusal::upstream(target, &error.to_string()))?;
        Ok(Self {
            target: target.clone(),
            address,
            flow,
            sender,
            _driver: driver,
        })
    }

    /// Returns whether the connection can be used for a request. The rules are asked again: they
    /// can allow an address for some methods only.
    pub(crate) async fn serves(&mut self, shared: &ProxyState, target: &EgressTarget, method: &str) -> bool {
        self.target == *target
            && shared.rules().address(target, self.address, method).is_ok()
            && matches!(timeout(READY, self.sender.ready()).await, Ok(Ok(())))
    }

    pub(crate) async fn send(
        &mut self,
        shared: &ProxyState,
        request: Request<Incoming>,
    ) -> Result<Response<Incoming>, UnansweredRequest> {
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response),
            Err(mut error) => Err(UnansweredRequest {
                request: error.take_message(),
                refusal: classify(shared, &self.target, error.error())
                    .unwrap_or_else(|| EgressRefusal::upstream(&self.target, &error.error().to_string())),
            }),
        }
    }
}

type UpstreamConnection = (SendRequest<Incoming>, AbortOnDropHandle<()>);

async fn start<S>(stream: S) -> Result<UpstreamConnection, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = Builder::new()
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await?;
    let driver = tokio::spawn(async move {
        // The request that fails with it reports the error.
        let _ = connection.with_upgrades().await;
    });
    Ok((sender, AbortOnDropHandle::new(driver)))
}
