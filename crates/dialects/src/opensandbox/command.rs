//! `/command`: programs, in the foreground with their output as it comes, or in the background.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State as Given};
use axum::http::HeaderName;
use axum::response::Response;
use cellblock_interpreter::hosting::Permit;
use cellblock_interpreter::session::processes::{
    MAX_OUTPUT, ProcessOrder, ProcessReader, ProcessReport, ProcessSignal, ProcessState, ProcessStream,
};
use chrono::DateTime;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::access::ExecdSandbox;
use super::code::RunId;
use super::error::Problem;
use super::events::{self, Lines, Teller};
use super::files::place;
use super::sandbox::{HeldSandbox, State};
use crate::fault::DialectFault;
use crate::instant::instant;

/// By this command the client's library finds out whether code can run: it looks for the port of a
/// Jupyter server.
const PROBE: &str = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/${JUPYTER_PORT:-44771}' && exit 0 || exit 1";
/// Time between an interrupt and the end by force.
const GRACE: Duration = Duration::from_secs(3);
const CURSOR: HeaderName = HeaderName::from_static("execd-commands-tail-cursor");

/// A program to run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CommandRequest {
    command: Option<String>,
    argv: Option<Vec<String>>,
    cwd: Option<String>,
    background: bool,
    /// In milliseconds.
    timeout: Option<u64>,
    envs: BTreeMap<String, String>,
    uid: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Tail {
    #[serde(default)]
    cursor: u64,
}

pub(super) async fn run(
    Given(state): Given<State>,
    ExecdSandbox { sandbox, owner }: ExecdSandbox,
    request: Result<Json<CommandRequest>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(request) = request?;
    let limit = request.limit()?;
    let background = request.background;
    let probe = request.command.as_deref() == Some(PROBE);
    let order = request.order(&sandbox.kept.env)?;
    let permit = state.host.cell(&owner).await?;
    if probe {
        return Ok(probed(&state, sandbox, permit));
    }
    let tasks = state.host.tasks.clone();
    // Also without the client, the command has a timeout and counts for its key.
    let starting = tasks.spawn(async move {
        if background {
            in_background(&state, sandbox, permit, order, limit).await
        } else {
            in_foreground(&state, sandbox, permit, order, limit).await
        }
    });
    let started = starting.await;
    started.map_err(|error| DialectFault::internal("start a command", &error))?
}

/// Starts a command, which ends with the stream of its output.
async fn in_foreground(
    state: &State,
    sandbox: HeldSandbox,
    permit: Permit,
    order: ProcessOrder,
    limit: Option<Duration>,
) -> Result<Response, Problem> {
    let gone = CancellationToken::new();
    let id = sandbox.session.processes().start(order).await?.id;
    let mut process = ProcessReader::new(&sandbox.session, &id, 0);
    let (teller, response) = events::channel(gone.clone());
    let ending = state.host.ending.clone();
    state.host.tasks.spawn(async move {
        let started = Instant::now();
        teller.tell("init", json!({"text": process.id})).await;
        let over = async {
            tokio::select! {
                () = gone.cancelled() => "the client has gone",
                () = ending.cancelled() => "the server is stopping",
                () = sandbox.closed() => "the sandbox was deleted",
                () = after(limit) => "timeout: the command ran longer than it may",
            }
        };
        tokio::select! {
            ended = follow(&mut process, &teller) => match ended {
                Ok(report) => tell_end(&report, &teller).await,
                Err(problem) => teller.error(problem.code, &problem.message, &[]).await,
            },
            why = over => {
                process.kill().await;
                teller.error("CommandExecError", "124", &[why]).await;
            }
        }
        teller.complete(started.elapsed()).await;
        drop(permit);
    });
    Ok(response)
}

/// Passes on what a process writes, until it ends.
async fn follow(process: &mut ProcessReader, teller: &Teller) -> Result<ProcessReport, Problem> {
    let [mut stdout, mut stderr] = [Lines::default(), Lines::default()];
    while let Some((stream, bytes)) = process.next().await? {
        match stream {
            ProcessStream::Stdout => teller.text("stdout", stdout.push(&bytes)).await,
            ProcessStream::Stderr => teller.text("stderr", stderr.push(&bytes)).await,
        }
    }
    let report = process.end().await?;
    teller.text("stdout", stdout.rest()).await;
    teller.text("stderr", stderr.rest()).await;
    Ok(report)
}

async fn tell_end(report: &ProcessReport, teller: &Teller) {
    let code = exit_code(report);
    if code != 0 {
        // Clients read the exit code from the value.
        let words = report.state_in_words();
        teller
            .error("CommandExecError", &code.to_string(), &[&words])
            .await;
    }
}

/// Starts a command, answers its id, and leaves it alone.
async fn in_background(
    state: &State,
    sandbox: HeldSandbox,
    permit: Permit,
    order: ProcessOrder,
    limit: Option<Duration>,
) -> Result<Response, Problem> {
    // Its output is read later, as one sequence.
    let started = sandbox.session.processes().start(order).await?;
    let (teller, response) = events::channel(CancellationToken::new());
    state.host.tasks.spawn(async move {
        teller.tell("init", json!({"text": started.id})).await;
        teller.complete(Duration::ZERO).await;
        drop((teller, permit));
        if limit.is_some() {
            tokio::select! {
                () = after(limit) => sandbox.session.processes().kill(&started.id).await,
                () = sandbox.closed() => {}
            }
        }
    });
    Ok(response)
}

