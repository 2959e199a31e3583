//! An API on this machine, and a configuration of connectors for it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;
use serde_json::json;

/// Key that the operator sends to the server, and the server repeats.
pub(crate) const KEY: &str = "hunter2/and+more";

/// A server on this machine, which counts its requests and repeats what it receives.
pub(crate) struct Api {
    pub(crate) port: u16,
    requests: Arc<AtomicUsize>,
}

impl Api {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || respond(stream));
            }
        });
        Ok(Self { port, requests })
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// A configuration for the server.
    pub(crate) fn config(&self) -> String {
        CONFIG.replace("PORT", &self.port.to_string())
    }
}

fn respond(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    for line in BufReader::new(stream.try_clone()?).lines() {
        match line? {
            line if line.is_empty() => break,
            line => head.push(line),
        }
    }
    let (status, body) = match head[0].split([' ', '?']).nth(1) {
        Some("/fred/series") => (
            "200 OK",
            json!({"observations": [{"date": "2026-01-01", "value": "1.5"},
                {"date": "2026-04-01", "value": "."}]}),
        ),
        Some("/fred/denied") => (
            "401 Unauthorized",
            json!({"error": format!("api_key {KEY} is not registered")}),
        ),
        _ => ("200 OK", json!({ "head": head })),
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

const CONFIG: &str = r#"
connectors:
  fred:
    type: http
    description: Economic data.
    base_url: http://localhost:PORT/fred
    allow_private: true
    retries: {count: 1, on: [503]}
    rate: 100/s
    secrets: {api_key: {env: CELLBLOCK_TEST_API_KEY}}
    query: {api_key: "{{ secrets.api_key }}"}
    headers: {X-Api-Key: "{{ secrets.api_key }}"}
    functions:
      series:
        description: Observations of one series.
        get: /series
        parameters:
          series_id: {type: string, maxLength: 8}
          since: {type: string, default: null}
        result: {rows: "$.observations[*]", columns: {date: date, value: float64}, missing: ["."]}
      echo: {get: "/echo/{id}", parameters: {id: {type: string}}}
      denied: {get: /denied}
  inward:
    type: http
    base_url: http://localhost:PORT/
    functions: {get: {get: /echo}}
"#;
