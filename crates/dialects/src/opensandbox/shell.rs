//! `/session`: shells that keep their variables and their directory from one command to the next.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State as Given};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::json_error;
use cellblock_interpreter::mint;
use cellblock_interpreter::session::processes::{MAX_INPUT, ProcessOrder, ProcessReader, ProcessStream};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::access::ExecdSandbox;
use super::command::{after, exit_code};
use super::error::Problem;
use super::events::{self, Lines, Teller};
use super::files::place;
use super::sandbox::{HeldSandbox, State, lock};

/// Maximum number of shells of a sandbox, those that have ended and were not deleted among them.
const MAX_SHELLS: usize = 64;

/// The shells of a sandbox by their ids.
#[derive(Debug, Default)]
pub(super) struct Shells(Mutex<HashMap<String, Arc<tokio::sync::Mutex<ProcessReader>>>>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ShellRequest {
    cwd: Option<String>,
}

/// A command for a shell.
#[derive(Debug, Deserialize)]
pub(super) struct RunRequest {
    command: String,
    cwd: Option<String>,
    /// In milliseconds.
    timeout: Option<u64>,
}

pub(super) async fn create(
    Given(state): Given<State>,
    ExecdSandbox { sandbox, owner }: ExecdSandbox,
    body: axum::body::Bytes,
) -> Result<Json<Value>, Problem> {
    let request: ShellRequest = if body.is_empty() {
        ShellRequest::default()
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| Problem::invalid(format!("read the body: {}", json_error::describe(&error))))?
    };
    if lock(&sandbox.kept.shells.0).len() >= MAX_SHELLS {
        return Err(Problem::invalid(format!(
            "the sandbox has {MAX_SHELLS} sessions, which is the limit; delete one"
        )));
    }
    let _permit = state.host.cell(&owner).await?;
    let order = ProcessOrder {
        command: ["bash", "--noprofile", "--norc"].map(str::to_owned).to_vec(),
        env: sandbox.kept.env.clone(),
        directory: request.cwd.filter(|it| !it.is_empty()).map(|it| place(&it)),
        stdin: true,
        ..ProcessOrder::default()
    };
    let started = sandbox.session.processes().start(order).await?;
    let process = ProcessReader::new(&sandbox.session, &started.id, 0);
    let id = mint("");
    let shell = Arc::new(tokio::sync::Mutex::new(process));
    lock(&sandbox.kept.shells.0).insert(id.clone(), shell);
    Ok(Json(json!({ "session_id": id })))
}

pub(super) async fn run(
    Given(state): Given<State>,
    ExecdSandbox { sandbox, owner }: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
    request: Result<Json<RunRequest>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(request) = request?;
    if request.command.trim().is_empty() {
        return Err(Problem::invalid("`command` is empty"));
    }
    let found = lock(&sandbox.kept.shells.0).get(&id).cloned();
    let shell = found.ok_or_else(|| missing(&id))?.lock_owned().await;
    let permit = state.host.cell(&owner).await?;
    let limit = request.timeout.filter(|it| *it > 0).map(Duration::from_millis);
    let mark = mint("end-");
    let script = script(&request, &mark);
    if script.len() > MAX_INPUT {
        return Err(Problem::invalid("the command is too long; put it into a file"));
    }
    let gone = CancellationToken::new();
    let (teller, response) = events::channel(gone.clone());
    let ending = state.host.ending.clone();
    state.host.tasks.spawn(async move {
        let started = Instant::now();
        let mut shell = shell;
        teller.tell("init", json!({ "text": mark })).await;
        let over = async {
            tokio::select! {
                () = gone.cancelled() => "the client has gone",
                () = ending.cancelled() => "the server is stopping",
                () = sandbox.closed() => "the sandbox was deleted",
                () = after(limit) => "timeout: the command ran longer than it may",
            }
        };
        let ended = tokio::select! {
            ended = perform(&mut shell, &sandbox, &script, &mark, &teller) => ended,
            why = over => {
                shell.kill().await;
                Ok(ShellEnd::Shell(124, why.to_owned()))
            }
        };
        match ended {
            Ok(ShellEnd::Command(0)) => {}
            Ok(ShellEnd::Command(code)) => {
                let words = format!("exited with code {code}");
                teller
                    .error("CommandExecError", &code.to_string(), &[&words])
                    .await;
            }
            Ok(ShellEnd::Shell(code, words)) => {
                lock(&sandbox.kept.shells.0).remove(&id);
                let words = format!("{words}; the session has ended");
                teller
                    .error("CommandExecError", &code.to_string(), &[&words])
                    .await;
            }
            Err(problem) => teller.error(problem.code, &problem.message, &[]).await,
        }
        teller.complete(started.elapsed()).await;
        drop(permit);
    });
    Ok(response)
}

