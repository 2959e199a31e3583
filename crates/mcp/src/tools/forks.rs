//! The tool that makes several sessions of one.

use cellblock_interpreter::session::fork::{ForkOptions, MAX_FORKS};
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Call, schema};
use crate::answer::CallAnswer;
use crate::refusal::Refusal;
use crate::shared::McpShared;

/// Session to fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fork {
    /// The session's handle.
    session_id: String,
    /// Number of new sessions.
    #[serde(default = "one")]
    count: usize,
    /// Whether random generators get new seeds in each new session. Otherwise all go on with the
    /// same random numbers.
    #[serde(default = "yes")]
    reseed: bool,
}

/// The sessions of a fork.
#[derive(Debug, Serialize, JsonSchema)]
struct ForkResult {
    /// Handle of the session that was forked.
    parent: String,
    /// Handles of the new sessions: pass one as `session_id`.
    sessions: Vec<String>,
}

pub(super) fn fork_definition() -> ToolDefinition {
    let mut input = schema::read::<Fork>();
    input["properties"]["count"] = json!({
        "type": "integer", "minimum": 1, "maximum": MAX_FORKS, "default": 1,
        "description": "Number of new sessions.",
    });
    ToolDefinition::new(
        "fork_session",
        "Fork a session",
        "Makes independent sessions that begin with all variables and files of a session, which stays as \
         it is. Use it to try several ways from one state, such as three models on data that is loaded \
         and cleaned: run each way in a session of its own, compare, go on in the best one, and close the \
         others. Each counts as a session. If the session has something that cannot be copied, such as \
         threads, child processes or open sockets, the answer names it and nothing is changed.",
        input,
        ToolEffect::Adds,
    )
    .returns(schema::written::<ForkResult>())
}

pub(super) async fn fork(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let Fork {
        session_id,
        count,
        reseed,
    } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    let mut options = ForkOptions::new(count);
    options.reseed = reseed;
    let interpreter = server.engine.get().await?;
    let forks = server
        .sessions
        .fork(
            interpreter,
            &call.owner,
            call.conversation.as_ref(),
            &used,
            options,
        )
        .await?;
    Ok(CallAnswer::of(&ForkResult {
        parent: session_id,
        sessions: forks.iter().map(|fork| fork.id.clone()).collect(),
    }))
}

const fn one() -> usize {
    1
}

const fn yes() -> bool {
    true
}
