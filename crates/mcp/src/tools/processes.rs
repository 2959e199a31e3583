//! Tools for processes beside cells.

use std::collections::BTreeMap;
use std::time::Duration;

use cellblock_interpreter::render::CHARS_PER_TOKEN;
use cellblock_interpreter::render::redraw::redrawn;
use cellblock_interpreter::session::processes::{
    MAX_WAIT, ProcessOrder, ProcessOutput, ProcessReport, ProcessSignal, wait_of,
};
use cellblock_interpreter::text::counted;
use cellblock_interpreter::toolset::{ToolDefinition, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, schema};
use crate::answer::CallAnswer;
use crate::refusal::Refusal;
use crate::sessions::Use;
use crate::shared::McpShared;

/// Seconds for which an action waits for the end of a process, unless others are given.
const PATIENCE: f64 = 30.0;

/// A program to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The session's handle; without one a new session is made, and the answer tells its handle.
    #[serde(default)]
    session_id: Option<String>,
    /// The program and its arguments, such as `["python", "server.py"]`. No shell reads it: for
    /// pipes use `["sh", "-c", "…"]`.
    #[schemars(length(min = 1))]
    command: Vec<String>,
    /// Environment variables, in addition to those of the sandbox.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Working directory.
    #[serde(default = "workspace")]
    directory: String,
    /// Whether `use_process` sends it input later; otherwise its standard input is empty.
    #[serde(default)]
    stdin: bool,
}

fn workspace() -> String {
    "/workspace".to_owned()
}

/// Action on processes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseProcess {
    /// The session's handle.
    session_id: String,
    /// Action to take: `list` them all; or with one, read its `output`, send `input`, send a `signal`, or
    /// `wait` for its end.
    action: Action,
    /// ID of the process, such as `p1`; for all actions except `list`.
    #[serde(default)]
    process: Option<String>,
    /// For `output`: offset of the first byte to read, such as the `next_offset` of the last answer.
    #[serde(default)]
    offset: u64,
    /// Seconds to wait for new output (`output`, by default 0) or for the end (`wait`, by default 30).
    #[serde(default)]
    #[schemars(range(min = 0, max = 60))]
    timeout: Option<f64>,
    /// For `input`: the text to send; a line ends with a newline.
    #[serde(default)]
    input: String,
    /// For `input`: close standard input after the text.
    #[serde(default)]
    close: bool,
    /// For `signal`: its name, such as `SIGINT`. `SIGKILL` also ends everything that it started.
    #[serde(default = "terminate")]
    signal: String,
}

fn terminate() -> String {
    ProcessSignal::TERM.to_string()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Output,
    Input,
    Signal,
    Wait,
}

/// A process that was started.
#[derive(Debug, Serialize, JsonSchema)]
struct StartedProcess {
    /// The session's handle.
    session_id: String,
    /// The process.
    process: ProcessReport,
}

/// Processes, and output of one.
#[derive(Debug, Serialize, JsonSchema)]
struct UsedProcesses {
    /// The session's handle.
    session_id: String,
    /// The process; for `list`, all that are running and the last 64 that have ended.
    processes: Vec<ProcessReport>,
    /// Output of the process; null for other actions than `output`.
    output: Option<OutputPart>,
}

/// Output of a process: stdout and stderr in one sequence.
#[derive(Debug, Serialize, JsonSchema)]
struct OutputPart {
    /// The text.
    text: String,
    /// Offset from which to read on.
    next_offset: u64,
    /// Bytes after the requested offset that are no longer kept.
    lost: u64,
    /// Bytes that the process has written until now.
    total: u64,
    /// Whether the process has ended and this is the end of its output.
    eof: bool,
}

pub(super) fn start_definition() -> ToolDefinition {
    ToolDefinition::new(
        "start_process",
        "Start a process",
        "Starts a program that keeps running beside code, such as a server, a build, a training run or a \
         watcher, and returns at once. Use it for what takes longer than one call or has to stay; use \
         code for the rest. It sees the session's files, runs until it ends, is stopped with \
         `use_process`, or the session is reset or ends.",
        schema::read::<Start>(),
        ToolEffect::Adds,
    )
    .returns(schema::written::<StartedProcess>())
}