/// Answers whether code can run, which is what the client's library asks by its command.
fn probed(state: &State, sandbox: HeldSandbox, permit: Permit) -> Response {
    let (teller, response) = events::channel(CancellationToken::new());
    state.host.tasks.spawn(async move {
        let started = Instant::now();
        teller.tell("init", json!({"text": "probe"})).await;
        if let Err(error) = sandbox.session.prepare().await {
            let problem = Problem::from(error);
            teller.error("CommandExecError", "1", &[&problem.message]).await;
        }
        teller.complete(started.elapsed()).await;
        drop(permit);
    });
    response
}

impl CommandRequest {
    fn limit(&self) -> Result<Option<Duration>, Problem> {
        match self.timeout {
            Some(0) => Err(Problem::invalid(
                "invalid timeout `0`: must be greater than 0 milliseconds",
            )),
            given => Ok(given.map(Duration::from_millis)),
        }
    }

    fn order(self, env: &BTreeMap<String, String>) -> Result<ProcessOrder, Problem> {
        if self.uid.is_some() {
            return Err(Problem::unsupported(
                "`uid` is not supported: programs of a sandbox run as its one user; leave it out",
            ));
        }
        let mut all = env.clone();
        all.extend(self.envs);
        let directory = self.cwd.filter(|it| !it.is_empty()).map(|it| place(&it));
        let command = match (self.command, self.argv) {
            (Some(command), None) if !command.trim().is_empty() => {
                ["bash", "-c", command.as_str()].map(str::to_owned).to_vec()
            }
            (None, Some(argv)) if !argv.is_empty() => argv,
            (Some(_), Some(_)) => return Err(Problem::invalid("give `command` or `argv`, not both")),
            _ => return Err(Problem::invalid("`command` is empty")),
        };
        Ok(ProcessOrder {
            command,
            env: all,
            directory,
            ..ProcessOrder::default()
        })
    }
}

/// Stops a command by the id of its event `init`.
pub(super) async fn interrupt(
    Given(state): Given<State>,
    opened: ExecdSandbox,
    query: Result<Query<RunId>, QueryRejection>,
) -> Result<(), Problem> {
    let Query(RunId { id }) = query?;
    let int = "SIGINT".parse().unwrap_or(ProcessSignal::TERM);
    opened.sandbox.session.processes().signal(&id, int).await?;
    state.host.tasks.spawn(async move {
        let ended = opened.sandbox.session.processes().wait(&id, GRACE).await;
        if ended.is_ok_and(|report| report.state == ProcessState::Running) {
            opened.sandbox.session.processes().kill(&id).await;
        }
    });
    Ok(())
}

pub(super) async fn status(
    opened: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let report = report(&opened.sandbox, &id).await?;
    let running = report.state == ProcessState::Running;
    let time = |ms: u64| DateTime::from_timestamp_millis(i64::try_from(ms).unwrap_or(i64::MAX)).map(instant);
    let code = (!running).then(|| exit_code(&report));
    Ok(Json(json!({
        "id": id,
        "content": report.command.last(),
        "running": running,
        "exit_code": code,
        "error": if code.unwrap_or(0) == 0 { String::new() } else { report.state_in_words() },
        "started_at": time(report.started_unix_ms),
        "finished_at": report.ended_unix_ms.and_then(time),
    })))
}

/// Reads the output of a background command from a cursor, which is an offset in bytes.
pub(super) async fn logs(
    opened: ExecdSandbox,
    Path((_, id)): Path<(String, String)>,
    query: Result<Query<Tail>, QueryRejection>,
) -> Result<([(HeaderName, String); 1], String), Problem> {
    let Query(Tail { cursor }) = query?;
    let processes = opened.sandbox.session.processes();
    let read = processes.output(&id, cursor, MAX_OUTPUT, Duration::ZERO).await;
    let (text, next) = read.map_err(|error| not_found(error.into(), &id))?.into_text();
    Ok(([(CURSOR, next.to_string())], text))
}

async fn report(sandbox: &HeldSandbox, id: &str) -> Result<ProcessReport, Problem> {
    let found = sandbox.session.processes().wait(id, Duration::ZERO).await;
    found.map_err(|error| not_found(error.into(), id))
}

fn not_found(problem: Problem, id: &str) -> Problem {
    if problem.code == "NOT_FOUND" {
        let message = format!("command `{id}` does not exist, or its output is no longer kept");
        return Problem::missing("COMMAND_NOT_FOUND", message);
    }
    problem
}

/// The exit code as a shell has it.
pub(super) fn exit_code(report: &ProcessReport) -> i32 {
    match (report.exit_code, report.signal.as_deref()) {
        (Some(code), _) => code,
        (None, Some("SIGINT")) => 130,
        (None, Some("SIGKILL")) => 137,
        (None, Some("SIGTERM")) => 143,
        (None, Some("SIGSEGV")) => 139,
        (None, _) => 255,
    }
}

pub(super) async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
