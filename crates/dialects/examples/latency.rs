//! Measures what the dialects cost: a warm `1+1` over each of them, over MCP and over REST, in
//! turns, and the first result of a new sandbox of E2B. Names after the number of rounds select
//! some of them; `REST` alone runs cell after cell.
//!
//! ```sh
//! cellblock serve --no-model --config tests/judges/cellblock.yaml --listen 127.0.0.1:8080 &
//! cargo run --profile dist --package cellblock-dialects --example latency -- http://127.0.0.1:8080 500
//! ```

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Sandboxes that are made for their first results.
const CREATED: usize = 20;
/// Time for the pool to get its next sandbox.
const REFILL: Duration = Duration::from_millis(500);
/// The way that the others are compared with.
const REST: &str = "REST";

/// A way to run `1+1` where it was run before.
enum CallRoute {
    /// A request, and what its answer contains.
    Http(Box<RequestBuilder>, &'static str),
    /// The channels of a kernel.
    Jupyter(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
}

impl CallRoute {
    fn http(request: RequestBuilder, expected: &'static str) -> Self {
        Self::Http(Box::new(request), expected)
    }

    /// Runs it, and returns how long that took.
    async fn run(&mut self) -> Result<Duration> {
        let began = Instant::now();
        match self {
            Self::Http(request, expected) => {
                let request = request.try_clone().context("repeat a request")?;
                let text = request.send().await?.error_for_status()?.text().await?;
                ensure!(text.contains(*expected), "`{expected}` is not in {text}");
            }
            Self::Jupyter(socket) => {
                let header = json!({"msg_id": "1", "msg_type": "execute_request", "session": "s",
                    "username": "u", "version": "5.4"});
                let message = json!({
                    "channel": "shell", "header": header, "parent_header": {}, "metadata": {},
                    "content": {"code": "1+1", "silent": false},
                });
                socket.send(Message::text(message.to_string())).await?;
                let mut shown = false;
                loop {
                    let Message::Text(text) = socket.next().await.context("the kernel is gone")?? else {
                        continue;
                    };
                    let told: Value = serde_json::from_str(&text)?;
                    shown |= told["content"]["data"]["text/plain"] == "2";
                    if told["content"]["execution_state"] == "idle" && told["parent_header"]["msg_id"] == "1"
                    {
                        break;
                    }
                }
                ensure!(shown, "the kernel does not show 2");
            }
        }
        Ok(began.elapsed())
    }
}

/// A server and its client.
struct LatencyServer {
    http: Client,
    url: String,
}

impl LatencyServer {
    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.http.post(format!("{}{path}", self.url)).json(body)
    }

    /// Makes something, and returns its id, which is a field of the answer.
    async fn made(&self, path: &str, body: &Value, field: &str) -> Result<String> {
        let answer = self.post(path, body).send().await?.error_for_status()?;
        let answer: Value = answer.json().await?;
        let id = answer[field]
            .as_str()
            .with_context(|| format!("no `{field}` in {answer}"))?;
        Ok(id.to_owned())
    }

    async fn e2b(&self) -> Result<RequestBuilder> {
        let body = json!({"templateID": "base", "timeout": 300, "secure": false});
        let id = self.made("/e2b/sandboxes", &body, "sandboxID").await?;
        Ok(self
            .post("/e2b/execute", &json!({"code": "1+1"}))
            .header("e2b-sandbox-id", id))
    }

    /// A call of MCP's tool, in a session of the protocol.
    async fn mcp(&self) -> Result<RequestBuilder> {
        let ask = |message: Value| {
            let request = self.post("/mcp", &message);
            request.header("accept", "application/json, text/event-stream")
        };
        let client = json!({"name": "latency", "version": "1"});
        let begin = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin});
        let answer = ask(begin).send().await?.error_for_status()?;
        let session = answer
            .headers()
            .get("mcp-session-id")
            .context("no session")?
            .clone();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let ready = ask(ready).header("mcp-session-id", &session);
        ready.send().await?.error_for_status()?;
        let call = |tool: &str, arguments: Value| {
            let call = json!({"name": tool, "arguments": arguments});
            let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call});
            ask(call).header("mcp-session-id", &session)
        };
        // An event whose data is the answer.
        let made = call("create_session", json!({})).send().await?.text().await?;
        let made = made.lines().find_map(|line| line.strip_prefix("data: {"));
        let made: Value = serde_json::from_str(&format!("{{{}", made.context("no answer")?))?;
        let own = &made["result"]["structuredContent"]["session"];
        Ok(call("run_python", json!({"code": "1+1", "session": own})))
    }

    async fn ways(&self) -> Result<Vec<(&'static str, CallRoute)>> {
        let cell = json!({"code": "1+1"});
        let session = self.made("/v1/sessions", &json!({}), "id").await?;
        let rest = self.post(&format!("/v1/sessions/{session}/cells"), &cell);
        let chat = self.post("/open-terminal/python", &cell);
        let chat = chat
            .header("x-user-id", "latency")
            .header("x-session-id", "latency");
        let kernel = self.made("/jupyter/api/kernels", &json!({}), "id").await?;
        let channels = format!(
            "{}/jupyter/api/kernels/{kernel}/channels",
            self.url.replacen("http", "ws", 1)
        );
        let (channels, _) = connect_async(channels).await?;
        let printed = json!({"lang": "py", "code": "print(1+1)", "runtime_session_hint": "latency"});
        let image = json!({"image": {"uri": "python"}, "timeout": 300, "resourceLimits": {}});
        let sandbox = self.made("/opensandbox/sandboxes", &image, "id").await?;
        let code = json!({"code": "1+1", "context": {"language": "python"}});
        Ok(vec![
            (REST, CallRoute::http(rest, "\"value\":2,")),
            ("MCP", CallRoute::http(self.mcp().await?, "\"text\":\"2\"")),
            ("E2B", CallRoute::http(self.e2b().await?, "\"text\":\"2\"")),
            ("Open Terminal", CallRoute::http(chat, "\"output\":\"2\"")),
            ("Jupyter", CallRoute::Jupyter(Box::new(channels))),
            (
                "LibreChat",
                CallRoute::http(self.post("/librechat/exec", &printed), "\"stdout\":\"2\\n\""),
            ),
            (
                "OpenSandbox",
                CallRoute::http(
                    self.post(&format!("/opensandbox/execd/{sandbox}/code"), &code),
                    "\"2\"",
                ),
            ),
        ])
    }
}

