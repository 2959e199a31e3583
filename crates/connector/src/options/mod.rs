//! Settings of connectors, as an operator writes them. Each type adds its own in its module.

mod memo;
mod rate;
mod result;
mod secret;

use std::path::Path;
use std::time::Duration;

use cellblock_interpreter::connector::{MemoPolicy, WriteApproval};
use cellblock_settings::{Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::recipe::{ConnectorRecipe, ConnectorResult, OptionMistake};
pub(crate) use rate::Rate;
pub(crate) use result::{CellType, ResultOptions};
pub use secret::{GivenValue, SecretSource, is_secret, secret_file, variable};

/// Options of one type: its own, those that it shares with some types, and those that nearly all have.
/// All are in one mapping.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TypeOptions<T, S = NoOptions> {
    /// Options of calls.
    #[serde(flatten)]
    pub calls: CallOptions,
    /// Options that another type has, too.
    #[serde(flatten)]
    pub shared: S,
    /// Options of this type only.
    #[serde(flatten)]
    pub own: T,
}

impl<'de, T: Deserialize<'de>, S: Deserialize<'de>> TypeOptions<T, S> {
    /// Reads the options from a mapping, whose other keys are ignored. Each part reads the whole mapping,
    /// because `flatten` of serde would copy the values first, and lose the lines of mistakes.
    pub fn read<D: Deserializer<'de> + Copy>(mapping: D) -> Result<Self, D::Error> {
        Ok(Self {
            calls: CallOptions::deserialize(mapping)?,
            shared: S::deserialize(mapping)?,
            own: T::deserialize(mapping)?,
        })
    }
}

impl<T, S> TypeOptions<T, S> {
    pub(crate) const fn approval(&self) -> WriteApproval {
        self.calls.approval
    }
}

/// Shared options of a type that shares none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NoOptions {}

/// Options of calls, which all types have except `mcp`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallOptions {
    /// Description for the model.
    #[serde(default)]
    pub description: String,
    /// Timeout of a call, including waits, retries and all pages.
    #[serde(with = "Time", default = "timeout")]
    pub timeout: Duration,
    /// Maximum size of an answer, of all its pages together.
    #[serde(with = "Size", default = "max_result")]
    pub max_result: u64,
    /// Calls that get the answer of an equal earlier one: `session`, those of the same session; a time such
    /// as `15m`, those within it in all sessions of the same key; `off`, none.
    #[serde(with = "memo", default)]
    #[schemars(schema_with = "memo::schema")]
    pub memo: MemoPolicy,
    /// Approval of calls of functions with `effect: writes`.
    #[serde(default)]
    pub approval: WriteApproval,
}

const fn timeout() -> Duration {
    Duration::from_secs(30)
}

const fn max_result() -> u64 {
    64 << 20
}

/// Maximum size of a result, which is in memory as a whole.
const MAX_RESULT: u64 = 1 << 30;

impl CallOptions {
    pub(crate) fn mistakes(&self) -> Vec<OptionMistake> {
        let mut mistakes = Vec::new();
        if self.timeout.is_zero() {
            mistakes.push(OptionMistake::new(&["timeout"], "must be greater than 0"));
        }
        if !(1..=MAX_RESULT).contains(&self.max_result) {
            let text = "must be from 1 byte to 1GiB";
            mistakes.push(OptionMistake::new(&["max_result"], text));
        }
        mistakes
    }
}

/// Options of the type `mcp`. The server has the limits.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpOptions {
    /// Description for the model.
    pub description: String,
    /// Server of `mcp_servers`, which also has the limits.
    pub server: Option<String>,
    /// Tools of the server that are functions; by default, all that it offers.
    pub tools: Option<Vec<String>>,
    /// Approval of calls of functions with `effect: writes`.
    pub approval: WriteApproval,
}

impl McpOptions {
    pub(crate) const fn approval(&self) -> WriteApproval {
        self.approval
    }

    pub(crate) fn read<'de, D: Deserializer<'de>>(mapping: D) -> Result<Self, D::Error> {
        Self::deserialize(mapping)
    }
}

/// Only checks: the owner of the servers makes the connector.
impl ConnectorRecipe for McpOptions {
    fn connector(&self, _: &str, _: Option<&Path>) -> ConnectorResult {
        let mut mistakes = Vec::new();
        if self.server.is_none() {
            let text = "missing key `server`: the server of `mcp_servers` that has the tools";
            mistakes.push(OptionMistake::new(&[], text));
        }
        if self.tools.as_ref().is_some_and(Vec::is_empty) {
            let text = "must have at least one tool; remove the key for all tools of the server";
            mistakes.push(OptionMistake::new(&["tools"], text));
        }
        Err(mistakes)
    }
}
