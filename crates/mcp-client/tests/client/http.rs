//! Correct servers over HTTP, built with a common library, in both revisions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use cellblock_agent::{ToolReply, ToolServer};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::support::{at, names, object, options, refused, result};

/// Tools, with counts of their actions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    waiting: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

impl Tools {
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

/// Counts when it is dropped.
struct DropCount(Arc<AtomicUsize>);

impl Drop for DropCount {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = object(
            json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}),
        );
        let tool = |name: &'static str| Tool::new(name, "Does it.", Arc::new(schema.clone()));
        let second = asked.and_then(|asked| asked.cursor).is_some();
        let mut list = ListToolsResult::with_all_items(if second {
            vec![tool("wait"), tool("fail")]
        } else {
            vec![tool("data"), tool("picture")]
        });
        list.next_cursor = (!second).then(|| "second".to_owned());
        Ok(list)
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let result = match asked.name.as_ref() {
            "data" => CallToolResult::structured(json!({"asked": asked.arguments,
                    "revision": context.protocol_version().map(|it| it.to_string())})),
            "picture" => CallToolResult::success(vec![
                ContentBlock::text("{\"a\": 1}"),
                ContentBlock::image("AAAA", "image/png"),
                ContentBlock::embedded_text("a://b", "text"),
            ]),
            "wait" => {
                let dropped = DropCount(self.cancelled.clone());
                self.waiting.fetch_add(1, Ordering::SeqCst);
                context.ct.cancelled().await;
                drop(dropped);
                CallToolResult::success(vec![])
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text("no such city")]),
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(result.into())
    }
}

/// Kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Newest,
    /// With sessions.
    Before,
    /// Without sessions, in one piece instead of a stream.
    BeforeJson,
}

/// A server of the earlier revision does not know later features.
async fn before(request: Request, next: Next) -> Response {
    let newest = request
        .headers()
        .get("mcp-method")
        .is_some_and(|method| method == "server/discover");
    if newest {
        return (StatusCode::BAD_REQUEST, "Bad Request: Server not initialized").into_response();
    }
    next.run(request).await
}

pub(crate) async fn serve(kind: Kind) -> (Tools, String) {
    let (tools, router) = router(kind);
    (tools, listen(router).await + "/mcp")
}

fn router(kind: Kind) -> (Tools, axum::Router) {
    let tools = Tools::default();
    let handler = tools.clone();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(kind == Kind::Before)
        .with_json_response(kind == Kind::BeforeJson);
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::<LocalSessionManager>::default(),
        config,
    );
    let mut router = axum::Router::new().route_service("/mcp", service);
    if kind != Kind::Newest {
        router = router.layer(from_fn(before));
    }
    (tools, router)
}

/// A server with sessions, which forgets a call's session on command: 1 becomes 2.
pub(crate) async fn serve_forgetting(forget: Arc<AtomicUsize>) -> (Tools, String) {
    let (tools, router) = router(Kind::Before);
    let router = router.layer(from_fn(move |request: Request, next: Next| {
        let is_call = request.headers().contains_key("mcp-session-id") && request.method() == "POST";
        let forgets = is_call
            && forget
                .compare_exchange(1, 2, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok();
        async move {
            if forgets {
                return StatusCode::NOT_FOUND.into_response();
            }
            next.run(request).await
        }
    }));
    (tools, listen(router).await + "/mcp")
}

/// Serves on a separate port.
pub(crate) async fn listen(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test]
async fn a_server_of_either_revision_lists_its_tools_and_answers() {
    for (kind, revision) in [
        (Kind::Newest, json!("2026-07-28")),
        (Kind::Before, Value::Null),
        (Kind::BeforeJson, Value::Null),
    ] {
        let (_, url) = serve(kind).await;
        let server = at(&url, options());
        assert_eq!(
            names(&server).await,
            ["data", "picture", "wait", "fail"],
            "{kind:?}"
        );
        let data = result(&server, "data", json!({"region": "nord süd"})).await;
        assert_eq!(data["asked"], json!({"region": "nord süd"}), "{kind:?}");
        if kind == Kind::Newest {
            assert_eq!(data["revision"], revision);
        }
        assert_eq!(
            result(&server, "picture", json!({})).await,
            json!([
                {"a": 1},
                {"type": "image", "mimeType": "image/png", "data": "AAAA"},
                {"type": "resource", "uri": "a://b", "mimeType": "text/plain", "text": "text"},
            ])
        );
        let reply = server.call("fail", Map::new()).await.unwrap();
        assert_eq!(reply, ToolReply::Failed("no such city".to_owned()));
        assert_eq!(
            refused(&server).await,
            "the server `weather` rejected the request: no tool work (code -32602)"
        );
    }
}

#[tokio::test]
async fn calls_at_once_do_not_wait_for_each_other() {
    for kind in [Kind::Newest, Kind::Before] {
        let (tools, url) = serve(kind).await;
        let server = Arc::new(at(&url, options()));
        let (waits, asks) = (server.clone(), server.clone());
        let waiting = tokio::spawn(async move { waits.call("wait", Map::new()).await });
        crate::support::until("it waits", || tools.waiting() == 1).await;
        let asked = (0..8).map(|number| {
            let server = asks.clone();
            async move {
                result(&server, "data", json!({"region": number.to_string()})).await["asked"]["region"]
                    .clone()
            }
        });
        let answers = futures_util::future::join_all(asked).await;
        assert_eq!(
            answers,
            (0..8).map(|number| json!(number.to_string())).collect::<Vec<_>>()
        );
        waiting.abort();
    }
}
