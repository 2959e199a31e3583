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
    pub(crate) tokens: u32,
    /// Idle timeout of a session.
    pub(crate) idle: Time,
    /// Maximum number of sessions at a time.
    pub(crate) sessions: usize,
    /// Maximum number of sessions at a time per owner.
    pub(crate) sessions_per_owner: usize,
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
/// More is no answer for a model.
const MOST_TOKENS: u32 = 1_000_000;

impl Default for Mcp {
    fn default() -> Self {
        let options = Options::default();
        Self {
            serve: true,
            toolsets: vec![McpToolset::Interpreter],
            tokens: u32::try_from(options.tokens).unwrap_or(MOST_TOKENS),
            idle: Time(options.idle),
            sessions: options.sessions,
            sessions_per_owner: options.sessions_per_owner,
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
                "without a toolset no code runs; write one, or `serve: false` instead",
            );
        }
        if !(LEAST_TOKENS..=MOST_TOKENS).contains(&self.tokens) {
            let message = format!("write a number from {LEAST_TOKENS} to {MOST_TOKENS}");
            check.wrong(&["mcp", "tokens"], message);
        }
        check.positive(&["mcp", "idle"], self.idle.0);
        for (key, most) in [
            ("sessions", self.sessions),
            ("sessions_per_owner", self.sessions_per_owner),
        ] {
            if most == 0 {
                check.wrong(
                    &["mcp", key],
                    "without a session no code runs; write 1 or more, or `serve: false` instead",
                );
            }
        }
        if self.datasets.contains_key("") {
            check.wrong(&["mcp", "datasets"], "a dataset needs a name");
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
