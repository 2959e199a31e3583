//! Tools that keep a session's state and go back to it.

use cellblock_interpreter::session::checkpoints::{NewCheckpoint, RolledBack};
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, schema};
use crate::answer::CallAnswer;
use crate::refusal::Refusal;
use crate::shared::McpShared;

/// Checkpoint to keep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeepArguments {
    /// The session's handle.
    session_id: String,
    /// A name for it, such as `loaded`: 1 to 64 letters, digits, `-`, `_` or `.`.
    #[serde(default)]
    name: Option<String>,
}

/// Checkpoint to go back to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RollbackArguments {
    /// The session's handle.
    session_id: String,
    /// ID or name of a checkpoint of this session.
    checkpoint: String,
}

pub(super) fn keep_definition() -> ToolDefinition {
    ToolDefinition::new(
        "checkpoint",
        "Keep the state of a session",
        "Keeps all variables and files of a session as they are now, in milliseconds. Use it once data is \
         loaded and cleaned, and before a step that may turn out wrong or that you want to try in several \
         ways; then `rollback` brings the state back instead of running everything again. A session keeps \
         8 checkpoints; the oldest makes room. If something cannot be kept, such as threads, child \
         processes or open sockets, the answer names it and nothing is changed.",
        schema::read::<KeepArguments>(),
        ToolEffect::Adds,
    )
    .returns(schema::written::<NewCheckpoint>())
}

pub(super) fn back_definition() -> ToolDefinition {
    ToolDefinition::new(
        "rollback",
        "Go back to a checkpoint",
        "Makes all variables and files of a session what they were at a checkpoint. Use it after code has \
         spoiled data or files, or to try another way from the same state. What was done since is lost, \
         unless it has a checkpoint of its own: keep one first if you may want it back. It ends the \
         session's processes, and cannot undo effects outside, such as calls of connectors. It can be \
         used any number of times.",
        schema::read::<RollbackArguments>(),
        ToolEffect::Discards,
    )
    .returns(schema::written::<RolledBack>())
}

pub(super) async fn keep(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let KeepArguments { session_id, name } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    Ok(CallAnswer::of(&used.session.checkpoint(name).await?))
}

pub(super) async fn back(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let RollbackArguments {
        session_id,
        checkpoint,
    } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    Ok(CallAnswer::of(&used.session.roll_back(checkpoint).await?))
}
