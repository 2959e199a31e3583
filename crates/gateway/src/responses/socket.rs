//! `GET /v1/responses` as a WebSocket: one turn after the other, each begun by a `response.create`,
//! its events as messages.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response as Answer;
use cellblock_agent::wire::{ApiError, Dialect, ErrorKind, ResponseStatus};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::create::dialect;
use super::keep;
use super::prepare::{Memory, prepare};
use super::run::{EventReceiver, WAITING};
use super::socket_message::SocketMessage;
use crate::problem::Problem;
use crate::records::holders::HoldingGateway;
use crate::replicas;
use crate::state::{Caller, Gateway};

/// Requests that may wait for the turn that runs.
const MAX_WAITING: usize = 8;

/// A client's connection.
struct SocketConnection {
    gateway: Gateway,
    caller: Caller,
    dialect: Dialect,
    headers: HeaderMap,
    socket: WebSocket,
    /// The response before, which can be gone on from even if it is not stored.
    memory: Option<Memory>,
    waiting: VecDeque<SocketMessage>,
    /// Id and lane of the response that runs, if it has a lane.
    running: Option<(String, String)>,
    deadline: Instant,
}

/// The connection has ended, or has to.
#[derive(Debug)]
struct SocketClosed;

/// Opens a connection for a client that asks for one.
pub(super) fn open(
    gateway: Gateway,
    caller: Caller,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Answer, Problem> {
    let upgrade = upgrade.map_err(|rejection| ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("websocket_expected".to_owned()),
        message: format!(
            "`GET /v1/responses` with `Upgrade` opens a WebSocket: {}",
            rejection.body_text()
        ),
        param: None,
    })?;
    let most = gateway.options.http.max_body;
    let connection = move |socket| {
        let tasks = gateway.tasks.clone();
        let connection = SocketConnection {
            dialect: dialect(&gateway, &headers),
            headers,
            deadline: Instant::now() + gateway.options.responses.socket_timeout,
            gateway,
            caller,
            socket,
            memory: None,
            waiting: VecDeque::new(),
            running: None,
        };
        tasks.track_future(connection.serve())
    };
    Ok(upgrade
        .max_message_size(most)
        .max_frame_size(most)
        .on_upgrade(connection))
}

impl SocketConnection {
    async fn serve(mut self) {
        while let Ok(message) = self.next().await {
            if self.turn(&message).await.is_err() {
                break;
            }
        }
    }

    /// The next request.
    async fn next(&mut self) -> Result<SocketMessage, SocketClosed> {
        loop {
            if Instant::now() >= self.deadline {
                return self.too_old().await;
            }
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            tokio::select! {
                message = self.socket.recv() => self.heard(message).await?,
                () = self.gateway.stopping.cancelled() => {
                    self.close(close_code::AWAY, "the gateway is stopping").await;
                    return Err(SocketClosed);
                }
                () = sleep_until(self.deadline) => {}
                () = sleep(self.gateway.options.responses.keep_alive) => {
                    self.send(Message::Ping(Bytes::new())).await?;
                }
            }
        }
    }