/// Percentile of durations in milliseconds.
fn percentile(durations: &mut [Duration], percent: usize) -> f64 {
    durations.sort_unstable();
    let at = durations.len() * percent / 100;
    durations
        .get(at)
        .map_or(0.0, |duration| duration.as_secs_f64() * 1000.0)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "its output is the result")]
async fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let Some(url) = arguments.first() else {
        bail!("name the server, such as `http://127.0.0.1:8080`");
    };
    let rounds: usize = arguments
        .get(1)
        .map_or(Ok(500), |it| it.parse())
        .context("read the number of rounds")?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let served = LatencyServer {
        http: Client::builder().no_proxy().build()?,
        url: url.trim_end_matches('/').to_owned(),
    };
    let mut ways = served.ways().await?;
    // REST, which the others are compared with, is always among them.
    let named = arguments.get(2..).unwrap_or_default();
    ways.retain(|(name, _)| named.is_empty() || *name == REST || named.iter().any(|it| it == name));
    let mut measured = vec![Vec::new(); ways.len()];
    for round in 0..rounds + 10 {
        for ((name, way), measured) in ways.iter_mut().zip(&mut measured) {
            let took = way
                .run()
                .await
                .with_context(|| format!("run `1+1` over {name}"))?;
            // The first rounds import what runs need.
            if round >= 10 {
                measured.push(took);
            }
        }
    }
    let rest = percentile(&mut measured[0], 50);
    println!(
        "warm `1+1`, {rounds} rounds in turns: median, 90th percentile, and median beyond REST's, in ms"
    );
    for ((name, _), measured) in ways.iter().zip(&mut measured) {
        let (median, late) = (percentile(measured, 50), percentile(measured, 90));
        println!("{name:<14} {median:>8.3} {late:>8.3} {:>+8.3}", median - rest);
    }
    let mut first = Vec::new();
    for _ in 0..CREATED {
        tokio::time::sleep(REFILL).await;
        let began = Instant::now();
        CallRoute::http(served.e2b().await?, "\"text\":\"2\"")
            .run()
            .await?;
        first.push(began.elapsed());
    }
    let (median, late) = (percentile(&mut first, 50), percentile(&mut first, 90));
    println!(
        "E2B, create to first result, {CREATED} sandboxes: median {median:.2} ms, 90th percentile \
         {late:.2} ms"
    );
    Ok(())
}
