//! `process.Process`: commands and terminals.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cellblock_interpreter::session::processes::{
    MAX_INPUT, ProcessOrder, ProcessReport, ProcessSignal, ProcessState, TerminalSize,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::super::paths::{HOME, absolute};
use super::super::place::Inside;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Called, Fault};
use super::started::{Config, Process, Selector};
use super::streams;

/// Silence after which a message is sent all the same, unless the client names another.
const BEAT: Duration = Duration::from_secs(50);
/// How long the error stream may go on after the end of its process.
const REST: Duration = Duration::from_secs(2);

/// A request of any method; each uses its own fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    process: Value,
    pty: Option<Pty>,
    tag: Option<String>,
    stdin: Option<bool>,
    input: Input,
    signal: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Pty {
    size: Size,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
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
#[serde(default)]
struct Input {
    stdin: Option<String>,
    pty: Option<String>,
}

/// A message of a stream of input.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Streamed {
    start: Option<Chosen>,
    data: Option<Given>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chosen {
    process: Selector,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Given {
    input: Input,
}

pub(super) async fn call(
    State(e2b): State<E2b>,
    Path(method): Path<String>,
    headers: HeaderMap,
    Inside(held): Inside,
    body: Bytes,
) -> Response {
    if let Err(refused) = connect::check_codec(&headers) {
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

async fn perform(held: &HeldSandbox, method: &str, request: Request) -> Called<Value> {
    let processes = held.session.processes();
    let started = &held.kept.daemon.started;
    if method == "List" {
        return Ok(json!({ "processes": started.running(processes) }));
    }
    let selector: Selector = serde_json::from_value(request.process)
        .map_err(|error| Fault::invalid(format!("invalid `process`: {error}")))?;
    let process = started.find(&selector)?;
    match method {
        "SendInput" => {
            processes
                .input(&process.id, &request.input.bytes()?, false)
                .await?
        }
        "CloseStdin" => processes.input(&process.id, &[], true).await?,
        "SendSignal" => processes.signal(&process.id, signal(&request.signal)?).await?,
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

async fn stream_input(held: &HeldSandbox, all: Vec<Streamed>) -> Called<Value> {
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

async fn start(e2b: &E2b, held: &HeldSandbox, request: Request, headers: &HeaderMap) -> Called<Response> {
    let config: Config = serde_json::from_value(request.process)
        .map_err(|error| Fault::invalid(format!("invalid `process`: {error}")))?;
    let mut env = held.kept.envs.clone();
    for (name, value) in [("HOME", HOME), ("USER", "user"), ("LOGNAME", "user")] {
        env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    env.extend(config.envs.clone());
    let mut command = vec![config.cmd.clone()];
    command.extend(config.args.iter().cloned());
    let order = ProcessOrder {
        command,
        env,
        directory: Some(absolute(config.cwd.as_deref().unwrap_or(HOME))),
        // Old clients do not say.
        stdin: request.stdin.unwrap_or(true),
        terminal: request.pty.map(Pty::terminal),
    };
    let processes = held.session.processes();
    let permit = e2b.host.cell(&held.kept.owner).await;
    let permit = permit.map_err(|denied| Fault::new("resource_exhausted", denied.to_string()))?;
    let (report, stderr) = if order.terminal.is_some() {
        (processes.start(order).await?, None)
    } else {
        let split = streams::start(processes, order).await?;
        (split.process, Some(split.stderr))
    };
    let process = Process {
        pid: number(&report.id),
        id: report.id,
        stderr,
        config,
        tag: request.tag,
    };
    held.kept.daemon.started.add(process.clone(), processes);
    let until = seconds(headers, "connect-timeout-ms", 0.001);
    let (session, id) = (held.session.clone(), process.id.clone());
    e2b.host.tasks.spawn(async move {
        let ended = streams::ended(session.processes(), &id);
        let ended = tokio::time::timeout(until.unwrap_or(Duration::MAX), ended).await;
        if ended.is_err() {
            streams::kill(session.processes(), &id).await;
        }
        drop(permit);
    });
    let offsets = [0, streams::READY];
    Ok(follow(e2b, hold(held)?, process, offsets, until, headers))
}

/// Follows a process that was started before, from now on.
async fn attach(e2b: &E2b, held: &HeldSandbox, request: &Request, headers: &HeaderMap) -> Called<Response> {
    let selector: Selector = serde_json::from_value(request.process.clone())
        .map_err(|error| Fault::invalid(format!("invalid `process`: {error}")))?;
    let process = held.kept.daemon.started.find(&selector)?;
    let processes = held.session.processes();
    let report = processes.wait(&process.id, Duration::ZERO).await?;
    if report.state != ProcessState::Running {
        return Err(Fault::not_found(format!(
            "process with pid {} not found: it has ended",
            process.pid
        )));
    }
    let stdout = streams::written(processes, &process.id).await?;
    let stderr = match &process.stderr {
        Some(id) => streams::written(processes, id).await?,
        None => 0,
    };
    let until = seconds(headers, "connect-timeout-ms", 0.001);
    Ok(follow(
        e2b,
        hold(held)?,
        process,
        [stdout, stderr],
        until,
        headers,
    ))
}

fn hold(held: &HeldSandbox) -> Called<HeldSandbox> {
    held.hold()
        .ok_or_else(|| Fault::new("unavailable", "the sandbox has ended"))
}

/// Sends what a process writes, and its end. It goes on if the client goes.
fn follow(
    e2b: &E2b,
    held: HeldSandbox,
    process: Process,
    offsets: [u64; 2],
    until: Option<Duration>,
    headers: &HeaderMap,
) -> Response {
    let (messages, waiting) = mpsc::channel(16);
    let beat = seconds(headers, "keepalive-ping-interval", 1.0)
        .unwrap_or(BEAT)
        .max(Duration::from_secs(1));
    let following = e2b.host.tasks.spawn(async move {
        let _ = messages.send(event("start", json!({ "pid": process.pid }))).await;
        let mut telling = pin!(tell(&held, &process, offsets, &messages));
        let mut late = pin!(async {
            match until {
                Some(until) => sleep(until).await,
                None => pending().await,
            }
        });
        loop {
            tokio::select! {
                ended = &mut telling => return ended,
                () = messages.closed() => return Ok(()),
                () = held.closed() => return Err(Fault::new("unavailable", "the sandbox has ended")),
                () = &mut late => return Err(Fault::new("deadline_exceeded", "the command has reached its timeout")),
                () = sleep(beat) => drop(messages.try_send(event("keepalive", json!({})))),
            }
        }
    });
    connect::stream(waiting, async move { following.await.unwrap_or(Ok(())) })
}

async fn tell(
    held: &HeldSandbox,
    process: &Process,
    [stdout, stderr]: [u64; 2],
    messages: &mpsc::Sender<Value>,
) -> Called<()> {
    let processes = held.session.processes();
    let name = if process.stderr.is_some() { "stdout" } else { "pty" };
    let mut output = pin!(async {
        streams::follow(processes, &process.id, stdout, &Data { name, messages }).await?;
        streams::ended(processes, &process.id).await
    });
    let mut errors = pin!(async {
        let Some(id) = &process.stderr else { return Ok(()) };
        streams::follow(
            processes,
            id,
            stderr,
            &Data {
                name: "stderr",
                messages,
            },
        )
        .await
    });
    let mut is_read = false;
    let report = loop {
        tokio::select! {
            report = &mut output => break report?,
            read = &mut errors, if !is_read => { read?; is_read = true; }
        }
    };
    if !is_read {
        // What the process has left behind may hold it open.
        let _ = tokio::time::timeout(REST, errors).await;
    }
    let _ = messages.send(event("end", end(&report))).await;
    Ok(())
}

/// Sends parts of a stream.
#[derive(Debug)]
pub(super) struct Data<'a> {
    name: &'static str,
    messages: &'a mpsc::Sender<Value>,
}

impl Data<'_> {
    /// Sends a part. Returns whether somebody takes it.
    pub(super) async fn send(&self, bytes: &[u8]) -> bool {
        let data = event("data", json!({ self.name: STANDARD.encode(bytes) }));
        self.messages.send(data).await.is_ok()
    }
}

fn event(name: &str, value: Value) -> Value {
    json!({ "event": { name: value } })
}

fn end(report: &ProcessReport) -> Value {
    match (report.state, report.exit_code, &report.signal) {
        (ProcessState::Exited, Some(code), _) => {
            let mut end =
                json!({ "exitCode": code, "exited": true, "status": format!("exit status {code}") });
            if code != 0 {
                end["error"] = json!(format!("exit status {code}"));
            }
            end
        }
        (ProcessState::Lost, ..) => {
            json!({ "exitCode": -1, "exited": false, "status": "lost", "error": "the sandbox was lost" })
        }
        (.., signal) => {
            let status = format!("signal: {}", signal.as_deref().unwrap_or("unknown"));
            json!({ "exitCode": -1, "exited": false, "status": status, "error": status })
        }
    }
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
    fn bytes(&self) -> Called<Vec<u8>> {
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
fn signal(given: &Value) -> Called<ProcessSignal> {
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

/// Reads a header with a time in some unit of seconds.
fn seconds(headers: &HeaderMap, name: &str, unit: f64) -> Option<Duration> {
    let given: f64 = headers.get(name)?.to_str().ok()?.parse().ok()?;
    Duration::try_from_secs_f64(given * unit)
        .ok()
        .filter(|it| !it.is_zero())
}
