//! `process.Process`: commands and terminals.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cellblock_interpreter::json_error;
use cellblock_interpreter::session::processes::{
    MAX_INPUT, ProcessOrder, ProcessReader, ProcessSignal, ProcessState, TerminalSize,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::error::{Answer, Problem};
use super::super::paths::{HOME, absolute};
use super::super::place::RequestSandbox;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Fault, RpcResult};
use super::follow::{follow, seconds};
use super::started::{Config, Process, Selector};
use super::user::USER;
use crate::bounded::{BoundedDescription, BoundedName};

/// Maximum time that a process may take to end after it is killed.
const KILLED: Duration = Duration::from_secs(5);

/// A request of any method; each uses its own fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Request {
    process: Value,
    pty: Option<Pty>,
    tag: Option<BoundedName>,
    stdin: Option<bool>,
    input: Input,
    signal: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Pty {
    size: Size,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Size {
    cols: u16,
    rows: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { cols: 80, rows: 24 }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Input {
    stdin: Option<String>,
    pty: Option<String>,
}

/// A message of a stream of input.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct InputMessage {
    start: Option<ProcessChoice>,
    data: Option<InputChunk>,
    #[serde(rename = "keepalive")]
    _keepalive: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ProcessChoice {
    process: Selector,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct InputChunk {
    input: Input,
}

pub(super) async fn call(
    State(e2b): State<E2b>,
    Path(method): Path<String>,
    headers: HeaderMap,
    RequestSandbox(held): RequestSandbox,
    body: Bytes,
) -> Response {
    if let Some(refused) = connect::wrong_codec(&headers) {
        return refused;
    }
    if method == "StreamInput" {
        let done = match connect::messages(&body) {
            Ok(all) => stream_input(&held, all).await,
            Err(fault) => Err(fault),
        };
        return connect::answer(&headers, done);
    }
    let request: Request = match connect::message(&headers, &body) {
        Ok(request) => request,
        Err(fault) => return connect::answer(&headers, Err(fault)),
    };
    let streamed = match method.as_str() {
        "Start" => start(&e2b, &held, request, &headers).await,
        "Connect" => attach(&e2b, &held, &request, &headers).await,
        _ => return connect::answer(&headers, perform(&held, &method, request).await),
    };
    streamed.unwrap_or_else(|fault| connect::answer(&headers, Err(fault)))
}

async fn perform(held: &HeldSandbox, method: &str, request: Request) -> RpcResult<Value> {
    let processes = held.session.processes();
    let started = &held.kept.daemon.started;
    if method == "List" {
        let running: Vec<_> = started.running(processes).iter().map(Process::shown).collect();
        return Ok(json!({ "processes": running }));
    }
    let selector: Selector = serde_json::from_value(request.process)
        .map_err(|error| Fault::invalid(format!("invalid `process`: {}", json_error::describe(&error))))?;
    let process = started.find(&selector)?;
    match method {
        "SendInput" => {
            let bytes = request.input.bytes()?;
            processes.input(&process.id, &bytes, false).await?;
        }
        "CloseStdin" => processes.input(&process.id, &[], true).await?,
        "SendSignal" => {
            let signal = signal(&request.signal)?;
            processes.signal(&process.id, signal).await?;
            if signal == ProcessSignal::KILL {
                // From here on it is unknown.
                processes.wait(&process.id, KILLED).await?;
            }
        }
        "Update" => {
            if let Some(pty) = request.pty {
                processes.resize(&process.id, pty.terminal()).await?;
            }
        }
        _ => {
            return Err(Fault::new(
                "unimplemented",
                format!("`{method}` is not served by Cellblock"),
            ));
        }
    }
    Ok(json!({}))
}

async fn stream_input(held: &HeldSandbox, all: Vec<InputMessage>) -> RpcResult<Value> {
    let mut process = None;
    for message in all {
        if let Some(chosen) = message.start {
            process = Some(held.kept.daemon.started.find(&chosen.process)?);
        }
        if let Some(given) = message.data {
            let process: &Process = process
                .as_ref()
                .ok_or_else(|| Fault::invalid("the first message names no process"))?;
            let bytes = given.input.bytes()?;
            held.session.processes().input(&process.id, &bytes, false).await?;
        }
    }
    Ok(json!({}))
}

async fn start(e2b: &E2b, held: &HeldSandbox, request: Request, headers: &HeaderMap) -> RpcResult<Response> {
    let config: BoundedDescription<Config> = serde_json::from_value(request.process)
        .map_err(|error| Fault::invalid(format!("invalid `process`: {}", json_error::describe(&error))))?;
    let order = ProcessOrder {
        // Old clients do not say.
        stdin: request.stdin.unwrap_or(true),
        terminal: request.pty.map(Pty::terminal),
        ..order(held, &config)
    };
    let until = seconds(headers, "connect-timeout-ms", 0.001);
    let process = launch(e2b, held, order, config, request.tag, until).await?;
    let reading = ProcessReader::new(&held.session, &process.id, 0);
    Ok(follow(e2b, hold(held)?, process, reading, until, headers))
}

/// Starts the start command of a template.
pub(in super::super) async fn start_command(e2b: &E2b, held: &HeldSandbox, command: &str) -> Answer<()> {
    let config = BoundedDescription::new(Config {
        cmd: "/bin/bash".to_owned(),
        args: ["-l", "-c", command].map(str::to_owned).to_vec(),
        ..Config::default()
    });
    let config = config.map_err(|reason| Problem::invalid(format!("the start command is {reason}")))?;
    launch(e2b, held, order(held, &config), config, None, None).await?;
    Ok(())
}

/// Describes a program with the variables and the directory of its sandbox.
fn order(held: &HeldSandbox, config: &Config) -> ProcessOrder {
    let mut env = held.kept.envs.clone();
    for (name, value) in [("HOME", HOME), ("USER", USER), ("LOGNAME", USER)] {
        env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    env.extend(config.envs.clone());
    let mut command = vec![config.cmd.clone()];
    command.extend(config.args.iter().cloned());
    ProcessOrder {
        command,
        env,
        directory: Some(absolute(config.cwd.as_deref().unwrap_or(&held.kept.workdir))),
        ..ProcessOrder::default()
    }
}

/// Starts a process that counts for its key until it ends, or is killed at its timeout.
async fn launch(
    e2b: &E2b,
    held: &HeldSandbox,
    order: ProcessOrder,
    config: BoundedDescription<Config>,
    tag: Option<BoundedName>,
    until: Option<Duration>,
) -> RpcResult<Process> {
    let terminal = order.terminal.is_some();
    let permit = e2b.host.cell(&held.kept.owner).await;
    let permit = permit.map_err(|denied| Fault::new("resource_exhausted", denied.to_string()))?;
    let (own, tasks) = (hold(held)?, e2b.host.tasks.clone());
    // Also without the client, the process is listed, has a timeout and counts for its key.
    let starting = e2b.host.tasks.spawn(async move {
        let processes = own.session.processes();
        let report = processes.start(order).await?;
        let process = Process {
            pid: number(&report.id),
            id: report.id,
            terminal,
            config,
            tag,
        };
        own.kept.daemon.started.add(process.clone(), processes);
        let (session, id) = (own.session.clone(), process.id.clone());
        tasks.spawn(async move {
            let ended = session
                .processes()
                .ended(&id, until.unwrap_or(Duration::MAX))
                .await;
            if ended.is_ok_and(|report| report.state == ProcessState::Running) {
                session.processes().kill(&id).await;
            }
            drop(permit);
        });
        Ok::<_, Fault>(process)
    });
    let started = starting.await;
    started.map_err(|error| Problem::internal("start a process", &error))?
}

/// Follows a process that was started before, from now on.
async fn attach(
    e2b: &E2b,
    held: &HeldSandbox,
    request: &Request,
    headers: &HeaderMap,
) -> RpcResult<Response> {
    let selector: Selector = serde_json::from_value(request.process.clone())
        .map_err(|error| Fault::invalid(format!("invalid `process`: {}", json_error::describe(&error))))?;
    let process = held.kept.daemon.started.find(&selector)?;
    let processes = held.session.processes();
    let report = processes.wait(&process.id, Duration::ZERO).await?;
    if report.state != ProcessState::Running {
        return Err(Fault::not_found(format!(
            "process with pid {} not found: it has ended",
            process.pid
        )));
    }
    let reading = ProcessReader::from_now(&held.session, &process.id).await?;
    let until = seconds(headers, "connect-timeout-ms", 0.001);
    Ok(follow(e2b, hold(held)?, process, reading, until, headers))
}

fn hold(held: &HeldSandbox) -> RpcResult<HeldSandbox> {
    held.hold()
        .ok_or_else(|| Fault::new("unavailable", "the sandbox has ended"))
}

impl Pty {
    fn terminal(self) -> TerminalSize {
        TerminalSize {
            rows: self.size.rows,
            columns: self.size.cols,
        }
    }
}

impl Input {
    fn bytes(&self) -> RpcResult<Vec<u8>> {
        let text = self.stdin.as_ref().or(self.pty.as_ref());
        let text = text.ok_or_else(|| Fault::invalid("the request has no input"))?;
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| Fault::invalid(format!("the input is not base64: {error}")))?;
        if bytes.len() > MAX_INPUT {
            let message = format!(
                "the input has {} bytes, the limit is {MAX_INPUT}; send it in parts",
                bytes.len()
            );
            return Err(Fault::new("resource_exhausted", message));
        }
        Ok(bytes)
    }
}

/// Reads a signal by its name or number.
fn signal(given: &Value) -> RpcResult<ProcessSignal> {
    match given {
        Value::String(name) if name == "SIGNAL_SIGKILL" => Ok(ProcessSignal::KILL),
        Value::String(name) if name == "SIGNAL_SIGTERM" => Ok(ProcessSignal::TERM),
        Value::Number(number) if number.as_u64() == Some(9) => Ok(ProcessSignal::KILL),
        Value::Number(number) if number.as_u64() == Some(15) => Ok(ProcessSignal::TERM),
        other => Err(Fault::invalid(format!(
            "{other} is not a signal; use SIGNAL_SIGTERM or SIGNAL_SIGKILL"
        ))),
    }
}

/// Number of the process with an id such as `p1`.
fn number(id: &str) -> u32 {
    id.trim_start_matches('p').parse().unwrap_or(0)
}
