//! A client of the protocol, and requests as bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};

use crate::http::{self, SentRequest};
use crate::server::Server;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_mins(4);

pub(crate) type ClientConnection = RunningService<RoleClient, Client>;

/// Runs a test, for a bounded time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, future).await.unwrap() })
}

/// A client that remembers what it was told meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(super) told: Arc<Mutex<String>>,
    pub(super) tasks: bool,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = if self.tasks {
            ClientCapabilities::builder().enable_tasks().build()
        } else {
            ClientCapabilities::default()
        };
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.told.lock().push_str(&told.message.unwrap_or_default());
    }
}

impl Client {
    /// Returns the progress messages that it received, in one text.
    pub(super) fn heard(&self) -> String {
        self.told.lock().clone()
    }
}

/// Both revisions.
pub(crate) fn revisions() -> [ClientLifecycleMode; 2] {
    [ClientLifecycleMode::Initialize, newest()]
}

pub(crate) fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

/// Connects, if the server lets it.
pub(crate) async fn begin(
    address: SocketAddr,
    key: Option<&str>,
    client: Client,
    mode: ClientLifecycleMode,
) -> Result<ClientConnection, Box<ClientInitializeError>> {
    // Built with the rest of the workspace, the client brings no cryptography of its own; an error
    // means that there is some already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"));
    if let Some(key) = key {
        config = config.auth_header(key);
    }
    let transport = StreamableHttpClientTransport::from_config(config);
    client
        .serve_with_lifecycle(transport, mode)
        .await
        .map_err(Box::new)
}

/// A client of the newest revision.
pub(crate) async fn connect(server: &Server, key: Option<&str>) -> ClientConnection {
    begin(server.address, key, Client::default(), newest())
        .await
        .unwrap()
}

pub(crate) fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

pub(crate) async fn answer(
    client: &ClientConnection,
    tool: &'static str,
    arguments: Value,
) -> CallToolResult {
    match client.call_tool_once(call(tool, arguments)).await.unwrap() {
        CallToolResponse::Complete(result) => result,
        other => panic!("not an answer: {other:?}"),
    }
}

/// The structured content of a call that must succeed.
pub(crate) async fn done(client: &ClientConnection, tool: &'static str, arguments: Value) -> Value {
    let result = answer(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(false), "{result:#?}");
    result.structured_content.unwrap()
}

/// Returns the text that a model reads for a call that must fail.
pub(crate) async fn refused(client: &ClientConnection, tool: &'static str, arguments: Value) -> String {
    let result = answer(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:#?}");
    let said = text(&result);
    let said = said.strip_prefix("Error: ").unwrap_or(&said).to_owned();
    if let Some(message) = result
        .structured_content
        .as_ref()
        .and_then(|it| it["error"]["message"].as_str())
    {
        assert_eq!(said, message);
    }
    said
}

/// The text of an answer, which is its first block.
pub(crate) fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

/// Runs code in a session, or in a new one; gives the structured content.
pub(crate) async fn run(client: &ClientConnection, session: Option<&str>, code: &str) -> Value {
    done(client, "run_python", json!({"code": code, "session_id": session})).await
}

/// Posts a request of the newest revision, whose progress is wanted.
pub(crate) fn post(
    address: SocketAddr,
    headers: &[(&str, &str)],
    method: &str,
    name: &str,
    mut params: Value,
) -> SentRequest {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut all = vec![
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ];
    if !name.is_empty() {
        all.push(("Mcp-Name", name));
    }
    all.extend_from_slice(headers);
    http::send(address, "POST /mcp", &all, &body)
}

/// Begins to run code, and waits until it has printed `on`.
pub(crate) fn begin_code(address: SocketAddr, session: Option<&str>, code: &str) -> SentRequest {
    let call = json!({"name": "run_python",
        "arguments": {"code": format!("print('on', flush=True)\n{code}"), "session_id": session}});
    let mut sent = post(address, &[], "tools/call", "run_python", call);
    sent.until("\"message\":\"on");
    sent
}
