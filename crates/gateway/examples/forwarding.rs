//! Measures what forwarding adds: requests to a session at the gateway that has it and through
//! another one, in turns.
//!
//! ```sh
//! cargo run --profile dist -p cellblock-gateway --example forwarding
//! ```
//!
//! It starts a Postgres server and two gateways in this process, as the tests do. The connections
//! stay open, and each caller has a key.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement fails by panicking, and prints what it finds"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_gateway::keys::KeyTerms;
use cellblock_gateway::records::{PostgresUrl, Records};
use cellblock_gateway::{Gateway, Models, Options};
use cellblock_interpreter::Interpreter;
use cellblock_testkit::DatabaseServer;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Requests of each kind at each of the two.
const TURNS: usize = 500;
/// Requests before those that count.
const WARM: usize = 20;

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = DatabaseServer::postgres().await;
    let url = PostgresUrl::new(&server.create_database("forwarding").await, "/".as_ref()).unwrap();
    let home = cellblock_testkit::home().unwrap();
    let interpreter = Interpreter::builder().home(home).build().await.unwrap();
    let interpreter = Arc::new(interpreter);
    let (first, holder) = start(&url, &interpreter).await;
    let (second, other) = start(&url, &interpreter).await;
    let (_, key) = first.keys.create("ann", KeyTerms::default()).await.unwrap();
    let key = key.reveal();
    let client = Client::new();
    let request = |address: SocketAddr, method: Method, path: &str| {
        let url = format!("http://{address}{path}");
        client.request(method, url).bearer_auth(&key)
    };
    let made = request(holder, Method::POST, "/v1/sessions").json(&json!({}));
    let made: Value = made.send().await.unwrap().json().await.unwrap();
    let session = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
    let cells = format!("{session}/cells");

    println!("medians (p90) of {TURNS} in ms");
    let show = |address| request(address, Method::GET, &session);
    compare("GET of a session", holder, other, show).await;
    let cell = |address| request(address, Method::POST, &cells).json(&json!({"code": "1 + 1"}));
    compare("a warm cell", holder, other, cell).await;
    for gateway in [first, second] {
        gateway.stop();
        gateway.stop();
    }
}

async fn start(url: &PostgresUrl, interpreter: &Arc<Interpreter>) -> (Gateway, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut options = Options {
        advertise: Some(format!("http://{address}").parse().unwrap()),
        ..Options::default()
    };
    options.auth.required = true;
    // A key may otherwise begin 120 cells in a minute.
    options.quotas.cells_per_minute = None;
    let records = Records::connect(url).await.unwrap();
    let gateway = Gateway::new(options, records, Models::default(), Arc::clone(interpreter));
    let serving = gateway.start(listener, &[]).await.unwrap();
    tokio::spawn(async move { serving.run().await.ok() });
    (gateway, address)
}

/// Sends requests to both in turns, so that what else the machine does affects both alike.
async fn compare(
    name: &str,
    holder: SocketAddr,
    other: SocketAddr,
    request: impl Fn(SocketAddr) -> RequestBuilder,
) {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..WARM + TURNS {
        for (address, times) in [holder, other].into_iter().zip(&mut times) {
            let since = Instant::now();
            let answer = request(address).send().await.unwrap();
            assert!(answer.status().is_success(), "{}", answer.status());
            answer.bytes().await.unwrap();
            if turn >= WARM {
                times.push(since.elapsed());
            }
        }
    }
    let [here, there] = times.map(|mut times| {
        times.sort_unstable();
        [times[TURNS / 2], times[TURNS * 9 / 10]].map(|time: Duration| time.as_secs_f64() * 1000.0)
    });
    println!(
        "{name}: {:.2} ({:.2}) where it lives, {:.2} ({:.2}) through another gateway: {:.2} more",
        here[0],
        here[1],
        there[0],
        there[1],
        there[0] - here[0]
    );
}