pub(super) async fn delete(
    opened: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<(), Problem> {
    let found = lock(&opened.sandbox.kept.shells.0).remove(&id);
    let shell = found.ok_or_else(|| missing(&id))?;
    let Ok(shell) = shell.try_lock() else {
        // The run that has it would go on without a name.
        lock(&opened.sandbox.kept.shells.0).insert(id.clone(), Arc::clone(&shell));
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "SESSION_BUSY",
            format!("a command runs in session `{id}`; wait for its end"),
        ));
    };
    shell.kill().await;
    Ok(())
}

/// End of a command of a shell.
#[derive(Debug)]
enum ShellEnd {
    /// With this exit code.
    Command(i32),
    /// With the shell.
    Shell(i32, String),
}

/// Gives a shell a command, and passes on what it writes until both streams have its mark.
async fn perform(
    shell: &mut ProcessReader,
    sandbox: &HeldSandbox,
    script: &str,
    mark: &str,
    teller: &Teller,
) -> Result<ShellEnd, Problem> {
    let processes = sandbox.session.processes();
    processes.input(&shell.id, script.as_bytes(), false).await?;
    let mut sides = [MarkReader::new(mark), MarkReader::new(mark)];
    while sides.iter().any(|side| side.code.is_none()) {
        let Some((stream, bytes)) = shell.next().await? else {
            let report = shell.end().await?;
            return Ok(ShellEnd::Shell(exit_code(&report), report.state_in_words()));
        };
        let (name, marked) = match stream {
            ProcessStream::Stdout => ("stdout", &mut sides[0]),
            ProcessStream::Stderr => ("stderr", &mut sides[1]),
        };
        teller.text(name, marked.push(&bytes)).await;
    }
    Ok(ShellEnd::Command(sides[0].code.unwrap_or_default()))
}

/// Returns the script that a shell reads for a command: it prints a mark to both streams after it.
fn script(request: &RunRequest, mark: &str) -> String {
    let code = STANDARD.encode(&request.command);
    let enter = request
        .cwd
        .as_deref()
        .filter(|it| !it.is_empty())
        .map_or(String::new(), |it| {
            let directory = STANDARD.encode(place(it));
            format!("cd -- \"$(base64 -d <<<{directory})\" && ")
        });
    format!(
        "{enter}eval \"$(base64 -d <<<{code})\" </dev/null\n\
         {{ __code=$?; printf '\\n%s %d\\n' {mark} \"$__code\"; printf '\\n%s %d\\n' {mark} \"$__code\" \
         >&2; }}\n"
    )
}

/// Text of a stream up to a mark, which is on a line of its own.
#[derive(Debug)]
struct MarkReader {
    mark: String,
    lines: Lines,
    /// A line break that belongs to the text only if more comes.
    pending: bool,
    code: Option<i32>,
}

impl MarkReader {
    fn new(mark: &str) -> Self {
        Self {
            mark: mark.to_owned(),
            lines: Lines::default(),
            pending: false,
            code: None,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = String::new();
        for line in self.lines.push(bytes).split_inclusive('\n') {
            let code = line.strip_prefix(self.mark.as_str());
            if let Some(code) = code.and_then(|rest| rest.trim().parse().ok()) {
                self.code = Some(code);
                self.pending = false;
                continue;
            }
            if self.code.is_some() {
                continue;
            }
            if std::mem::take(&mut self.pending) {
                text.push('\n');
            }
            let body = line.strip_suffix('\n');
            text.push_str(body.unwrap_or(line));
            self.pending = body.is_some();
        }
        text
    }
}

fn missing(id: &str) -> Problem {
    Problem::missing(
        "SESSION_NOT_FOUND",
        format!("session `{id}` does not exist, or it has ended; create one with `POST /session`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_ends_a_text_wherever_it_is_cut_and_is_not_in_it() {
        for (written, shown) in [
            ("a\nb\n\nM 3\n", "a\nb\n"),
            ("a\n\nM 3\n", "a\n"),
            ("\nM 3\n", ""),
            ("a\nM 3\n", "a"),
        ] {
            for cut in 0..=written.len() {
                let mut marked = MarkReader::new("M");
                let text = marked.push(&written.as_bytes()[..cut]) + &marked.push(&written.as_bytes()[cut..]);
                assert_eq!(
                    (text.trim_end(), marked.code),
                    (shown.trim_end(), Some(3)),
                    "{written:?} {cut}"
                );
            }
        }
    }
}
