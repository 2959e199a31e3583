//! Servers on loopback.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use futures_util::future::pending;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A server, and the requests that it got.
pub(crate) struct OriginServer {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl OriginServer {
    /// Starts a server of plain HTTP. It answers a request with itself as text; `/bytes/N` with N
    /// bytes of [`pattern`], `/redirect` with a redirect, and `/never` never. Responses repeat `Origin`.
    pub(crate) async fn start() -> Self {
        Self::listen(serve).await
    }

    /// Starts the same server behind TLS.
    pub(crate) async fn tls(config: Arc<ServerConfig>) -> Self {
        let acceptor = TlsAcceptor::from(config);
        Self::listen(move |stream, requests| {
            let accepted = acceptor.accept(stream);
            async move {
                if let Ok(stream) = accepted.await {
                    serve(stream, requests).await;
                }
            }
        })
        .await
    }

    /// Starts a server that does something else with its connections.
    pub(crate) async fn listen<F, R>(serve: F) -> Self
    where
        F: Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (seen, counted) = (Arc::clone(&requests), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&seen)));
            }
        });
        Self {
            port,
            requests,
            connections,
            task,
        }
    }

    /// Returns `127.0.0.1:port`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the requests so far: method and path, headers, and the body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

impl Drop for OriginServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns bytes without a period that a lost or repeated piece could hide in.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

async fn serve<S>(stream: S, requests: Arc<Mutex<Vec<String>>>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| {
        let requests = Arc::clone(&requests);
        async move { Ok::<_, Infallible>(answer(request, &requests).await) }
    });
    // A client may end the connection at any time.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, requests: &Mutex<Vec<String>>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let mut text = format!("{} {}\n", parts.method, parts.uri);
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        text.extend([name.as_str(), ": ", &*value, "\n"]);
    }
    text.extend(["\n", &*String::from_utf8_lossy(&body)]);
    requests.lock().push(text.clone());
    let path = parts.uri.path();
    if path == "/never" {
        pending::<()>().await;
    }
    if path == "/redirect" {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::FOUND;
        response
            .headers_mut()
            .insert("location", "http://denied.example/".parse().unwrap());
        return response;
    }
    let bytes = match path.strip_prefix("/bytes/") {
        Some(length) => pattern(length.parse().unwrap()),
        None => text.into_bytes(),
    };
    let mut response = Response::new(Full::new(bytes.into()));
    if let Some(origin) = parts.headers.get("origin") {
        response
            .headers_mut()
            .insert("access-control-allow-origin", origin.clone());
    }
    response
        .headers_mut()
        .insert("connection", "x-hop".parse().unwrap());
    response.headers_mut().insert("x-hop", "1".parse().unwrap());
    response
        .headers_mut()
        .insert("x-cellblock-egress", "denied".parse().unwrap());
    response
        .headers_mut()
        .insert("proxy-authenticate", "Basic".parse().unwrap());
    response
}
