//! `/execute…`: commands of the shell, which run until they end or their chat's sandbox does.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use cellblock_interpreter::render::redraw::redrawn;
use cellblock_interpreter::session::processes::{
    MAX_OUTPUT, ProcessOrder, ProcessReport, ProcessSignal, ProcessState, Processes,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::arguments::{between, flag, json, query};
use super::chat::{Caller, HeldChat, OpenTerminal};
use super::keys::{Keystroke, keystrokes};
use super::problem::Problem;

/// Maximum number of seconds that a request waits.
const MAX_SECONDS: f64 = 300.0;
/// Maximum number of bytes of output in an answer.
const MAX_SHOWN: usize = 256 * 1024;
/// Maximum wait for the end of a killed process.
const ENDING: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(super) struct ExecRequest {
    /// Command for bash, with pipes, redirections, `&&` and the like.
    command: String,
    /// Working directory; by default that of the chat.
    cwd: Option<String>,
    /// Additional environment variables.
    env: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExecQuery {
    /// Seconds to wait for the command to end, at most 300. If it takes longer, it goes on, and
    /// `get_process_status` returns the rest.
    wait: Option<f64>,
    /// Return only so many of the last lines.
    tail: Option<usize>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StatusQuery {
    /// Seconds to wait for the command to end, at most 300; by default none.
    wait: Option<f64>,
    /// Offset at which to begin: `next_offset` of the answer before, so that only new output is returned.
    #[serde(default)]
    #[param(required = false)]
    offset: u64,
    /// Return only so many of the last lines.
    tail: Option<usize>,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(super) struct InputRequest {
    /// Text for its standard input. `\n`, `\t` and other escape sequences are decoded; `\x03`
    /// (Ctrl-C) interrupts it and `\x04` (Ctrl-D) ends its input.
    input: String,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct KillQuery {
    /// Whether it is killed at once (SIGKILL) instead of asked to end (SIGTERM).
    #[serde(default, deserialize_with = "flag")]
    #[param(required = false)]
    force: bool,
}

/// A line of output.
#[derive(Debug, Serialize)]
struct OutputLine {
    #[serde(rename = "type")]
    kind: &'static str,
    data: String,
}

/// Run a command in bash, in an isolated sandbox. Returns its output if it ends within `wait`
/// seconds, and otherwise its ID.
#[utoipa::path(post, path = "/execute", operation_id = "run_command", params(ExecQuery),
    request_body = ExecRequest, responses((status = 200, description = "The command and its output",
        body = Object)))]
pub(super) async fn run(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let ExecQuery { wait, tail } = query(&uri)?;
    let wait = wait
        .map(patience)
        .transpose()?
        .unwrap_or(terminal.options.default_wait);
    let asked: ExecRequest = json(&body)?;
    let held = terminal.chat(&caller).await?;
    let cwd = match asked.cwd.filter(|cwd| !cwd.is_empty()) {
        Some(cwd) => join(&held.kept.cwd(), &cwd),
        None => held.kept.cwd(),
    };
    // For as long as somebody waits. A server that goes on is bounded by the sandbox alone.
    let _permit = terminal.host.cell(&caller.owner).await?;
    let mut env = BTreeMap::from([("PYTHONUNBUFFERED".to_owned(), "1".to_owned())]);
    env.extend(asked.env.unwrap_or_default());
    let order = ProcessOrder {
        command: vec!["bash".to_owned(), "-c".to_owned(), asked.command],
        env,
        directory: Some(cwd.clone()),
        stdin: true,
        terminal: None,
    };
    let started = held.session.processes().start(order).await?;
    let mut answer = report(&held, &started.id, wait, 0, tail).await?;
    answer["cwd"] = cwd.into();
    Ok(Json(answer))
}

/// List the commands of this chat: those that run, and the last ones that ended.
#[utoipa::path(get, path = "/execute", operation_id = "list_processes",
    responses((status = 200, description = "The commands", body = Object)))]
pub(super) async fn list(State(terminal): State<OpenTerminal>, caller: Caller) -> Json<Value> {
    let held = terminal.existing(&caller);
    let all = held
        .map(|held| held.session.processes().list())
        .unwrap_or_default();
    let commands = all.iter().filter(|process| !process.terminal);
    Json(commands.map(summary).collect())
}

/// Get the state of a command, and its output from an offset.
#[utoipa::path(get, path = "/execute/{process_id}/status", operation_id = "get_process_status",
    params(("process_id" = String, Path, description = "ID of the command"), StatusQuery),
    responses((status = 200, description = "The command and its output", body = Object)))]
