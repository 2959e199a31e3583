//! Tool servers that fetch data for turns, with any protocol. They are called on the host, never in
//! a sandbox.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::toolset::ToolDefinition;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// A server of tools.
pub trait ToolServer: Send + Sync + Debug {
    /// Returns its name, by which operators and users identify it.
    fn label(&self) -> &str;

    /// Returns its tools, from a cache if that is fresh.
    fn tools(&self) -> BoxFuture<'_, Result<Arc<OfferedTools>, ToolServerError>>;

    /// Calls one of its tools. Dropping the future cancels the call. The server's own timeout
    /// always applies.
    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'_, Result<ToolReply, ToolServerError>>;
}

/// Finds servers that are not configured but named by a request.
pub trait ToolServers: Send + Sync + Debug {
    /// Returns the server at an address. If the operator does not allow the address, the error is
    /// for the caller, and nothing is sent.
    fn at(&self, address: ToolServerAddress) -> Result<Arc<dyn ToolServer>, ToolServerError>;

    /// Returns the same server as functions of code, which never sees its credentials.
    fn connector(&self, address: ToolServerAddress) -> Result<Arc<dyn Connector>, ToolServerError>;
}

/// Address of a server, with the caller's credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolServerAddress {
    /// The caller's name for it.
    pub label: String,
    /// Its URL.
    pub url: String,
    /// Headers of every request. They may contain secrets.
    pub headers: Vec<(String, String)>,
}

/// Tools that a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferedTools {
    /// Tools with unique names, in the server's order. Their annotations are claims of the server.
    pub tools: Vec<ToolDefinition>,
    /// Tools that cannot be offered to a model, with the reason: a duplicate name, or an invalid
    /// schema.
    pub left_out: Vec<LeftOutTool>,
}

/// A tool that cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutTool {
    /// Name, if it has one.
    pub name: String,
    /// Reason why it cannot be offered.
    pub reason: String,
}

/// Response of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolReply {
    /// The whole result.
    Result(Value),
    /// A failure, in the tool's own words.
    Failed(String),
}

/// A failure of a server, in words for a model: the server, the failed action, the limit and the
/// actual value, without paths of the host.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolServerError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolServerError {
    /// Creates a failure with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause, for the operator's log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl Debug for ToolServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ToolServerAddress")
            .field("label", &self.label)
            .field("url", &self.url)
            .field("headers", &headers)
            .finish()
    }
}
