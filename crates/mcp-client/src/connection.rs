//! A connection that is there: requests over it, each with a limit of time, and told to the server when they are given up.

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

/// How long a server that let a call pass its limit may take to say that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// A connection to a server that speaks the protocol.
#[derive(Debug)]
pub(super) struct Connection {
    running: RunningService<RoleClient, Quiet>,
    wire: Arc<Wire>,
    /// Whether it has to show that it lives before it is used again.
    suspect: AtomicBool,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) failure: Failure,
    /// Whether it may have reached the server.
    pub(super) left: bool,
}

/// Which of the two lives of the protocol a server is asked for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// The newest, and the one before where the server does not know it.
    Newest,
    /// The one before, for servers that end when they are asked for the newest.
    Before,
}

impl Connection {
    /// Begins to talk.
    pub(super) async fn start<T, E, A>(transport: T, wire: Arc<Wire>, era: Era) -> Result<Self, Failure>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let mode = match era {
            Era::Newest => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Era::Before => ClientLifecycleMode::Initialize,
        };
        match Quiet.serve_with_lifecycle(transport, mode).await {
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

    /// Whether it can still be used.
    pub(super) fn is_alive(&self) -> bool {
        !self.running.is_closed() && !self.running.is_transport_closed() && self.wire.ended().is_none()
    }

    /// Whether the server said, since this was asked last, that its tools are others now.
    pub(super) fn tools_changed(&self) -> bool {
        self.wire.tools_changed()
    }

    /// The revision that was agreed on.
    pub(super) fn revision(&self) -> String {
        let info = self.running.peer_info();
        info.map_or_else(String::new, |info| info.protocol_version.to_string())
    }

    /// Asks for a result, which comes as the text that it is. After the limit `late` is the failure.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        limit: Duration,
        late: impl FnOnce() -> Failure,
    ) -> Result<Option<Box<RawValue>>, Unanswered> {
        let peer = self.running.peer();
        let options = PeerRequestOptions::no_options();
        let handle = peer.send_cancellable_request(request, options).await;
        let handle = handle.map_err(|error| self.unanswered(error, false))?;
        let mut pending = Pending {
            peer: peer.clone(),
            wire: &self.wire,
            id: Some(handle.id.clone()),
        };
        let Ok(response) = timeout(limit, handle.await_response()).await else {
            self.suspect.store(true, Ordering::Release);
            let failure = late();
            return Err(Unanswered { failure, left: true });
        };
        let Some(id) = pending.id.take() else {
            return Ok(None);
        };
        let (kept, left) = self.wire.take(&id);
        match (kept, response) {
            (Some(Ok(text)), _) => Ok(Some(text)),
            (Some(Err(failure)), _) => Err(Unanswered { failure, left: true }),
            (None, Ok(_)) => Ok(None),
            (None, Err(error)) => Err(self.unanswered(error, left)),
        }
    }

    /// Whether the server still answers, where that is in doubt.
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
            // It refuses, so it lives.
            Err(unanswered) => matches!(unanswered.failure, Failure::Refused { .. }),
        };
        self.suspect.store(!answers, Ordering::Release);
        answers
    }

    fn unanswered(&self, error: ServiceError, left: bool) -> Unanswered {
        let failure = match error {
            ServiceError::McpError(error) => refused(&error),
            ServiceError::TransportSend(error) => sending(error.error),
            error => self.wire.ended().unwrap_or_else(|| Failure::Ended {
                when: "before it answered",
                source: Some(Arc::new(error)),
            }),
        };
        let left = left || matches!(failure, Failure::Refused { .. });
        Unanswered { failure, left }
    }
}

/// A request whose answer is awaited. Dropped, it tells the server that nobody waits any more.
struct Pending<'a> {
    peer: Peer<RoleClient>,
    wire: &'a Wire,
    id: Option<RequestId>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        self.wire.forget(&id);
        let peer = self.peer.clone();
        let why = "nobody waits for the answer any more".to_owned();
        let notification = CancelledNotification::new(CancelledNotificationParam::new(Some(id), Some(why)));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let notification = ClientNotification::CancelledNotification(notification);
                // A connection that is gone needs no telling.
                let _ = timeout(SIGN_OF_LIFE, peer.send_notification(notification)).await;
            });
        }
    }
}

/// The words of a server that refuses.
fn refused(error: &ErrorData) -> Failure {
    Failure::Refused {
        code: error.code.0,
        message: words::told(&error.message, words::MOST),
    }
}

/// Why a message could not be sent.
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

/// Why a server could not be talked to.
fn begun(error: ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => sending(error.error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => begun(*fallback),
        ClientInitializeError::JsonRpcError(error) => refused(&error),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => Failure::Unsupported {
            what: "speaks no revision of the Model Context Protocol that is spoken here, 2025-11-25 or 2026-07-28".to_owned(),
        },
        error @ ClientInitializeError::ConnectionClosed(_) => Failure::Ended {
            when: "before it answered",
            source: Some(Arc::new(error)),
        },
        // Their words repeat whole messages of the server.
        _ => Failure::malformed("it did not begin as the protocol says"),
    }
}

/// A client that offers a server nothing.
#[derive(Debug)]
struct Quiet;

#[expect(deprecated, reason = "roots are asked for by servers of before")]
impl ClientHandler for Quiet {
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
