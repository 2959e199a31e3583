//! Tools of servers, with which turns fetch data, and of toolsets. Servers are called here, on the
//! host, and never see a sandbox; toolsets work where the turn's code runs.
//!
//! ```text
//! Tools ──sources(request)──> [Source] ──Catalog::ask──> Catalog: names as the model knows them, and who is behind each
//! ```
//!
//! Servers are configured by the operator, or named by a request if the operator allows their
//! addresses.

mod catalog;
mod options;
mod ranking;
mod source;

use std::sync::Arc;

use crate::{ToolServer, ToolServers};

pub(crate) use catalog::{Catalog, MAX_TOOLS, ServerTool, free, model_name, qualified};
pub use options::{ContractRule, TurnOptions};
pub(crate) use ranking::{SearchDocument, rank};
pub use source::{Callee, OWN, OfferedToolset, Source, connector, sources};

/// The servers that a gateway knows.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// Servers that the operator has configured.
    pub configured: Vec<ConfiguredServer>,
    /// Finds servers that requests name; without it, requests cannot name any.
    pub named: Option<Arc<dyn ToolServers>>,
}

/// A server that the operator has configured.
#[derive(Clone, Debug)]
pub struct ConfiguredServer {
    /// The server.
    pub server: Arc<dyn ToolServer>,
    /// Whether its tools are offered in every turn with `code_interpreter`, or only if a request
    /// names its label.
    pub always: bool,
}

impl Tools {
    /// Returns whether a turn can have any.
    pub fn any(&self) -> bool {
        !self.configured.is_empty() || self.named.is_some()
    }
}