    /// Answers a request.
    async fn turn(&mut self, asked: &SocketMessage) -> Result<(), SocketClosed> {
        let (request, generate) = match asked.request() {
            Ok(request) => request,
            Err(error) => return self.refuse(asked, &error).await,
        };
        let previous = request.previous_response_id.clone();
        let prepared = Box::pin(prepare(
            &self.gateway,
            &self.caller,
            request,
            self.dialect,
            self.memory.as_ref(),
        ));
        // What came from another gateway is not sent to a third one.
        let (prepared, elsewhere) = if self.headers.contains_key(replicas::FORWARDED_BY) {
            (prepared.await, None)
        } else {
            replicas::noting(prepared).await
        };
        let mut job = match (prepared, elsewhere) {
            (Ok(job), _) => job,
            (Err(_), Some(holder)) => return self.relay(&holder, asked).await,
            (Err(error), None) => {
                self.forget(previous.as_deref());
                return self.refuse(asked, &error).await;
            }
        };
        job.generate &= generate;
        job.turn = job.turn.asking();
        if job.request.store
            && let Err(error) = keep::begun(&self.gateway, &job.owner, &job.request, &job.response).await
        {
            return self.refuse(asked, &error).await;
        }
        self.running = asked
            .lane()
            .map(|lane| (job.response.id.clone(), lane.to_owned()));
        let (sender, mut events) = mpsc::channel(WAITING);
        let played = self.gateway.tasks.spawn(
            job.play(EventReceiver::Client(sender), CancellationToken::new())
                .in_current_span(),
        );
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.send(Message::Text(asked.answer(event.json()).into())).await?,
                    None => break,
                },
                message = self.socket.recv() => self.heard(message).await?,
                () = sleep(self.gateway.options.responses.keep_alive) => {
                    self.send(Message::Ping(Bytes::new())).await?;
                }
            }
        }
        self.running = None;
        let Ok(played) = played.await else {
            return Err(SocketClosed);
        };
        if played.response.status == ResponseStatus::Failed {
            self.forget(previous.as_deref());
        } else {
            self.memory = Some(Memory {
                id: played.response.id,
                conversation: played.conversation,
                container: played.container,
                evidence: played.evidence,
            });
        }
        Ok(())
    }

    /// Lets another gateway answer this request and all that follow.
    async fn relay(&mut self, holder: &HoldingGateway, asked: &SocketMessage) -> Result<(), SocketClosed> {
        let unanswered: Vec<_> = [asked.text.clone()]
            .into_iter()
            .chain(self.waiting.drain(..).map(|message| message.text))
            .collect();
        let relayed = replicas::relay(&self.gateway, holder, &self.headers, &mut self.socket, unanswered);
        match relayed.await {
            Ok(()) => Err(SocketClosed),
            Err(error) => self.refuse(asked, &error).await,
        }
    }

    /// Notes a request that comes while another is answered.
    async fn heard(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), SocketClosed> {
        match message {
            Some(Ok(Message::Text(text))) => self.said(SocketMessage::of(text.as_str())).await,
            Some(Ok(Message::Binary(_))) => {
                let message = "messages have to be text, and JSON";
                let error = ApiError::invalid("type", "invalid_type", message);
                self.refuse(&SocketMessage::default(), &error).await
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Err(SocketClosed),
        }
    }

    /// Answers input for a response that runs, and lets other requests wait.
    async fn said(&mut self, message: SocketMessage) -> Result<(), SocketClosed> {
        if let Some(mut answer) = message.steering() {
            // Such a message names no lane: clients expect the answer in that of the response.
            if let Some((id, lane)) = &self.running
                && answer["steer"]["previous_response_id"] == *id
            {
                answer["stream_id"] = json!(lane);
            }
            return self.send(Message::Text(answer.to_string().into())).await;
        }
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back(message);
            return Ok(());
        }
        let error = ApiError {
            kind: ErrorKind::TooManyRequests,
            code: Some("rate_limit_exceeded".to_owned()),
            message: format!("{MAX_WAITING} requests wait already; send the next when one is answered"),
            param: None,
        };
        self.refuse(&message, &error).await
    }

    /// A continuation that failed leaves nothing to go on from, unless it is stored.
    fn forget(&mut self, previous: Option<&str>) {
        self.memory.take_if(|memory| Some(memory.id.as_str()) == previous);
    }

    async fn too_old(&mut self) -> Result<SocketMessage, SocketClosed> {
        let limit = self.gateway.options.responses.socket_timeout;
        let error = ApiError {
            kind: ErrorKind::InvalidRequestError,
            code: Some("websocket_connection_limit_reached".to_owned()),
            message: format!(
                "the connection has been open for {} minutes, the longest that is allowed; open another",
                limit.as_secs() / 60
            ),
            param: None,
        };
        self.refuse(&SocketMessage::default(), &error).await?;
        self.close(close_code::NORMAL, "open for too long").await;
        Err(SocketClosed)
    }

    /// Tells what is wrong with a request.
    async fn refuse(&mut self, asked: &SocketMessage, error: &ApiError) -> Result<(), SocketClosed> {
        let mut envelope = json!(error);
        envelope["type"] = json!("error");
        envelope["status"] = json!(error.status());
        self.send(Message::Text(asked.answer(envelope.to_string()).into()))
            .await
    }

    /// Sends a message, unless the client does not read for too long.
    async fn send(&mut self, message: Message) -> Result<(), SocketClosed> {
        let patience = self.gateway.options.responses.stall_timeout;
        match timeout(patience, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(SocketClosed),
        }
    }

    async fn close(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let _ = timeout(
            Duration::from_secs(1),
            self.socket.send(Message::Close(Some(frame))),
        )
        .await;
    }
}
