//! The record of each request: one event in the log, and one call of the sink.

use std::sync::Arc;

/// Decision of the proxy about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EgressDecision {
    /// The proxy forwarded it.
    Allowed,
    /// A rule, a limit or a check refused it.
    Denied,
    /// A rule allows it, but the server was not reached or did not answer.
    Failed,
}

impl EgressDecision {
    /// Returns the decision's name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// A request or a tunnel that has ended. It contains no path, query, header or body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EgressRecord {
    /// Label of the session, from [`EgressProxy::new`](crate::EgressProxy::new).
    pub session: Arc<str>,
    /// Method of the request; `CONNECT` for a tunnel that is not decrypted; empty if there are too
    /// many connections.
    pub method: String,
    /// Host that the request names; empty if it is not a valid one.
    pub host: String,
    /// Port that the request names; 0 if it is not a valid one.
    pub port: u16,
    /// Bytes sent to the server, including headers and encryption.
    pub bytes_up: u64,
    /// Bytes received from the server, including headers and encryption.
    pub bytes_down: u64,
    /// Decision of the proxy.
    pub decision: EgressDecision,
    /// The reason, one of a fixed set of words: `ok` for a request that was forwarded; `host`,
    /// `port`, `method`, `address`, `restricted`, `invalid_host`, `malformed`, `sni`, `unencrypted`,
    /// `upgrade`, `quota_requests`, `quota_bytes` or `connections` for one that was denied; `resolve`,
    /// `connect`, `tls`, `upstream`, `timeout` or `client_tls` for one that failed.
    pub reason: &'static str,
}

/// Receives each record, for metrics. It is called on the task of the connection and must not block.
pub type EgressSink = Arc<dyn Fn(&EgressRecord) + Send + Sync>;

impl EgressRecord {
    pub(crate) fn log(&self) {
        let Self {
            session,
            method,
            host,
            port,
            bytes_up,
            bytes_down,
            decision,
            reason,
        } = self;
        let decision = decision.as_str();
        tracing::info!(
            %session, %method, %host, port, bytes_up, bytes_down, decision, reason, "egress request"
        );
    }
}
