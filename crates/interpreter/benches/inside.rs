//! Benchmark of processes, terminals, ports and a network in a session: `cargo bench -p cellblock-interpreter
//! --bench inside`. With `CELLBLOCK_BENCH_IMAGE=NAME`, also how long a session of that image takes from its
//! template.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use cellblock_image::{Home, ImageStore};
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::session::processes::{MAX_WAIT, ProcessOrder, TerminalSize};
use cellblock_interpreter::{Interpreter, Session};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const ROUNDS: usize = 200;

fn main() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let home = cellblock_testkit::home().unwrap();
        let interpreter = Interpreter::builder().home(home).pool(2).build().await.unwrap();
        interpreter.warmed().await.unwrap();
        sessions(&interpreter).await;
        processes(&interpreter).await;
        ports(&interpreter).await;
        egress(&interpreter).await;
        if let Ok(name) = std::env::var("CELLBLOCK_BENCH_IMAGE") {
            started(&name).await;
        }
    });
}

/// Sessions of an image of which none is ready.
async fn started(name: &str) {
    let home = cellblock_testkit::home().unwrap();
    let image = ImageStore::new(Home::at(&home).unwrap()).resolve(name).unwrap();
    let builder = Interpreter::builder().home(home).image(image);
    let interpreter = builder.pool(0).build().await.unwrap();
    let mut times = Vec::new();
    for round in 0..40 {
        let began = Instant::now();
        let session = with(&interpreter, NetworkPolicy::None, &[]);
        session.execute("1 + 1").await.unwrap();
        // The first imports the template.
        if round > 0 {
            times.push(began.elapsed());
        }
        session.close().await.unwrap();
    }
    tell(&format!("session of the image {name} until `1 + 1`"), times);
}

fn with(interpreter: &Interpreter, network: NetworkPolicy, rules: &[&str]) -> Session {
    interpreter.session(SessionOptions {
        limits: Some(Limits {
            network,
            ..interpreter.limits().clone()
        }),
        egress: Some(EgressPolicy::from_rules(rules).unwrap()),
        ..SessionOptions::default()
    })
}

/// Sessions from the pool, one network after the other in each round.
async fn sessions(interpreter: &Interpreter) {
    const NETWORKS: [NetworkPolicy; 2] = [NetworkPolicy::None, NetworkPolicy::Loopback];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..40 {
        for (network, times) in NETWORKS.into_iter().zip(&mut times) {
            // The pool makes another one meanwhile.
            tokio::time::sleep(Duration::from_millis(150)).await;
            let began = Instant::now();
            let session = with(interpreter, network, &["allowed.invalid"]);
            session.execute("1 + 1").await.unwrap();
            // The first of each starts to fill the pool.
            if round > 1 {
                times.push(began.elapsed());
            }
            session.close().await.unwrap();
        }
    }
    for (network, times) in NETWORKS.into_iter().zip(times) {
        tell(
            &format!("pooled session with network {network} until `1 + 1`"),
            times,
        );
    }
}

async fn processes(interpreter: &Interpreter) {
    let session = with(interpreter, NetworkPolicy::None, &[]);
    session.execute("1").await.unwrap();
    let processes = session.processes();
    let order = |command: &str, terminal| ProcessOrder {
        command: vec![command.to_owned()],
        terminal,
        ..ProcessOrder::default()
    };
    let mut started = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let id = processes.start(order("true", None)).await.unwrap().id;
        started.push(began.elapsed());
        processes.wait(&id, MAX_WAIT).await.unwrap();
    }
    tell("start of a process", started);
    let size = TerminalSize {
        rows: 24,
        columns: 80,
    };
    let id = processes.start(order("cat", Some(size))).await.unwrap().id;
    let (mut echoed, mut offset) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        processes.input(&id, b"x", false).await.unwrap();
        offset = processes.output(&id, offset, 64, MAX_WAIT).await.unwrap().next;
        echoed.push(began.elapsed());
    }
    tell("echo of a keystroke in a terminal", echoed);
    session.close().await.unwrap();
}

const ECHO: &str = "
import socket, threading
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    while True:
        connection = listener.accept()[0]
        threading.Thread(target=answer, args=[connection], daemon=True).start()
def answer(connection):
    if connection.recv(1) == b'e':
        while part := connection.recv(65536):
            connection.sendall(part)
    while connection.recv(1 << 20):
        pass
    connection.close()
threading.Thread(target=serve, daemon=True).start()
listener.getsockname()[1]";

async fn ports(interpreter: &Interpreter) {
    let session = with(interpreter, NetworkPolicy::Loopback, &[]);
    let ran = session.execute(ECHO).await.unwrap();
    let port = serde_json::to_value(&ran.outputs[0]).unwrap()["value"]
        .as_u64()
        .unwrap();
    let port = u16::try_from(port).unwrap();
    let mut stream = session.ports().connect(port).await.unwrap();
    stream.write_all(b"e").await.unwrap();
    let mut echoed = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        stream.write_all(b"x").await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        echoed.push(began.elapsed());
    }
    tell("echo of a byte by a program on a port", echoed);
    let mut stream = session.ports().connect(port).await.unwrap();
    let bytes = vec![1; 100_000_000];
    let began = Instant::now();
    stream.write_all(b"s").await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    // It ends when the program has read all of it.
    stream.read_to_end(&mut Vec::new()).await.unwrap();
    println!(
        "bytes to a port: {:.0} MB/s",
        100.0 / began.elapsed().as_secs_f64()
    );
    session.close().await.unwrap();
}

/// Requests of a sandbox through its proxy, beside the same ones of Python on the host.
async fn egress(interpreter: &Interpreter) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or(0);
                let long = head[..read].windows(5).any(|part| part == b"/long");
                let body = vec![b'x'; if long { 200_000_000 } else { 5 }];
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                let _ = stream.write_all(&body);
            });
        }
    });
    let code = format!(
        "import time, urllib.request
def ask(path):
    began = time.perf_counter()
    with urllib.request.urlopen('http://127.0.0.1:{port}' + path) as answer:
        while answer.read(1 << 20): pass
    return time.perf_counter() - began
times = sorted(ask('/') for _ in range({ROUNDS}))
long = ask('/long')
p50, p99 = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
print(f'p50 {{p50:.2f}} ms, p99 {{p99:.2f}} ms, {{200 / long:.0f}} MB/s')"
    );
    let rule = format!("127.0.0.1:{port}");
    let session = with(interpreter, NetworkPolicy::Egress, &[&rule]);
    let inside = session.execute(code.as_str()).await.unwrap();
    println!(
        "request of a sandbox through the proxy: {}",
        inside.stdout.text.trim()
    );
    session.close().await.unwrap();
    let outside = std::process::Command::new("python3")
        .args(["-c", &code])
        .output()
        .unwrap();
    println!(
        "the same of Python on the host, directly: {}",
        String::from_utf8_lossy(&outside.stdout).trim()
    );
}

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    println!(
        "{what}: p50 {:.2?}, p99 {:.2?}, {} times",
        at(50),
        at(99),
        times.len()
    );
}
