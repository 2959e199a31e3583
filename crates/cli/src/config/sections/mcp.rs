//! MCP over HTTP, `/mcp`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cellblock_interpreter::toolset::{TOOLSETS, ToolsetKind, python};
use cellblock_interpreter::{derivation, workbench};
use cellblock_mcp::Options;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use cellblock_settings::Time;

/// The Model Context Protocol over HTTP, `/mcp`: tools, resources and prompts for agents that
/// connect to a URL.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mcp {
    /// Serve `/mcp`.
    pub(crate) serve: bool,
    /// Toolsets to offer, in addition to the tools for sessions and files: `interpreter`,
    /// `workbench`, `derivation`.
    pub(crate) toolsets: Vec<McpToolset>,
    /// Maximum number of tokens of text in a result.
    pub(crate) max_tokens: u32,
    /// Idle timeout of a session.
    pub(crate) idle_timeout: Time,
    /// Maximum number of sessions at a time.
    pub(crate) max_sessions: usize,
    /// Maximum number of sessions at a time per key.
    pub(crate) max_sessions_per_key: usize,
    /// How long a call may run before a client that supports tasks gets a task instead of the
    /// result.
    pub(crate) task_after: Time,
    /// Read-only files in `/tmp/data` of every session, by their name there without an extension.
    pub(crate) datasets: BTreeMap<String, PathBuf>,
}

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum McpToolset {
    /// `run_python`: Python with variables that persist.
    Interpreter,
    /// Run commands, write and edit files.
    Workbench,
    /// Code that derives from recorded tool results, under a contract.
    Derivation,
}

/// Fewer do not hold a table's head and an error.
const LEAST_TOKENS: u32 = 500;
/// Maximum size of an answer in tokens.
const MOST_TOKENS: u32 = 1_000_000;

impl Default for Mcp {
    fn default() -> Self {
        let options = Options::default();
        Self {
            serve: true,
            toolsets: vec![McpToolset::Interpreter],
            max_tokens: u32::try_from(options.tokens).unwrap_or(MOST_TOKENS),
            idle_timeout: Time(options.idle),
            max_sessions: options.sessions,
            max_sessions_per_key: options.sessions_per_owner,
            task_after: Time(options.task_after),
            datasets: BTreeMap::new(),
        }
    }
}

impl Mcp {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        if self.toolsets.is_empty() {
            check.wrong(
                &["mcp", "toolsets"],
                "must list at least one toolset; to offer none, set `serve: false`",
            );
        }
        if !(LEAST_TOKENS..=MOST_TOKENS).contains(&self.max_tokens) {
            let message = format!("must be from {LEAST_TOKENS} to {MOST_TOKENS}");
            check.wrong(&["mcp", "max_tokens"], message);
        }
        check.positive(&["mcp", "idle_timeout"], self.idle_timeout.0);
        for (key, most) in [
            ("max_sessions", self.max_sessions),
            ("max_sessions_per_key", self.max_sessions_per_key),
        ] {
            if most == 0 {
                check.wrong(
                    &["mcp", key],
                    "must be at least 1; to offer no sessions, set `serve: false`",
                );
            }
        }
        if self.datasets.contains_key("") {
            check.wrong(&["mcp", "datasets"], "a dataset must have a name");
        }
    }
}

impl McpToolset {
    /// Returns the toolsets of these choices, each once.
    pub(crate) fn kinds(chosen: &[Self]) -> Vec<ToolsetKind> {
        let kinds = chosen.iter().map(|toolset| match toolset {
            Self::Interpreter => python::KIND,
            Self::Workbench => workbench::KIND,
            Self::Derivation => derivation::KIND,
        });
        let kinds: Vec<_> = kinds.collect();
        TOOLSETS.into_iter().filter(|kind| kinds.contains(kind)).collect()
    }
}
