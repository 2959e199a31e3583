//! The interpreter that the tests of this binary share, and clients that ask a server for things.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cellblock_artifact::Store;
use cellblock_interpreter::Interpreter;
use cellblock_interpreter::pool::PoolConfig;
use cellblock_interpreter::toolset::TOOLSETS;
use cellblock_mcp::{LazyInterpreter, Options, Server};
use cellblock_testkit::wait::until_ok;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    Implementation, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ServiceExt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// Maximum time for which a request waits for a sandbox: another program of tests may keep the processors
/// busy.
const PATIENCE: Duration = Duration::from_mins(3);

/// The interpreter's tasks live here, so it must outlive each test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static INTERPRETER: OnceCell<Interpreter> = OnceCell::const_new();

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_mins(2);

pub(crate) type McpConnection = RunningService<RoleClient, Client>;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(async { tokio::time::timeout(2 * LONG, future).await.unwrap() })
}

async fn start() -> Interpreter {
    let artifacts = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("artifacts");
    Interpreter::builder()
        .home(cellblock_testkit::home().unwrap())
        .pool(PoolConfig {
            acquire_timeout: PATIENCE,
            ..PoolConfig::default()
        })
        .store(Store::local(artifacts).unwrap())
        .build()
        .await
        .unwrap()
}

pub(crate) async fn server(change: impl FnOnce(&mut Options)) -> Server {
    let interpreter = INTERPRETER.get_or_init(start).await.clone();
    let mut options = Options::default();
    change(&mut options);
    Server::new(LazyInterpreter::ready(interpreter), options)
}

/// A server whose interpreter is started by the first who needs it.
pub(crate) async fn engine_that_starts(change: impl FnOnce(&mut Options)) -> Server {
    let interpreter = INTERPRETER.get_or_init(start).await.clone();
    let mut options = Options::default();
    change(&mut options);
    let engine = LazyInterpreter::starting(move || {
        let interpreter = interpreter.clone();
        async move { Ok(interpreter) }
    });
    Server::new(engine, options)
}

/// Offers every tool.
pub(crate) fn all(options: &mut Options) {
    options.toolsets = TOOLSETS.to_vec();
}

/// A client that remembers what it was told meanwhile.
#[derive(Clone, Default)]
pub(crate) struct Client {
    pub(crate) told: Arc<Mutex<Vec<ProgressNotificationParam>>>,
    pub(crate) tasks: bool,
    /// Its name, if another one than `test`.
    pub(crate) name: Option<&'static str>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = if self.tasks {
            ClientCapabilities::builder().enable_tasks().build()
        } else {
            ClientCapabilities::default()
        };
        ClientConfig::new(
            capabilities,
            Implementation::new(self.name.unwrap_or("test"), "1"),
        )
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.told.lock().push(told);
    }
}

impl Client {
    /// Returns the messages that it received, in one text.
    pub(crate) fn heard(&self) -> String {
        let told = self.told.lock();
        told.iter().filter_map(|it| it.message.clone()).collect()
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

/// A client of a server in this process.
pub(crate) async fn connect(server: &Server, client: Client, mode: ClientLifecycleMode) -> McpConnection {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = server.clone();
    tokio::spawn(async move {
        let running = server.serve(theirs).await.unwrap();
        running.waiting().await.unwrap();
    });
    client.serve_with_lifecycle(ours, mode).await.unwrap()
}

/// An ordinary client of an ordinary server.
pub(crate) async fn ordinary() -> McpConnection {
    connect(&server(|_| {}).await, Client::default(), newest()).await
}

/// One of a server with every tool.
pub(crate) async fn with_all() -> McpConnection {
    connect(&server(all).await, Client::default(), newest()).await
}

pub(crate) fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

pub(crate) async fn answer(client: &McpConnection, tool: &'static str, arguments: Value) -> CallToolResult {
    match client.call_tool_once(call(tool, arguments)).await.unwrap() {
        CallToolResponse::Complete(result) => result,
        other => panic!("not an answer: {other:?}"),
    }
}

/// The structured content of a call that must succeed.
pub(crate) async fn done(client: &McpConnection, tool: &'static str, arguments: Value) -> Value {
    let result = answer(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(false), "{result:#?}");
    result.structured_content.unwrap()
}

/// Returns the text that a model reads for a call that must fail.
pub(crate) async fn refused(client: &McpConnection, tool: &'static str, arguments: Value) -> String {
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
pub(crate) async fn run(client: &McpConnection, session: Option<&str>, code: &str) -> Value {
    done(client, "run_python", json!({"code": code, "session_id": session})).await
}

pub(crate) async fn session(client: &McpConnection) -> String {
    let made = done(client, "create_session", json!({})).await;
    made["session_id"].as_str().unwrap().to_owned()
}

/// A resource's bytes as text, and its media type.
pub(crate) async fn read(client: &McpConnection, uri: &str) -> (String, String) {
    let read = client
        .read_resource(ReadResourceRequestParams::new(uri))
        .await
        .unwrap();
    match &read.contents[..] {
        [ResourceContents::TextResourceContents { text, mime_type, .. }] => {
            (text.clone(), mime_type.clone().unwrap())
        }
        [ResourceContents::BlobResourceContents { blob, mime_type, .. }] => {
            (blob.clone(), mime_type.clone().unwrap())
        }
        other => panic!("not one content: {other:?}"),
    }
}

/// Asks until it is so.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    until_ok(async || so().await.then_some(()).ok_or(what)).await;
}
