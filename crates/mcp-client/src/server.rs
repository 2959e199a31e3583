//! A server of tools: its offer, and calls of it.

use std::sync::Arc;
use std::time::Duration;

use cellblock_agent::{OfferedTools, ToolReply, ToolServer, ToolServerError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsRequest, PaginatedRequestParams,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Transport;
use super::connection::Connection;
use super::failure::Failure;
use super::listing::{ListReader, MOST_PAGES};
use super::options::ServerOptions;
use super::probe::{ProbeStage, ServerProbe};
use super::reach::Reach;
use super::{reply, words};

/// Maximum time for which a list of tools is cached, and the minimum.
const KEPT_MOST: Duration = Duration::from_mins(5);
const KEPT_LEAST: Duration = Duration::from_secs(1);

/// A server of the Model Context Protocol. Nothing is started or sent before it is first used.
///
/// Its connection is kept, and restored when it is lost. Dropping the last handle ends it; a server
/// that is a child process ends with everything that it started.
#[derive(Debug)]
pub struct ForeignServer {
    label: String,
    options: ServerOptions,
    reach: Reach,
    kept: Mutex<Option<CachedTools>>,
}

#[derive(Debug)]
struct CachedTools {
    tools: Arc<OfferedTools>,
    until: Instant,
    /// The connection over which they were listed, which reports changes.
    of: Arc<Connection>,
}

impl ForeignServer {
    /// Creates a server with the name that its operator gives it.
    pub fn new(label: impl Into<String>, transport: Transport, options: ServerOptions) -> Self {
        let label = label.into();
        Self {
            reach: Reach::new(label.clone(), transport),
            label,
            options,
            kept: Mutex::default(),
        }
    }

    pub(super) async fn offered(&self) -> Result<Arc<OfferedTools>, Failure> {
        // Only one listing at a time: concurrent callers use its result.
        let mut kept = self.kept.lock().await;
        if let Some(kept) = &*kept
            && !kept.of.tools_changed()
            && Instant::now() < kept.until
        {
            return Ok(Arc::clone(&kept.tools));
        }
        *kept = None;
        let connection = self.reach.connection(&self.options).await?;
        let limit = self.options.connect_timeout;
        let late = || Failure::Silent {
            what: "did not list its tools".to_owned(),
            time: limit,
            limit: "connect_timeout",
            repair: "continue without it, or try again later",
        };
        let listed = tokio::time::timeout(limit, self.list(&connection, late)).await;
        match listed.unwrap_or_else(|_| Err(late())) {
            Ok(listing) => {
                let keep = listing.keep.unwrap_or(KEPT_MOST).clamp(KEPT_LEAST, KEPT_MOST);
                let tools = Arc::new(listing.offered(|tool| self.options.allows(tool)));
                for tool in &tools.left_out {
                    tracing::warn!(
                        server = self.label,
                        tool = tool.name,
                        reason = tool.reason,
                        "a tool is not offered"
                    );
                }
                self.reach.succeeded().await;
                *kept = Some(CachedTools {
                    tools: Arc::clone(&tools),
                    until: Instant::now() + keep,
                    of: connection,
                });
                Ok(tools)
            }
            Err(failure) => {
                self.reach.give_up(&connection).await;
                self.reach.failed(failure.clone()).await;
                Err(failure)
            }
        }
    }

    async fn list(&self, connection: &Connection, late: impl Fn() -> Failure) -> Result<ListReader, Failure> {
        let mut listing = ListReader::default();
        for _ in 0..MOST_PAGES {
            let mut request = ListToolsRequest::default();
            if listing.cursor.is_some() {
                request.params = Some(PaginatedRequestParams::default().with_cursor(listing.cursor.clone()));
            }
            let request = ClientRequest::ListToolsRequest(request);
            let page = connection.ask(request, self.options.connect_timeout, &late).await;
            let page = page.map_err(|unanswered| unanswered.failure)?;
            let page = page.ok_or_else(|| Failure::malformed("its list of tools is invalid"))?;
            listing.page(&page, self.options.max_result)?;
            if listing.cursor.is_none() {
                return Ok(listing);
            }
        }
        listing.stop();
        Ok(listing)
    }

    async fn called(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        probe: &mut ServerProbe,
    ) -> Result<(ToolReply, usize), Failure> {
        if !self.options.allows(tool) {
            return Err(self.not_allowed(tool));
        }
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let limit = self.options.timeout;
        let late = || Failure::Silent {
            what: format!("did not answer the call of `{}`", words::told(tool, 128)),
            time: limit,
            limit: "timeout",
            repair: "request less, or try again later",
        };
        let mut again = true;
        let answer = loop {
            probe.reached(ProbeStage::Connect);
            let connection = self.reach.connection(&self.options).await?;
            probe.reached(ProbeStage::Call);
            match connection.ask(request.clone(), limit, late).await {
                Ok(answer) => break answer,
                // It exited before the request was sent, so a retry does nothing twice.
                Err(unanswered) if again && !unanswered.left && !connection.is_alive() => again = false,
                Err(unanswered) => {
                    if breaks(&unanswered.failure) {
                        self.reach.give_up(&connection).await;
                    }
                    return Err(unanswered.failure);
                }
            }
        };
        probe.reached(ProbeStage::Result);
        let answer = answer.ok_or_else(|| Failure::malformed("its result is invalid"))?;
        let reply = reply::read(&answer, self.options.max_result)?;
        self.reach.succeeded().await;
        Ok((reply, answer.get().len()))
    }

    /// Calls a tool and reports the call to dashboards.
    pub(super) async fn called_and_reported(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolReply, Failure> {
        let size = serde_json::to_string(&arguments).map_or(0, |text| text.len());
        let mut probe = ServerProbe::start(&self.label, tool, size);
        match self.called(tool, arguments, &mut probe).await {
            Ok((reply, bytes)) => {
                probe.succeed(bytes, matches!(reply, ToolReply::Failed(_)));
                Ok(reply)
            }
            Err(failure) => {
                let cause = std::error::Error::source(&failure).map(|cause| format!(": {cause}"));
                probe.fail(&format!("{failure}{}", cause.unwrap_or_default()));
                Err(failure)
            }
        }
    }

    fn not_allowed(&self, tool: &str) -> Failure {
        let allowed = self.options.allowed_tools.as_deref().unwrap_or_default();
        let allowed: Vec<_> = allowed.iter().map(|name| format!("`{name}`")).collect();
        let tool = words::told(tool, 128);
        Failure::Unsupported {
            what: match allowed.as_slice() {
                [] => format!("does not permit its tool `{tool}`, nor any other"),
                _ => format!("does not permit its tool `{tool}`, only {}", allowed.join(", ")),
            },
        }
    }
}

/// Returns whether the connection should be replaced after this.
const fn breaks(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Unreachable(_)
            | Failure::Ended { .. }
            | Failure::Status { .. }
            | Failure::Deaf { .. }
            | Failure::Asking { .. }
    )
}

impl ToolServer for ForeignServer {
    fn label(&self) -> &str {
        &self.label
    }

    fn tools(&self) -> BoxFuture<'_, Result<Arc<OfferedTools>, ToolServerError>> {
        let told = |failure: Failure| {
            tracing::warn!(
                server = self.label,
                error = %failure,
                cause = ?std::error::Error::source(&failure).map(ToString::to_string),
                "a tool server offers no tools"
            );
            failure.of(&self.label)
        };
        self.offered().map(move |offered| offered.map_err(told)).boxed()
    }

    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'_, Result<ToolReply, ToolServerError>> {
        let tool = tool.to_owned();
        async move {
            let called = self.called_and_reported(&tool, arguments).await;
            called.map_err(|failure| failure.of(&self.label))
        }
        .boxed()
    }
}
