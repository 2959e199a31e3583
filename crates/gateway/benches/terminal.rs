//! Benchmark of a keystroke in a terminal over its WebSocket: `cargo bench -p cellblock-gateway --bench
//! terminal`.

#![expect(clippy::unwrap_used, reason = "a measurement fails by panicking")]
#![expect(clippy::print_stdout, reason = "the numbers are the result")]

use std::time::Instant;

use cellblock_gateway::records::Records;
use cellblock_gateway::{Gateway, Models, Options};
use cellblock_interpreter::Interpreter;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const ROUNDS: usize = 1000;
/// Keystrokes that are not counted.
const FIRST: usize = 20;

#[tokio::main]
async fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let home = cellblock_testkit::home().unwrap();
    let interpreter = Interpreter::builder().home(home).build().await.unwrap();
    let records = Records::in_memory().unwrap();
    let gateway = Gateway::new(Options::default(), records, Models::default(), interpreter);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = gateway.router();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });

    let http = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    let post = async |path: String, body: Value| -> Value {
        let sent = http
            .post(format!("http://{address}{path}"))
            .json(&body)
            .send()
            .await;
        let sent = sent.unwrap().error_for_status().unwrap();
        sent.json().await.unwrap()
    };
    let session = post("/v1/sessions".to_owned(), json!({})).await;
    let processes = format!("/v1/sessions/{}/processes", session["id"].as_str().unwrap());
    let order = json!({"command": ["cat"], "terminal": {"rows": 24, "columns": 80}});
    let started = post(processes.clone(), order).await;
    let id = started["id"].as_str().unwrap();
    let url = format!("ws://{address}{processes}/{id}/terminal");
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();

    let mut echoed = Vec::new();
    for round in 0..ROUNDS {
        let began = Instant::now();
        socket.send(Message::binary(vec![b'x'])).await.unwrap();
        while !matches!(socket.next().await.unwrap().unwrap(), Message::Binary(_)) {}
        if round >= FIRST {
            echoed.push(began.elapsed());
        }
    }
    echoed.sort();
    println!(
        "echo of a keystroke over a WebSocket: p50 {:.2?}, p99 {:.2?}, longest {:.2?}",
        echoed[echoed.len() / 2],
        echoed[echoed.len() * 99 / 100],
        echoed[echoed.len() - 1]
    );
}
