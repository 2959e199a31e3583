//! Options of code that runs in cells.

use std::path::PathBuf;

use cellblock_interpreter::cell::Guard;
use cellblock_interpreter::session::SetupSnippet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Code in sessions that run cells, in containers and in sessions of `/mcp`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CellOptions {
    /// Check of code before it runs. A request for a session can choose a stricter one. The check
    /// helps models; the sandbox protects this machine.
    pub guard: Guard,
    /// Python files that prepare each session: they run before its first cell, and again after a
    /// reset and in each new kernel.
    pub setup: Vec<PathBuf>,
    /// The code of these files.
    #[serde(skip)]
    pub snippets: Vec<SetupSnippet>,
}
