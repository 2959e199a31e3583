//! `/api/kernels/{id}/channels`: all channels of a kernel as a WebSocket.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::caller::Caller;
use super::kernel::{Activity, Client};
use super::kernels::restart;
use super::problem::Problem;
use super::queue::Job;
use super::state::{HeldKernel, Jupyter};
use super::wire::{Form, Message, V1};

/// Maximum time without a message; then the client gets a ping.
const QUIET: Duration = Duration::from_secs(20);
/// Maximum time for a client to take a message.
const STALL: Duration = Duration::from_secs(30);

/// A client's connection. It does not keep the kernel from expiring.
struct Connection {
    jupyter: Jupyter,
    caller: Caller,
    id: String,
    form: Form,
    sender: mpsc::Sender<Arc<Message>>,
}

/// Opens the channels.
pub(super) async fn open(
    State(jupyter): State<Jupyter>,
    caller: Caller,
    Path(id): Path<String>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let held = jupyter.kernel(&caller.0, &id)?;
    let upgrade = upgrade.map_err(|rejection| {
        let message = format!("channels open as a WebSocket: {}", rejection.body_text());
        Problem::new(StatusCode::BAD_REQUEST, message)
    })?;
    let limit = jupyter.host.max_body;
    let upgrade = upgrade
        .max_message_size(limit)
        .max_frame_size(limit)
        .protocols([V1]);
    let chosen = upgrade.selected_protocol().is_some();
    let form = if chosen { Form::V1 } else { Form::Default };
    let tasks = jupyter.host.tasks.clone();
    Ok(upgrade.on_upgrade(move |socket| {
        tasks.track_future(async move {
            let client = held.kept.connect();
            let number = client.number;
            let resident = Arc::clone(&held);
            drop(held);
            let connection = Connection {
                jupyter,
                caller,
                id,
                form,
                sender: client.sender.clone(),
            };
            let closed = async { resident.closed().await };
            connection.serve(socket, client, closed).await;
            resident.kept.disconnect(number);
        })
    }))
}

impl Connection {
    async fn serve(self, socket: WebSocket, client: Client, closed: impl Future<Output = ()>) {
        let (mut sender, mut receiver) = socket.split();
        self.greet();
        let closing = tokio::select! {
            closing = self.tell(&mut sender, client.messages) => closing,
            closing = self.listen(&mut receiver) => closing,
            () = closed => Some(because(close_code::NORMAL, "the kernel has ended")),
            () = self.jupyter.host.stopping.cancelled() => {
                Some(because(close_code::AWAY, "the server is stopping"))
            }
        };
        // Also the answer to the client's own close, which it waits for.
        let _ = timeout(STALL, async {
            if let Some(closing) = closing {
                let _ = sender.send(Frame::Close(Some(closing))).await;
            }
            let _ = sender.close().await;
        })
        .await;
    }

    fn kernel(&self) -> Option<HeldKernel> {
        self.jupyter.kernel(&self.caller.0, &self.id).ok()
    }

    /// Tells the client what the kernel does, as the answer to a question that nobody asked: some
    /// wait for it.
    fn greet(&self) {
        let Some(held) = self.kernel() else { return };
        let kernel = &held.kept;
        let asked = kernel.message("shell", "kernel_info_request", &Map::new(), json!({}));
        let activity = match kernel.activity() {
            Activity::Starting => Activity::Idle,
            other => other,
        };
        let content = json!({"execution_state": activity.name()});
        let status = kernel.message("iopub", "status", &asked.header, content);
        let _ = self.sender.try_send(Arc::new(status));
    }

    /// Sends messages of the kernel. `None` if nobody is left to read them.
    async fn tell(
        &self,
        to: &mut SplitSink<WebSocket, Frame>,
        mut messages: mpsc::Receiver<Arc<Message>>,
    ) -> Option<CloseFrame> {
        loop {
            let frame = match timeout(QUIET, messages.recv()).await {
                Ok(Some(message)) => message.write(self.form),
                Ok(None) => return Some(because(close_code::POLICY, "the client does not read")),
                Err(_) => Frame::Ping(Bytes::new()),
            };
            timeout(STALL, to.send(frame)).await.ok()?.ok()?;
        }
    }

