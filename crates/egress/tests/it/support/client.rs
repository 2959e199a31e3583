//! Clients that write requests as bytes.

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
    DuplexStream, duplex,
};
use tokio::time::timeout;

use super::{PATIENCE, Proxy};

/// The response to a request.
#[derive(Debug)]
pub(crate) struct ProxyReply {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl ProxyReply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Reads a response; `None` if the connection ends before it.
    pub(crate) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Self> {
        timeout(PATIENCE, Self::parse(stream))
            .await
            .expect("no response within a minute")
    }

    async fn parse<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Self> {
        // One byte at a time: what follows belongs to the caller.
        let mut reader = BufReader::with_capacity(1, stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let mut reply = Self {
            status,
            head,
            body: Vec::new(),
        };
        let stream = reader.into_inner();
        if let Some(length) = reply.header("content-length") {
            reply.body = vec![0; length.parse().unwrap()];
            stream.read_exact(&mut reply.body).await.ok()?;
        }
        Some(reply)
    }
}

/// Opens a connection to a proxy.
pub(crate) fn open(proxy: &Proxy) -> DuplexStream {
    let (client, stream) = duplex(64 << 10);
    let proxy = proxy.proxy.clone();
    tokio::spawn(async move { proxy.serve(stream).await });
    client
}

/// Sends bytes, and reads a response.
pub(crate) async fn request<S>(stream: &mut S, bytes: &str) -> Option<ProxyReply>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // The proxy may answer and close before it has read everything.
    let _ = stream.write_all(bytes.as_bytes()).await;
    let _ = stream.flush().await;
    ProxyReply::read(stream).await
}

/// Opens a connection and sends CONNECT.
pub(crate) async fn connect(proxy: &Proxy, target: &str) -> (DuplexStream, ProxyReply) {
    let mut stream = open(proxy);
    let reply = request(
        &mut stream,
        &format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"),
    )
    .await;
    (stream, reply.unwrap())
}
