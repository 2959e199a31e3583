//! Following a process: what it writes, and its end.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::session::processes::{ProcessReport, ProcessState};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Called, Fault};
use super::started::Process;
use super::streams;

/// Silence after which a message is sent all the same, unless the client names another.
const BEAT: Duration = Duration::from_secs(50);
/// How long the error stream may go on after the end of its process.
const REST: Duration = Duration::from_secs(2);

/// Sends what a process writes, and its end. It goes on if the client goes.
pub(super) fn follow(
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
        let _ = messages.send(event("start", &json!({ "pid": process.pid }))).await;
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
                () = sleep(beat) => drop(messages.try_send(event("keepalive", &json!({})))),
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
        streams::follow(processes, &process.id, stdout, &Parts { name, messages }).await?;
        streams::ended(processes, &process.id).await
    });
    let mut errors = pin!(async {
        let Some(id) = &process.stderr else { return Ok(()) };
        streams::follow(
            processes,
            id,
            stderr,
            &Parts {
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
    let _ = messages.send(event("end", &end(&report))).await;
    Ok(())
}

/// Sends parts of a stream.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    name: &'static str,
    messages: &'a mpsc::Sender<Value>,
}

impl Parts<'_> {
    /// Sends a part. Returns whether somebody takes it.
    pub(super) async fn send(&self, bytes: &[u8]) -> bool {
        let data = event("data", &json!({ self.name: STANDARD.encode(bytes) }));
        self.messages.send(data).await.is_ok()
    }
}

fn event(name: &str, value: &Value) -> Value {
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

/// Reads a header with a time in some unit of seconds.
pub(super) fn seconds(headers: &HeaderMap, name: &str, unit: f64) -> Option<Duration> {
    let given: f64 = headers.get(name)?.to_str().ok()?.parse().ok()?;
    Duration::try_from_secs_f64(given * unit)
        .ok()
        .filter(|it| !it.is_zero())
}