pub(super) async fn status(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let StatusQuery { wait, offset, tail } = query(&uri)?;
    let wait = wait.map(patience).transpose()?.unwrap_or_default();
    let held = command(&terminal, &caller, &id)?;
    Ok(Json(report(&held, &id, wait, offset, tail).await?))
}

/// Send text to the standard input of a command, or interrupt it with `\x03`.
#[utoipa::path(post, path = "/execute/{process_id}/input", operation_id = "send_process_input",
    params(("process_id" = String, Path, description = "ID of the command")),
    request_body = InputRequest, responses((status = 200, description = "It was sent", body = Object)))]
pub(super) async fn input(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: InputRequest = json(&body)?;
    let held = command(&terminal, &caller, &id)?;
    let processes = held.session.processes();
    if processes.wait(&id, Duration::ZERO).await?.state != ProcessState::Running {
        let detail = format!("command `{id}` has already ended");
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    for keystroke in keystrokes(&asked.input) {
        match keystroke {
            Keystroke::Text(text) => processes.input(&id, text.as_bytes(), false).await?,
            Keystroke::End => processes.input(&id, &[], true).await?,
            Keystroke::Signal(name) => {
                let signal = name.parse().map_err(Problem::invalid)?;
                processes.signal(&id, signal).await?;
            }
        }
    }
    Ok(Json(json!({"status": "ok"})))
}

/// End a running command: ask it to end, or kill it at once with `force`.
#[utoipa::path(delete, path = "/execute/{process_id}", operation_id = "kill_process",
    params(("process_id" = String, Path, description = "ID of the command"), KillQuery),
    responses((status = 200, description = "Its state", body = Object)))]
pub(super) async fn kill(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let KillQuery { force } = query(&uri)?;
    let held = command(&terminal, &caller, &id)?;
    let processes = held.session.processes();
    if processes.wait(&id, Duration::ZERO).await?.state == ProcessState::Running {
        let signal = if force {
            ProcessSignal::KILL
        } else {
            ProcessSignal::TERM
        };
        processes.signal(&id, signal).await?;
    }
    let ended = processes.wait(&id, ENDING).await?;
    if ended.state == ProcessState::Running {
        return Ok(Json(json!({
            "status": "running",
            "detail": format!("command `{id}` goes on although it was asked to end; kill it with force=true"),
        })));
    }
    Ok(Json(json!({"status": "killed"})))
}

/// Finds a command of the caller's chat.
fn command(terminal: &OpenTerminal, caller: &Caller, id: &str) -> Result<HeldChat, Problem> {
    let unknown = || {
        Problem::missing(format!(
            "there is no command `{id}`; list_processes lists those that are kept"
        ))
    };
    let held = terminal.existing(caller).ok_or_else(unknown)?;
    let all = held.session.processes().list();
    let found = all.iter().any(|process| process.id == id && !process.terminal);
    found.then_some(held).ok_or_else(unknown)
}

/// Waits for a command to end, and returns its state and its output.
async fn report(
    held: &HeldChat,
    id: &str,
    wait: Duration,
    offset: u64,
    tail: Option<usize>,
) -> Result<Value, Problem> {
    tail.map(|tail| between("tail", tail, 1, usize::MAX))
        .transpose()?;
    let processes = held.session.processes();
    let report = processes.ended(id, wait).await?;
    let running = report.state == ProcessState::Running;
    let mut answer = summary(&report);
    if report.state == ProcessState::Lost {
        answer["output"] = json!([]);
        answer["next_offset"] = offset.into();
        answer["truncated"] = true.into();
        return Ok(answer);
    }
    let (text, next, mut truncated) = output(processes, id, offset, running).await?;
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if let Some(tail) = tail.filter(|tail| *tail < lines.len()) {
        lines.drain(..lines.len() - tail);
        truncated = true;
    }
    let entry = |line: &str| OutputLine {
        kind: "output",
        data: line.to_owned(),
    };
    answer["output"] = json!(lines.into_iter().map(entry).collect::<Vec<_>>());
    answer["next_offset"] = next.into();
    answer["truncated"] = truncated.into();
    Ok(answer)
}

