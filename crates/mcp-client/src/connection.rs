//! An established connection: requests with time limits, and their cancellation at the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig, ClientNotification,
    ClientRequest, DiscoverRequest, DiscoverRequestParams, ElicitRequestParams, ElicitResult, ErrorData,
    Implementation, PingRequest, ProtocolVersion, RequestId,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RequestContext, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::failure::Failure;
use super::wire::Wire;
use super::words;

/// Maximum time for a server to show that it is alive after a call exceeded its limit.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// A connection to a server after the handshake.
#[derive(Debug)]
pub(super) struct Connection {
    running: RunningService<RoleClient, QuietClient>,
    wire: Arc<Wire>,
    /// Whether it has to show that it is alive before it is used again.
    suspect: AtomicBool,
}

/// The reason why a request has no response.
#[derive(Debug)]
pub(super) struct RequestFailure {
    pub(super) failure: Failure,
    /// Whether it may have reached the server.
    pub(super) left: bool,
}

/// The protocol revision that is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// The newest, or the previous one if the server does not know it.
    Newest,
    /// The newest, however long the server takes to say that it knows it.
    NewestOnly,
    /// The previous one, for servers that exit on a request with the newest.
    Before,
}

impl Connection {
    /// Performs the handshake.
    pub(super) async fn start<T, E, A>(transport: T, wire: Arc<Wire>, era: Era) -> Result<Self, Failure>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let mode = match era {
            Era::Newest => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Era::NewestOnly => ClientLifecycleMode::Discover { preferred_versions },
            Era::Before => ClientLifecycleMode::Initialize,
        };
        match QuietClient.serve_with_lifecycle(transport, mode).await {
            Ok(running) => Ok(Self {
                running,
                wire,
                suspect: AtomicBool::new(false),
            }),
            Err(error) => Err(match wire.ended().unwrap_or_else(|| begun(error)) {
                Failure::Ended { source, .. } => Failure::Ended {
                    when: "before it was ready",
                    source,
                },
                failure => failure,
            }),
        }
    }

    /// Returns whether it can still be used.
    pub(super) fn is_alive(&self) -> bool {
        !self.running.is_closed() && !self.running.is_transport_closed() && self.wire.ended().is_none()
    }

    /// Returns whether the server has reported changed tools since the last call.
    pub(super) fn tools_changed(&self) -> bool {
        self.wire.tools_changed()
    }

    /// Returns the negotiated revision.
    pub(super) fn revision(&self) -> String {
        let info = self.running.peer_info();
        info.map_or_else(String::new, |info| info.protocol_version.to_string())
    }

    /// Sends a request and returns its result as text. After the limit, fails with `late`.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        limit: Duration,
        late: impl FnOnce() -> Failure,
    ) -> Result<Option<Box<RawValue>>, RequestFailure> {
        let peer = self.running.peer();
        let options = PeerRequestOptions::no_options();
        let handle = peer.send_cancellable_request(request, options).await;
        let handle = handle.map_err(|error| self.unanswered(error, false))?;
        let mut pending = PendingRequest {
            peer: peer.clone(),
            wire: &self.wire,
            id: Some(handle.id.clone()),
        };
        let Ok(response) = timeout(limit, handle.await_response()).await else {
            self.suspect.store(true, Ordering::Release);
            let failure = late();
            return Err(RequestFailure { failure, left: true });
        };
        let Some(id) = pending.id.take() else {
            return Ok(None);
        };
        let (kept, left) = self.wire.take(&id);
        match (kept, response) {
            (Some(Ok(text)), _) => Ok(Some(text)),
            (Some(Err(failure)), _) => Err(RequestFailure { failure, left: true }),
            (None, Ok(_)) => Ok(None),
            (None, Err(error)) => Err(self.unanswered(error, left)),
        }
    }

    /// Checks, if in doubt, whether the server still responds.
    pub(super) async fn answers(&self) -> bool {
        if !self.suspect.load(Ordering::Acquire) {
            return true;
        }
        let newest = self.revision().as_str() >= ProtocolVersion::NO_INITIALIZE.as_str();
        let request = if newest {
            ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
        } else {
            ClientRequest::PingRequest(PingRequest::default())
        };
        let dead = || Failure::Unreachable(None);
        let answers = match self.ask(request, SIGN_OF_LIFE, dead).await {
            Ok(_) => true,
            // A rejection shows that it is alive.
            Err(unanswered) => matches!(unanswered.failure, Failure::Refused { .. }),
        };
        self.suspect.store(!answers, Ordering::Release);
        answers
    }

    fn unanswered(&self, error: ServiceError, left: bool) -> RequestFailure {
        let failure = match error {
            ServiceError::McpError(error) => refused(&error),
            ServiceError::TransportSend(error) => sending(error.error),
            error => self.wire.ended().unwrap_or_else(|| Failure::Ended {
                when: "before it responded",
                source: Some(Arc::new(error)),
            }),
        };
        let left = left || matches!(failure, Failure::Refused { .. });
        RequestFailure { failure, left }
    }
}

/// A request that waits for its response. Dropping it cancels the request at the server.
struct PendingRequest<'a> {
    peer: Peer<RoleClient>,
    wire: &'a Wire,
    id: Option<RequestId>,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        self.wire.forget(&id);
        let peer = self.peer.clone();
        let why = "the caller no longer waits for the response".to_owned();
        let notification = CancelledNotification::new(CancelledNotificationParam::new(Some(id), Some(why)));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let notification = ClientNotification::CancelledNotification(notification);
                // A closed connection needs no cancellation.
                let _ = timeout(SIGN_OF_LIFE, peer.send_notification(notification)).await;
            });
        }
    }
}

/// Converts a server's rejection.
fn refused(error: &ErrorData) -> Failure {
    Failure::Refused {
        code: error.code.0,
        message: words::told(&error.message, words::MOST),
    }
}

/// Returns the reason why a message could not be sent.
fn sending(error: Box<dyn std::error::Error + Send + Sync>) -> Failure {
    let error = match error.downcast::<Failure>() {
        Ok(failure) => return *failure,
        Err(error) => error,
    };
    match error.downcast::<StreamableHttpError<Failure>>() {
        Ok(error) => match *error {
            StreamableHttpError::Client(failure) => failure,
            other => Failure::Unreachable(Some(Arc::new(other))),
        },
        Err(error) => Failure::Ended {
            when: "before it was asked",
            source: Some(error.into()),
        },
    }
}

/// Returns the reason why the handshake failed.
fn begun(error: ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => sending(error.error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => begun(*fallback),
        ClientInitializeError::JsonRpcError(error) => refused(&error),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => Failure::Unsupported {
            what: "supports no common revision of the Model Context Protocol; supported here are \
                   2025-11-25 and 2026-07-28"
                .to_owned(),
        },
        error @ ClientInitializeError::ConnectionClosed(_) => Failure::Ended {
            when: "before it responded",
            source: Some(Arc::new(error)),
        },
        // These errors repeat whole messages of the server.
        _ => Failure::malformed("its handshake violates the protocol"),
    }
}

/// A client without any capabilities for servers.
#[derive(Debug)]
struct QuietClient;

#[expect(deprecated, reason = "servers of earlier revisions request roots")]
impl ClientHandler for QuietClient {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("cellblock", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::new(
            rmcp::model::ErrorCode::METHOD_NOT_FOUND,
            "elicitation/create",
            None,
        ))
    }
}
