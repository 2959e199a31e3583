//! Servers of tools that fetch data for turns, behind whichever protocol. They are called on the host, never in a sandbox.

use std::error::Error;
use std::fmt::Debug;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// A server of tools.
pub trait ToolServer: Send + Sync + Debug {
    /// Its name, by which operators and users tell servers apart.
    fn label(&self) -> &str;

    /// What it offers, from memory where that is fresh.
    fn tools(&self) -> BoxFuture<'_, Result<Arc<OfferedTools>, ToolServerError>>;

    /// Calls one of its tools. Dropping the future cancels the call. It ends within a time of the server's own, whatever is at the other end.
    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'_, Result<ToolReply, ToolServerError>>;
}

/// Finds servers that are not set up beforehand but named by a request.
pub trait ToolServers: Send + Sync + Debug {
    /// The server at an address. One that the operator does not allow is an error in words for the caller, and nothing is sent to it.
    fn at(&self, address: ToolServerAddress) -> Result<Arc<dyn ToolServer>, ToolServerError>;
}

/// Where a server is, and what a caller proves there.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolServerAddress {
    /// What the caller calls it.
    pub label: String,
    /// Its URL.
    pub url: String,
    /// Headers that are sent with every request. They may hold secrets.
    pub headers: Vec<(String, String)>,
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferedTools {
    /// The tools, each name once, in the server's order.
    pub tools: Vec<ServerTool>,
    /// Those that cannot be offered to a model, and why: a name twice, a schema that is none.
    pub left_out: Vec<LeftOutTool>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// Its name at its server.
    pub name: String,
    /// Description of the tool.
    pub description: Option<String>,
    /// A JSON Schema of its arguments, which are an object.
    pub input_schema: Map<String, Value>,
    /// What its server alleges about it, such as `readOnlyHint`.
    pub annotations: Option<Value>,
}

/// A tool that cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutTool {
    /// Its name, as far as it has one.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// What a tool gave.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolReply {
    /// Its result, whole.
    Result(Value),
    /// It says that it failed, in words of its own.
    Failed(String),
}

/// Why a server gave nothing, in words for a model: which server, what failed, the limit and the actual, and no place of the host.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolServerError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolServerError {
    /// A failure in words.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// What caused it, for the operator's log.
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