pub(super) fn use_definition() -> ToolDefinition {
    ToolDefinition::new(
        "use_process",
        "Use a process",
        "Lists the processes that `start_process` has started, reads the output of one, sends it input or \
         a signal, or waits for its end. After a start, read its output with a `timeout` of a few seconds \
         to see whether it works.",
        schema::read::<UseProcess>(),
        ToolEffect::Settles,
    )
    .returns(schema::written::<UsedProcesses>())
}

pub(super) async fn start(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let start: Start = call.read()?;
    let used = call.session(server, start.session_id.as_deref()).await?;
    let _permit = call.permit(server).await?;
    let order = ProcessOrder {
        command: start.command,
        env: start.env,
        directory: Some(start.directory),
        stdin: start.stdin,
        terminal: None,
    };
    let process = used.session.processes().start(order).await?;
    Ok(CallAnswer::of(&StartedProcess {
        session_id: used.id.clone(),
        process,
    }))
}

pub(super) async fn operate(server: &McpShared, call: &mut Call) -> Result<CallAnswer, Refusal> {
    let given: UseProcess = call.read()?;
    let used = call.find(server, &given.session_id)?;
    tokio::select! {
        answer = act(server, &used, &given) => answer,
        () = call.stop.cancelled() => Err(Refusal::cancelled()),
    }
}

async fn act(server: &McpShared, used: &Use, given: &UseProcess) -> Result<CallAnswer, Refusal> {
    let processes = used.session.processes();
    let told = |processes, output| UsedProcesses {
        session_id: given.session_id.clone(),
        processes,
        output,
    };
    if given.action == Action::List {
        return Ok(CallAnswer::of(&told(processes.list(), None)));
    }
    let Some(id) = given.process.as_deref() else {
        return Err(Refusal::new(
            "`process` is missing: give the ID of a process, such as `p1`; the action `list` lists them",
        ));
    };
    match given.action {
        Action::Input => {
            processes.input(id, given.input.as_bytes(), given.close).await?;
        }
        Action::Signal => {
            let signal = given.signal.parse().map_err(Refusal::new)?;
            processes.signal(id, signal).await?;
        }
        Action::Output => {
            let room = (server.options.max_tokens * CHARS_PER_TOKEN).max(4) as u64;
            let wait = patience(given.timeout.unwrap_or(0.0))?;
            let read = processes.output(id, given.offset, room, wait).await?;
            let report = processes.wait(id, Duration::ZERO).await?;
            return Ok(read_out(read, &report, told));
        }
        Action::List | Action::Wait => {}
    }
    let limit = if given.action == Action::Wait {
        patience(given.timeout.unwrap_or(PATIENCE))?
    } else {
        Duration::ZERO
    };
    let report = processes.wait(id, limit).await?;
    Ok(CallAnswer::of(&told(vec![report], None)))
}

/// An answer with output: as text, and how to read on.
fn read_out(
    read: ProcessOutput,
    report: &ProcessReport,
    told: impl Fn(Vec<ProcessReport>, Option<OutputPart>) -> UsedProcesses,
) -> CallAnswer {
    let (lost, total, eof) = (read.lost, read.total, read.eof);
    let (text, next_offset) = read.into_text();
    let text = redrawn(&text).into_owned();
    let told = told(
        vec![report.clone()],
        Some(OutputPart {
            text: text.clone(),
            next_offset,
            lost,
            total,
            eof,
        }),
    );
    let mut answer = CallAnswer::default();
    if lost > 0 {
        let verb = if lost == 1 { "is" } else { "are" };
        answer.text(format!(
            "({} before this {verb} no longer kept)",
            counted(lost, "byte")
        ));
    }
    answer.text(text);
    let (id, state) = (&report.id, report.state_in_words());
    let written = counted(total, "byte");
    answer.text(if eof {
        format!("({id} {state}; this is the end of its output, of {written})")
    } else {
        format!("({id}: {state}; {written} written so far; read on with `offset` {next_offset})")
    });
    answer.text(format!("[session_id] {}", told.session_id));
    answer.structured(&told);
    answer
}

fn patience(seconds: f64) -> Result<Duration, Refusal> {
    let most = MAX_WAIT.as_secs();
    wait_of(seconds).ok_or_else(|| {
        Refusal::new(format!(
            "`timeout` is {seconds}: give between 0 and {most} seconds"
        ))
    })
}