    /// Passes on the client's requests.
    async fn listen(&self, from: &mut SplitStream<WebSocket>) -> Option<CloseFrame> {
        while let Some(Ok(frame)) = from.next().await {
            let size = match &frame {
                Frame::Text(text) => text.len(),
                Frame::Binary(bytes) => bytes.len(),
                _ => 0,
            };
            match frame {
                Frame::Text(_) | Frame::Binary(_) => match Message::read(&frame, self.form) {
                    Ok(request) => self.take(request, size).await,
                    Err(reason) => return Some(because(close_code::INVALID, &reason)),
                },
                Frame::Ping(_) | Frame::Pong(_) => {}
                Frame::Close(_) => return None,
            }
        }
        None
    }

    async fn take(&self, request: Message, size: usize) {
        let Some(held) = self.kernel() else { return };
        let kernel = &held.kept;
        match request.kind() {
            "execute_request" | "complete_request" | "inspect_request" | "is_complete_request" => {
                let queue = kernel.queue.clone();
                let client = self.sender.clone();
                let life = held.kept.life();
                let job = Job {
                    held,
                    request,
                    client,
                    life,
                    room: None,
                };
                if let Err(refused) = queue.offer(job, size) {
                    let Job {
                        held,
                        request,
                        client,
                        ..
                    } = *refused;
                    let message = "too many requests wait for this kernel; wait for one of them";
                    let content = json!({"status": "error", "ename": "KernelBusy", "evalue": message,
                        "traceback": [message]});
                    held.kept.reply(&client, &request, content).await;
                }
            }
            "kernel_info_request" => {
                let python = self.jupyter.host.interpreter.python_version();
                self.at_once(&held, &request, kernel.spec.info(python)).await;
            }
            "history_request" => {
                let last = request
                    .content
                    .get("n")
                    .and_then(Value::as_u64)
                    .unwrap_or(u64::MAX);
                let last = usize::try_from(last).unwrap_or(usize::MAX);
                let pattern = request
                    .text("pattern")
                    .filter(|_| request.text("hist_access_type") == Some("search"));
                let content = json!({"status": "ok", "history": kernel.history(last, pattern)});
                self.at_once(&held, &request, content).await;
            }
            "comm_info_request" => {
                self.at_once(&held, &request, json!({"status": "ok", "comms": {}}))
                    .await;
            }
            // No target has a handler, which is said in this way.
            "comm_open" => {
                let content = json!({"comm_id": request.text("comm_id"), "data": {}});
                kernel.publish("comm_close", &request.header, content).await;
            }
            "interrupt_request" => {
                held.session.interrupt();
                self.at_once(&held, &request, json!({"status": "ok"})).await;
            }
            "shutdown_request" => self.shut_down(&held, &request).await,
            kind if kind.ends_with("_request") => {
                let message = format!("`{kind}` is not served");
                let content =
                    json!({"status": "error", "ename": "UnknownMessage", "evalue": message, "traceback": []});
                self.at_once(&held, &request, content).await;
            }
            // Messages about comms, none of which is open, and answers to questions that were not asked.
            _ => {}
        }
    }

    /// Answers without waiting for code that runs.
    async fn at_once(&self, held: &HeldKernel, request: &Message, content: Value) {
        let kernel = &held.kept;
        let busy = json!({"execution_state": "busy"});
        kernel.publish("status", &request.header, busy).await;
        kernel.reply(&self.sender, request, content).await;
        let idle = json!({"execution_state": "idle"});
        kernel.publish("status", &request.header, idle).await;
        kernel.settle();
    }

    async fn shut_down(&self, held: &HeldKernel, request: &Message) {
        let restarts = request.flag("restart", false);
        let content = json!({"status": "ok", "restart": restarts});
        self.at_once(held, request, content).await;
        if restarts {
            if let Err(problem) = restart(held).await {
                tracing::warn!(?problem, "a kernel could not be restarted");
            }
            return;
        }
        held.kept.status(Activity::Dead, &request.header).await;
        if let Err(problem) = self.jupyter.end(held).await {
            tracing::warn!(?problem, "a kernel could not be ended");
        }
    }
}

fn because(code: u16, reason: &str) -> CloseFrame {
    let end = (0..=reason.len().min(120))
        .rev()
        .find(|at| reason.is_char_boundary(*at))
        .unwrap_or(0);
    CloseFrame {
        code,
        reason: reason[..end].into(),
    }
}
