//! A server of web sockets on a port of this machine, whose connections a test can cut.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, TryStreamExt, future};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Binary messages both ways.
pub trait Duplex: Stream<Item = Result<Bytes, Error>> + Sink<Bytes, Error = Error> + Send {}

impl<T> Duplex for T where T: Stream<Item = Result<Bytes, Error>> + Sink<Bytes, Error = Error> + Send {}

/// The messages of one connection.
pub type Messages = Pin<Box<dyn Duplex>>;

/// A server. Dropping it cuts every connection and takes no more.
#[derive(Debug)]
pub struct WebSockets {
    address: SocketAddr,
    listener: JoinHandle<()>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
}

impl WebSockets {
    /// Serves each connection with `serve`, if it brings this key.
    pub async fn start<F, S>(key: &'static str, serve: F) -> std::io::Result<Self>
    where
        F: Fn(Messages) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listening = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listening.local_addr()?;
        let connections = Arc::new(Mutex::new(Vec::new()));
        let serve = Arc::new(serve);
        let kept = Arc::clone(&connections);
        let listener = tokio::spawn(async move {
            while let Ok((stream, _)) = listening.accept().await {
                let serve = Arc::clone(&serve);
                let task = tokio::spawn(async move {
                    if let Some(messages) = accept(stream, key).await {
                        serve(messages).await;
                    }
                });
                let mut kept = kept.lock();
                kept.retain(|task: &AbortHandle| !task.is_finished());
                kept.push(task.abort_handle());
            }
        });
        Ok(Self {
            address,
            listener,
            connections,
        })
    }

    /// Returns its address.
    pub fn url(&self) -> String {
        format!("ws://{}/v1/sandbox", self.address)
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        let connections = self.connections.lock();
        connections.iter().filter(|task| !task.is_finished()).count()
    }

    /// Cuts every connection, without a word.
    pub fn cut(&self) {
        let mut connections = self.connections.lock();
        for task in connections.drain(..) {
            task.abort();
        }
    }

    /// Takes no more connections.
    pub fn stop(&self) {
        self.listener.abort();
    }
}

impl Drop for WebSockets {
    fn drop(&mut self) {
        self.stop();
        self.cut();
    }
}

async fn accept(stream: TcpStream, key: &str) -> Option<Messages> {
    let _ = stream.set_nodelay(true);
    let wanted = format!("Bearer {key}");
    #[expect(clippy::result_large_err, reason = "the form that tungstenite takes")]
    let check = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        let refuse = |status| {
            let mut refused = ErrorResponse::new(None);
            *refused.status_mut() = status;
            Err(refused)
        };
        let brought = request.headers().get("authorization");
        match (request.uri().path(), brought) {
            ("/v1/sandbox", Some(key)) if key == wanted.as_str() => Ok(response),
            ("/v1/sandbox", _) => refuse(StatusCode::UNAUTHORIZED),
            _ => refuse(StatusCode::NOT_FOUND),
        }
    };
    let socket = accept_hdr_async(stream, check).await.ok()?;
    let messages = socket
        .try_filter_map(|message| {
            future::ok(match message {
                Message::Binary(bytes) => Some(bytes),
                _ => None,
            })
        })
        .with(|bytes| future::ok(Message::Binary(bytes)));
    Some(Box::pin(messages))
}
