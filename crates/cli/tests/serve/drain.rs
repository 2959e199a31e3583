//! Servers that share their records and are restarted one after the other while they are used.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cellblock_testkit::wait::block_until;
use cellblock_testkit::{DatabaseServer, require};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{GatewayProcess, PATIENCE, serve};

const SERVERS: usize = 3;
const CLIENTS: usize = 3;
/// Pause of a client after each request.
const PACE: Duration = Duration::from_millis(200);
/// Time after which clients end, whatever the servers do.
const LIMIT: Duration = Duration::from_mins(5);

/// A load balancer that repeats nothing: each request goes once to the next server that is ready.
#[derive(Debug)]
struct Balancer {
    servers: Vec<SocketAddr>,
    turn: AtomicUsize,
    sent: AtomicUsize,
}

impl Balancer {
    /// Sends a request, which has to succeed.
    fn send(&self, call: &str, body: &Value) -> Value {
        let server = self.ready();
        self.sent.fetch_add(1, Ordering::Relaxed);
        let answer = send(server, call, &body.to_string());
        let (status, answer) = answer.unwrap_or_else(|error| panic!("{call}: {error}"));
        assert!((200..300).contains(&status), "{call}: {status} {answer}");
        answer
    }

    fn ready(&self) -> SocketAddr {
        loop {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let server = self.servers[turn % self.servers.len()];
            if is_ready(server) {
                return server;
            }
        }
    }
}

fn is_ready(server: SocketAddr) -> bool {
    send(server, "GET /readyz", "").is_ok_and(|(status, _)| status == 200)
}

/// Sends a request once, over a separate connection.
fn send(server: SocketAddr, call: &str, body: &str) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(
        stream,
        "{call} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut = || io::Error::other(format!("no whole answer: {answer:?}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let body = serde_json::from_str(body).unwrap_or_default();
    Ok((status.ok_or_else(cut)?, body))
}

/// Creates sessions, uses them and ends them, until it is done.
fn use_sessions(balancer: &Balancer, done: &AtomicBool) {
    let began = Instant::now();
    while !done.load(Ordering::Relaxed) && began.elapsed() < LIMIT {
        let session = balancer.send("POST /v1/sessions", &json!({}));
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        for (code, value) in [("x = 41; x", 41), ("x + 1", 42)] {
            thread::sleep(PACE);
            let cell = balancer.send(&format!("POST {path}/cells"), &json!({"code": code}));
            assert_eq!(cell["outputs"][0]["value"], value, "{cell}");
        }
        thread::sleep(PACE);
        balancer.send(&format!("DELETE {path}"), &json!({}));
    }
}

fn replica(url: &str, address: SocketAddr) -> GatewayProcess {
    let config = format!("records: {{env: RECORDS_URL}}\nadvertise: http://{address}\n");
    let listen = address.to_string();
    serve(
        &config,
        &["--no-model", "--listen", &listen],
        &[("RECORDS_URL", url)],
    )
}

#[test]
fn no_request_fails_while_servers_are_restarted_one_after_the_other() {
    require!(UserNamespaces);
    require!(Postgres);
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(DatabaseServer::postgres());
    let url = runtime.block_on(database.create_database("records"));
    let held = [(); SERVERS].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = held.each_ref().map(|it| it.local_addr().unwrap());
    drop(held);
    let balancer = Balancer {
        servers: addresses.to_vec(),
        turn: AtomicUsize::new(0),
        sent: AtomicUsize::new(0),
    };
    let mut servers: Vec<_> = addresses.iter().map(|it| replica(&url, *it)).collect();
    for address in addresses {
        block_until("the servers are ready", || is_ready(address));
    }
    let done = AtomicBool::new(false);
    let ended: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| use_sessions(&balancer, &done)))
            .collect();
        let mut ended = Vec::new();
        for address in addresses {
            ended.push(servers.remove(0).end(Signal::TERM));
            servers.push(replica(&url, address));
            block_until("the new server is ready", || is_ready(address));
        }
        done.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap();
        }
        ended
    });
    assert_eq!(ended, [Some(0); SERVERS]);
    let sent = balancer.sent.load(Ordering::Relaxed);
    assert!(sent >= 60, "only {sent} requests");
}
