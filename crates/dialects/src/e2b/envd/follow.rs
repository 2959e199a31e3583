//! Following a process: what it writes, and its end.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::session::processes::{ProcessReader, ProcessReport, ProcessState, ProcessStream};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::connect::{self, Fault, RpcResult};
use super::started::Process;

/// Silence after which a message is sent all the same, unless the client names another.
const BEAT: Duration = Duration::from_secs(50);

/// Sends what a process writes, and its end. It goes on if the client goes.
pub(super) fn follow(
    e2b: &E2b,
    held: HeldSandbox,
    process: Process,
    reading: ProcessReader,
    until: Option<Duration>,
    headers: &HeaderMap,
) -> Response {
    let (messages, waiting) = mpsc::channel(16);
    let beat = seconds(headers, "keepalive-ping-interval", 1.0)
        .unwrap_or(BEAT)
        .max(Duration::from_secs(1));
    let following = e2b.host.tasks.spawn(async move {
        let _ = messages
            .send(event("start", &json!({ "pid": process.pid })))
            .await;
        let mut telling = pin!(tell(&process, reading, &messages));
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
                () = &mut late => {
                    return Err(Fault::new("deadline_exceeded", "the command has reached its timeout"));
                }
                () = sleep(beat) => drop(messages.try_send(event("keepalive", &json!({})))),
            }
        }
    });
    connect::stream(waiting, async move { following.await.unwrap_or(Ok(())) })
}

async fn tell(
    process: &Process,
    mut reading: ProcessReader,
    messages: &mpsc::Sender<Value>,
) -> RpcResult<()> {
    while let Some((stream, bytes)) = reading.next().await? {
        let name = match stream {
            _ if process.terminal => "pty",
            ProcessStream::Stdout => "stdout",
            ProcessStream::Stderr => "stderr",
        };
        let data = event("data", &json!({ name: STANDARD.encode(bytes) }));
        if messages.send(data).await.is_err() {
            break;
        }
    }
    let report = reading.end().await?;
    let _ = messages.send(event("end", &end(&report))).await;
    Ok(())
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
