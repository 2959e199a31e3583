//! `/pty`: shells of a person, which outlive their connections (`terminal_socket.rs`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use cellblock_interpreter::Error;
use cellblock_interpreter::json_error;
use cellblock_interpreter::mint;
use cellblock_interpreter::session::processes::{MAX_OUTPUT, ProcessOrder, ProcessState};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::access::ExecdSandbox;
use super::error::Problem;
use super::files::place;
use super::sandbox::{HeldSandbox, State, lock};
use crate::bounded::{BoundedDescription, BoundedName};
use crate::terminal::SIZE;

/// Maximum number of terminals of a sandbox, those whose shells have ended among them.
const MAX_TERMINALS: usize = 64;

/// The terminals of a sandbox by their ids.
#[derive(Debug, Default)]
pub(super) struct Terminals(Mutex<HashMap<String, Arc<Terminal>>>);

/// A terminal.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    request: TerminalRequest,
    shell: Mutex<Option<Shell>>,
    /// Locked by the connection that has it.
    pub(super) seat: Arc<tokio::sync::Mutex<()>>,
    /// Ends the connection that has it.
    pub(super) eviction: Notify,
}

/// The process of a terminal.
#[derive(Clone, Debug)]
pub(super) struct Shell {
    pub(super) id: String,
    /// Whether its streams are apart, without a terminal.
    pub(super) is_piped: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TerminalRequest {
    cwd: Option<BoundedName>,
    /// Command that runs instead of a shell.
    command: Option<BoundedDescription<String>>,
}

pub(super) async fn create(
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let request = if body.is_empty() {
        TerminalRequest::default()
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| Problem::invalid(format!("read the body: {}", json_error::describe(&error))))?
    };
    let mut all = lock(&sandbox.kept.terminals.0);
    if all.len() >= MAX_TERMINALS {
        return Err(Problem::invalid(format!(
            "the sandbox has {MAX_TERMINALS} terminals, which is the limit; delete one"
        )));
    }
    let id = mint("");
    let terminal = Terminal {
        request,
        ..Terminal::default()
    };
    all.insert(id.clone(), Arc::new(terminal));
    Ok((StatusCode::CREATED, Json(json!({ "session_id": id }))))
}

pub(super) async fn status(
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let terminal = find(&sandbox, &id)?;
    let shell = lock(&terminal.shell).clone();
    let (mut running, mut offset) = (false, 0);
    if let Some(shell) = &shell {
        running = shell.is_running(&sandbox).await;
        offset = shell.written(&sandbox).await.unwrap_or_default();
    }
    Ok(Json(json!({
        "session_id": id,
        "running": running,
        "output_offset": offset,
        "launch_attempted": shell.is_some(),
    })))
}

/// Ends a terminal; a connection to it sees the end of the shell.
pub(super) async fn delete(
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<(), Problem> {
    let terminal = find(&sandbox, &id)?;
    lock(&sandbox.kept.terminals.0).remove(&id);
    let shell = lock(&terminal.shell).clone();
    if let Some(shell) = shell {
        sandbox.session.processes().kill(&shell.id).await;
    }
    Ok(())
}

pub(super) fn find(sandbox: &HeldSandbox, id: &str) -> Result<Arc<Terminal>, Problem> {
    let found = lock(&sandbox.kept.terminals.0).get(id).cloned();
    found.ok_or_else(|| {
        let message = format!("terminal `{id}` does not exist; create one with `POST /pty`");
        Problem::missing("CONTEXT_NOT_FOUND", message)
    })
}

impl Terminal {
    /// Returns the shell that runs, or starts one; the flag says that it was started.
    pub(super) async fn shell(
        &self,
        state: &State,
        ExecdSandbox { sandbox, owner }: &ExecdSandbox,
        is_piped: bool,
    ) -> Result<(Shell, bool), Problem> {
        let known = lock(&self.shell).clone();
        if let Some(shell) = known
            && shell.is_running(sandbox).await
        {
            return Ok((shell, false));
        }
        let TerminalRequest { cwd, command } = self.request.clone();
        let command = command.filter(|it| !it.trim().is_empty());
        let command = match &command {
            Some(command) => vec!["bash", "-c", command.as_str()],
            None if is_piped => vec!["bash"],
            None => vec!["bash", "-i"],
        };
        let order = ProcessOrder {
            command: command.into_iter().map(str::to_owned).collect(),
            env: sandbox.kept.env.clone(),
            directory: cwd.filter(|it| !it.is_empty()).map(|it| place(&it)),
            stdin: true,
            terminal: (!is_piped).then_some(SIZE),
        };
        let _permit = state.host.cell(owner).await?;
        let id = sandbox.session.processes().start(order).await?.id;
        let shell = Shell { id, is_piped };
        *lock(&self.shell) = Some(shell.clone());
        Ok((shell, true))
    }
}

impl Shell {
    async fn is_running(&self, sandbox: &HeldSandbox) -> bool {
        let report = sandbox.session.processes().wait(&self.id, Duration::ZERO).await;
        report.is_ok_and(|report| report.state == ProcessState::Running)
    }

    /// Returns the number of bytes that it has written.
    async fn written(&self, sandbox: &HeldSandbox) -> Result<u64, Error> {
        let processes = sandbox.session.processes();
        Ok(processes.output(&self.id, 0, 0, Duration::ZERO).await?.total)
    }

    /// Returns the output since an offset, at most its last MiB, and the offset at which to continue.
    pub(super) async fn replay(&self, sandbox: &HeldSandbox, since: u64) -> Result<(Vec<u8>, u64), Error> {
        let processes = sandbox.session.processes();
        let total = self.written(sandbox).await?;
        let mut offset = since.max(total.saturating_sub(MAX_OUTPUT)).min(total);
        let mut bytes = Vec::new();
        while offset < total {
            let part = processes.output(&self.id, offset, total - offset, Duration::ZERO);
            let part = part.await?;
            if part.bytes.is_empty() {
                break;
            }
            offset = part.next;
            bytes.extend(part.bytes);
        }
        Ok((bytes, offset))
    }
}
