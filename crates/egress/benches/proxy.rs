//! Benchmark of the proxy: `cargo bench -p cellblock-egress`.
//!
//! The server, the proxy and the client have a thread each and talk over TCP on loopback. Requests
//! alternate between the direct way and the proxy. Throughput is shown per second of the clock, and
//! per second of processor time of the proxy's thread.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cellblock_egress::{EgressPolicy, EgressProxy};
use futures_util::{StreamExt as _, stream};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpListener;

const ROUNDS: usize = 2000;
static PIECE: [u8; 64 << 10] = [7; 64 << 10];
const PIECES: usize = 16 << 10;

/// A thread that serves connections.
struct ConnectionServer {
    address: SocketAddr,
    /// Nanoseconds of processor time that the thread has used, renewed every millisecond.
    spent: Arc<AtomicU64>,
}

fn main() {
    let server = start(answer);
    let address = server.address;
    let policy = EgressPolicy::from_rules([address.to_string()]).unwrap();
    let proxy = EgressProxy::new(policy, "bench", None).unwrap();
    let proxy = start(move |stream| {
        let proxy = proxy.clone();
        async move { proxy.serve(stream).await }
    });
    latency("keep-alive", address, proxy.address, true);
    latency("new connections", address, proxy.address, false);
    let inner = format!("GET /big HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let plain = format!("GET http://{address}/big HTTP/1.1\r\nHost: {address}\r\n\r\n");
    throughput("direct", &server, &[], &inner);
    throughput("plain", &proxy, &[], &plain);
    let tunnel = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    throughput("tunnel", &proxy, tunnel.as_bytes(), &inner);
}

fn start<F, R>(serve: F) -> ConnectionServer
where
    F: Fn(tokio::net::TcpStream) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let spent = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&spent);
    let (send, started) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            send.send(listener.local_addr().unwrap()).unwrap();
            tokio::spawn(async move {
                loop {
                    let now = clock_gettime(ClockId::ThreadCPUTime);
                    let nanos = now.tv_sec * 1_000_000_000 + now.tv_nsec;
                    clock.store(u64::try_from(nanos).unwrap(), Relaxed);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream));
            }
        });
    });
    ConnectionServer {
        address: started.recv().unwrap(),
        spent,
    }
}

async fn answer(stream: tokio::net::TcpStream) {
    let service = service_fn(|request: Request<Incoming>| async move {
        let count = if request.uri().path() == "/big" { PIECES } else { 1 };
        let pieces = stream::repeat(()).take(count);
        let frame = move |()| {
            let bytes = if count == 1 {
                Bytes::from_static(b"ok")
            } else {
                Bytes::from_static(&PIECE)
            };
            Ok::<_, Infallible>(Frame::data(bytes))
        };
        let length = if count == 1 { 2 } else { PIECES * PIECE.len() };
        let mut response = Response::new(StreamBody::new(pieces.map(frame)));
        response.headers_mut().insert("content-length", length.into());
        Ok::<_, Infallible>(response)
    });
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Sends small requests by both ways in turn, and shows what the proxy adds.
fn latency(name: &str, server: SocketAddr, proxy: SocketAddr, keep: bool) {
    let direct = format!("GET / HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let proxied = format!("GET http://{server}/ HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let mut ways = [
        (server, direct, None, Vec::new()),
        (proxy, proxied, None, Vec::new()),
    ];
    for _ in 0..ROUNDS {
        for (address, request, kept, times) in &mut ways {
            let start = Instant::now();
            let mut stream = kept.take().unwrap_or_else(|| open(*address));
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\nok") {
                let mut buffer = [0; 1024];
                let read = stream.read(&mut buffer).unwrap();
                assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
                answer.extend_from_slice(&buffer[..read]);
            }
            times.push(start.elapsed());
            if keep {
                *kept = Some(stream);
            }
        }
    }
    let at = |times: &mut Vec<Duration>, percent: usize| {
        times.sort();
        times[times.len() * percent / 100].as_secs_f64() * 1e3
    };
    let [(.., direct), (.., proxied)] = &mut ways;
    for percent in [50, 99] {
        let (direct, proxied) = (at(direct, percent), at(proxied, percent));
        let added = proxied - direct;
        println!("{name}: p{percent} direct {direct:.3} ms, proxied {proxied:.3} ms, added {added:.3} ms");
    }
}

/// Downloads 1 GiB.
fn throughput(name: &str, through: &ConnectionServer, tunnel: &[u8], request: &str) {
    let mut stream = open(through.address);
    if !tunnel.is_empty() {
        stream.write_all(tunnel).unwrap();
        head(&mut stream);
    }
    let (start, spent) = (Instant::now(), through.spent.load(Relaxed));
    stream.write_all(request.as_bytes()).unwrap();
    head(&mut stream);
    let (mut left, mut buffer) = (PIECES * PIECE.len(), vec![0; 256 << 10]);
    let megabytes = f64::from(u32::try_from(left >> 10).unwrap()) * 1024.0 / 1e6;
    while left > 0 {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{left} bytes are missing");
        left -= read;
    }
    let seconds = start.elapsed().as_secs_f64();
    // The thread writes its time once more.
    thread::sleep(Duration::from_millis(20));
    let busy = Duration::from_nanos(through.spent.load(Relaxed) - spent).as_secs_f64();
    println!(
        "{name}: {:.0} MB/s, {:.0} MB per second of its processor",
        megabytes / seconds,
        megabytes / busy
    );
}

fn head(stream: &mut TcpStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.extend_from_slice(&byte);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 200 "),
        "{}",
        String::from_utf8_lossy(&head)
    );
}

fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}
