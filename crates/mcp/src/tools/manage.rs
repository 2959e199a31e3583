//! Tools that begin, list and end sessions.

use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use cellblock_settings::clock::millis_since_epoch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, schema};
use crate::answer::CallAnswer;
use crate::refusal::Refusal;
use crate::sessions::SessionEntry;
use crate::shared::McpShared;

/// Nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

/// Session to use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionSelector {
    /// The session's handle.
    session_id: String,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionDescription {
    /// Its handle: pass it as `session_id`.
    session_id: String,
    /// Time of its creation, in milliseconds since 1970.
    created_unix_ms: u64,
    /// Number of cells that were run in it.
    cells: u64,
    /// Whether a call is at work on it.
    busy: bool,
    /// Whether its memory was given back until it is used again.
    hibernated: bool,
    /// For how many seconds nothing was asked of it.
    idle_seconds: u64,
    /// After how many such seconds it is closed.
    expires_after_seconds: u64,
    /// Files that its code finds, read-only.
    datasets: Vec<String>,
}

/// An owner's sessions.
#[derive(Debug, Serialize, JsonSchema)]
struct Sessions {
    /// Oldest first.
    sessions: Vec<SessionDescription>,
}

/// Action that was taken on a session.
#[derive(Debug, Serialize, JsonSchema)]
struct ActionAnswer {
    /// Its handle.
    session_id: String,
    /// Action that was taken.
    done: &'static str,
}

pub(super) fn create_definition() -> ToolDefinition {
    ToolDefinition::new(
        "create_session",
        "Create a session",
        "Makes a session: a Python kernel in a sandbox of its own, whose variables and files stay from \
         call to call until it is closed or expires.",
        schema::read::<NoArguments>(),
        ToolEffect::Adds,
    )
    .returns(schema::written::<SessionDescription>())
}

pub(super) fn list_definition() -> ToolDefinition {
    ToolDefinition::new(
        "list_sessions",
        "List sessions",
        "Lists the sessions of this server's user with their handles. Sessions of other conversations are \
         among them: use only those whose handle an answer gave you.",
        schema::read::<NoArguments>(),
        ToolEffect::Reads,
    )
    .returns(schema::written::<Sessions>())
}

pub(super) fn reset_definition() -> ToolDefinition {
    ToolDefinition::new(
        "reset_session",
        "Reset a session",
        "Drops all variables of a session and ends its processes; its files stay. It waits for code that \
         runs in it: interrupt that first.",
        schema::read::<SessionSelector>(),
        ToolEffect::Discards,
    )
    .returns(schema::written::<ActionAnswer>())
}

pub(super) fn interrupt_definition() -> ToolDefinition {
    ToolDefinition::new(
        "interrupt_session",
        "Interrupt a session",
        "Stops the code or command that runs in a session now; variables and files stay.",
        schema::read::<SessionSelector>(),
        ToolEffect::Settles,
    )
    .returns(schema::written::<ActionAnswer>())
}

pub(super) fn close_definition() -> ToolDefinition {
    ToolDefinition::new(
        "close_session",
        "Close a session",
        "Ends a session and what runs in it: its variables and files are gone.",
        schema::read::<SessionSelector>(),
        ToolEffect::Discards,
    )
    .returns(schema::written::<ActionAnswer>())
}

pub(super) async fn create(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let NoArguments {} = call.read()?;
    let used = call.session(server, None).await?;
    Ok(CallAnswer::of(&described(server, &used, false)))
}

pub(super) fn list(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let NoArguments {} = call.read()?;
    let sessions = server.sessions.of(&call.owner);
    let sessions = sessions
        .iter()
        .map(|entry| described(server, entry, entry.holds() > 0));
    Ok(CallAnswer::of(&Sessions {
        sessions: sessions.collect(),
    }))
}

pub(super) async fn reset(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let SessionSelector { session_id } = call.read()?;
    let used = call.find(server, &session_id)?;
    let _turn = call.turn(&used).await?;
    used.session.reset().await?;
    used.renew_attempts();
    Ok(done(session_id, "its variables are dropped"))
}

pub(super) fn interrupt(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let SessionSelector { session_id } = call.read()?;
    let used = call.find(server, &session_id)?;
    used.session.interrupt();
    Ok(done(session_id, "what ran in it is interrupted"))
}

pub(super) async fn close(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let SessionSelector { session_id } = call.read()?;
    let used = call.find(server, &session_id)?;
    server.sessions.registry.close(&used).await?;
    Ok(done(session_id, "it is closed"))
}

fn done(session_id: String, done: &'static str) -> CallAnswer {
    CallAnswer::of(&ActionAnswer { session_id, done })
}

fn described(server: &McpShared, entry: &SessionEntry, busy: bool) -> SessionDescription {
    SessionDescription {
        session_id: entry.id.clone(),
        created_unix_ms: millis_since_epoch(entry.created),
        cells: entry.cells(),
        busy,
        hibernated: entry.session.is_hibernated(),
        idle_seconds: entry.idle().as_secs(),
        expires_after_seconds: server.options.lifetime().as_secs(),
        datasets: entry.datasets.iter().map(|it| it.path.clone()).collect(),
    }
}
