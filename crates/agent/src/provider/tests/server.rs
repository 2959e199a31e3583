//! A server on loopback that gives answers as they were written, byte for byte, and keeps what it was asked.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The server; it ends when it is dropped.
#[derive(Debug)]
pub(in crate::provider) struct ModelServer {
    pub(in crate::provider) base: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

/// Request that the server received.
#[derive(Clone, Debug)]
pub(in crate::provider) struct ReceivedRequest {
    pub(in crate::provider) head: String,
    pub(in crate::provider) body: Value,
}

/// An answer.
#[derive(Clone, Debug)]
pub(in crate::provider) struct ModelReply {
    head: String,
    pieces: Vec<Vec<u8>>,
    end: StreamEnd,
}

/// End of a response after its last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::provider) enum StreamEnd {
    /// The end as HTTP has it.
    Whole,
    /// The connection closes in the middle.
    Cut,
    /// Nothing, for ever.
    Silence,
    /// The last piece, again and again.
    Repeated,
}

impl ModelReply {
    /// An answer that is no stream.
    pub(in crate::provider) fn new(status: u16, headers: &str, body: &str) -> Self {
        Self {
            head: format!(
                "HTTP/1.1 {status} x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n{headers}\r\n"
            ),
            pieces: vec![body.as_bytes().to_vec()],
            end: StreamEnd::Whole,
        }
    }

    /// A stream of raw text.
    pub(in crate::provider) fn raw(text: &str) -> Self {
        Self::new(200, "content-type: text/event-stream\r\n", text)
    }

    /// A stream of these events, and its end.
    pub(in crate::provider) fn events(events: &[Value]) -> Self {
        let events: Vec<_> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        Self::raw(&(events.concat() + "data: [DONE]\n\n"))
    }

    /// The same in pieces of so many bytes.
    pub(in crate::provider) fn pieces(mut self, size: usize) -> Self {
        self.pieces = self.pieces.concat().chunks(size).map(<[u8]>::to_vec).collect();
        self
    }

    pub(in crate::provider) fn end(mut self, end: StreamEnd) -> Self {
        self.end = end;
        self
    }
}

impl ModelServer {
    /// Gives these answers, one for each connection, and then closes connections at once.
    pub(in crate::provider) async fn start(replies: Vec<ModelReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            for reply in replies {
                let (connection, _) = listener.accept().await.unwrap();
                serve(connection, &reply, &kept).await;
            }
        });
        Self { base, asked, task }
    }

    pub(in crate::provider) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut connection: TcpStream, reply: &ModelReply, asked: &Mutex<Vec<ReceivedRequest>>) {
    let mut read = Vec::new();
    let head = loop {
        connection.read_buf(&mut read).await.unwrap();
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break String::from_utf8(read.drain(..end + 4).collect())
                .unwrap()
                .to_lowercase();
        }
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.parse().unwrap());
    while read.len() < length {
        connection.read_buf(&mut read).await.unwrap();
    }
    let body = serde_json::from_slice(&read).unwrap_or_default();
    asked.lock().push(ReceivedRequest { head, body });
    // A client may have heard enough and be gone.
    let _ = answer(&mut connection, reply).await;
    if reply.end == StreamEnd::Silence {
        std::future::pending::<()>().await;
    }
}

async fn answer(connection: &mut TcpStream, reply: &ModelReply) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    connection.write_all(reply.head.as_bytes()).await?;
    let mut last = Vec::new();
    for piece in reply.pieces.iter().filter(|piece| !piece.is_empty()) {
        last = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        connection.write_all(&last).await?;
    }
    if reply.end == StreamEnd::Repeated {
        loop {
            connection.write_all(&last).await?;
            tokio::task::yield_now().await;
        }
    }
    if reply.end == StreamEnd::Whole {
        connection.write_all(b"0\r\n\r\n").await?;
    }
    connection.flush().await
}