/// Returns a command's output from an offset on, its last bytes if it is long, and whether
/// something is left out.
async fn output(
    processes: Processes<'_>,
    id: &str,
    offset: u64,
    running: bool,
) -> Result<(String, u64, bool), Problem> {
    let mut text = String::new();
    let (mut next, mut truncated) = (offset, false);
    // What a command that goes on writes meanwhile is for the next request.
    let mut end = None;
    loop {
        let part = processes.output(id, next, MAX_OUTPUT, Duration::ZERO).await?;
        let (eof, lost) = (part.eof, part.lost);
        let end = *end.get_or_insert(part.total);
        let (more, read) = part.into_text();
        truncated |= lost > 0;
        let stuck = read == next && more.is_empty();
        next = read;
        text.push_str(&more);
        if text.len() > 2 * MAX_SHOWN {
            text = redrawn(&text).into_owned();
            truncated |= shorten(&mut text);
        }
        if eof || stuck || (running && next >= end) {
            break;
        }
    }
    text = redrawn(&text).into_owned();
    truncated |= shorten(&mut text);
    Ok((text, next, truncated))
}

/// Keeps the end of a text, from the beginning of a line if there is one; returns whether something
/// was left out.
fn shorten(text: &mut String) -> bool {
    let Some(over) = text.len().checked_sub(MAX_SHOWN).filter(|over| *over > 0) else {
        return false;
    };
    let start = (over..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let line = text[start..]
        .find('\n')
        .map(|at| start + at + 1)
        .filter(|at| *at < text.len());
    text.drain(..line.unwrap_or(start));
    true
}

/// A command in short.
fn summary(process: &ProcessReport) -> Value {
    let status = match process.state {
        ProcessState::Running => "running",
        ProcessState::Exited => "done",
        ProcessState::Killed | ProcessState::Lost => "killed",
    };
    let mut answer = json!({
        "id": process.id,
        "command": process.command.last(),
        "status": status,
        "exit_code": process.exit_code,
        "log_path": process.output_file,
    });
    if let Some(signal) = &process.signal {
        answer["signal"] = signal.as_str().into();
    }
    answer
}

fn patience(seconds: f64) -> Result<Duration, Problem> {
    Ok(Duration::from_secs_f64(between(
        "wait",
        seconds,
        0.0,
        MAX_SECONDS,
    )?))
}

/// Returns a path as seen from a directory; the sandbox judges it.
pub(super) fn join(cwd: &str, path: &str) -> String {
    match path.strip_prefix('~') {
        Some("") => super::chat::HOME.to_owned(),
        Some(rest) if rest.starts_with('/') => format!("{}{rest}", super::chat::HOME),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{}/{path}", cwd.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_its_last_lines() {
        let mut text = "é123456\n".repeat(MAX_SHOWN / 8);
        assert!(shorten(&mut text));
        assert!(text.len() <= MAX_SHOWN && text.starts_with('é'), "{}", text.len());
        let mut short = "abc".to_owned();
        assert!(!shorten(&mut short));
        let mut line = "x".repeat(MAX_SHOWN + 5);
        assert!(shorten(&mut line));
        assert_eq!(line.len(), MAX_SHOWN);
    }

    #[test]
    fn a_path_is_seen_from_the_working_directory() {
        assert_eq!(join("/workspace", "a"), "/workspace/a");
        assert_eq!(join("/", "a"), "/a");
        assert_eq!(join("/tmp", "~/a"), "/workspace/a");
        assert_eq!(join("/tmp", "~"), "/workspace");
        assert_eq!(join("/tmp", "/etc"), "/etc");
    }
}
