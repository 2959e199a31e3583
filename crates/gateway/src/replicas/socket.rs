//! A client's WebSocket whose turn needs another gateway: from then on its messages pass through to
//! a connection there, and back.

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use axum::http::HeaderMap;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use cellblock_agent::wire::ApiError;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Upgraded;
use serde_json::json;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::{Message as Frame, Role};

use super::broken_socket::farewell;
use super::broken_stream::lost_response;
use super::forward::{carried, failed, url};
use crate::records::holders::HoldingGateway;
use crate::state::Gateway;

/// The route of WebSockets for responses.
const PATH: &str = "/v1/responses";

/// Connects to another gateway as the client that sent these headers, and passes messages,
/// beginning with those that were not answered yet, until one of both sides ends. An error means
/// that nothing was sent.
pub(crate) async fn relay(
    gateway: &Gateway,
    holder: &HoldingGateway,
    headers: &HeaderMap,
    client: &mut WebSocket,
    unanswered: impl IntoIterator<Item = String>,
) -> Result<(), ApiError> {
    let mut there = open(gateway, holder, headers).await?;
    for text in unanswered {
        if there.send(Frame::text(text)).await.is_err() {
            return Ok(());
        }
    }
    loop {
        let passed = tokio::select! {
            message = client.recv() => match message {
                Some(Ok(Message::Text(text))) => there.send(Frame::text(text.as_str())).await.is_ok(),
                Some(Ok(Message::Binary(bytes))) => there.send(Frame::Binary(bytes)).await.is_ok(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
                Some(Ok(Message::Close(_)) | Err(_)) | None => false,
            },
            frame = there.next() => match frame {
                Some(Ok(Frame::Text(text))) => client.send(Message::Text(text.as_str().into())).await.is_ok(),
                Some(Ok(Frame::Binary(bytes))) => client.send(Message::Binary(bytes)).await.is_ok(),
                Some(Ok(Frame::Ping(bytes))) => client.send(Message::Ping(bytes)).await.is_ok(),
                Some(Ok(Frame::Pong(_) | Frame::Frame(_))) => true,
                Some(Ok(Frame::Close(frame))) => {
                    let frame = frame.map(|frame| CloseFrame {
                        code: frame.code.into(),
                        reason: frame.reason.as_str().into(),
                    });
                    // The client may have gone.
                    let _ = client.send(Message::Close(frame)).await;
                    false
                }
                Some(Err(_)) | None => {
                    let error = lost_response(holder);
                    let mut event = json!(error);
                    event["type"] = json!("error");
                    event["status"] = json!(error.status());
                    // The client may have gone.
                    let _ = client.send(Message::Text(event.to_string().into())).await;
                    let (code, reason) = farewell();
                    let reason = reason.into();
                    let _ = client.send(Message::Close(Some(CloseFrame { code, reason }))).await;
                    false
                }
            },
            () = gateway.ending.cancelled() => false,
        };
        if !passed {
            return Ok(());
        }
    }
}

async fn open(
    gateway: &Gateway,
    holder: &HoldingGateway,
    headers: &HeaderMap,
) -> Result<WebSocketStream<Upgraded>, ApiError> {
    let client = gateway
        .forwarder
        .client()
        .map_err(|error| failed(holder, &error))?;
    let mut headers = carried(headers, gateway);
    for name in [SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION] {
        headers.remove(name);
    }
    let upgraded = async {
        let answer = client
            .get(url(holder, PATH)?)
            .headers(headers)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, generate_key())
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .map_err(|error| failed(holder, &error))?;
        answer.upgrade().await.map_err(|error| failed(holder, &error))
    };
    Ok(WebSocketStream::from_raw_socket(upgraded.await?, Role::Client, None).await)
}
