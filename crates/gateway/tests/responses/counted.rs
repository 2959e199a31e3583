//! Counts of tools that turns call.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::tools::ConfiguredServer;
use cellblock_agent::{OfferedTools, ToolReply, ToolServer, ToolServerAddress, ToolServerError, ToolServers};
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::toolset::ToolDefinition;
use cellblock_testkit::wait::until_ok;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::streams::until;
use crate::support::{Server, block_on, interpreter_tool, serve_with};

/// The name under which the operator has set one up. Metrics are those of the process: no other
/// test has a server of this name.
const LABEL: &str = "desk";

/// A server whose tools end as their names say.
#[derive(Debug)]
struct Desk;

impl ToolServer for Desk {
    fn label(&self) -> &'static str {
        LABEL
    }

    fn tools(&self) -> BoxFuture<'_, Result<Arc<OfferedTools>, ToolServerError>> {
        let tool = |name: &str| ToolDefinition {
            name: name.to_owned(),
            input_schema: json!({"type": "object"}).as_object().unwrap().clone(),
            ..ToolDefinition::default()
        };
        let tools = ["answer", "fail", "die", "hang"].map(tool).to_vec();
        Box::pin(async move {
            Ok(Arc::new(OfferedTools {
                tools,
                left_out: Vec::new(),
            }))
        })
    }

    fn call(
        &self,
        tool: &str,
        _arguments: Map<String, Value>,
    ) -> BoxFuture<'_, Result<ToolReply, ToolServerError>> {
        let tool = tool.to_owned();
        Box::pin(async move {
            match tool.as_str() {
                "answer" => Ok(ToolReply::Result(json!(42))),
                "fail" => Ok(ToolReply::Failed("closed today".to_owned())),
                "die" => Err(ToolServerError::new("`desk` ended before it answered")),
                _ => std::future::pending().await,
            }
        })
    }
}

/// The same at any address.
#[derive(Debug)]
struct AnyAddress;

impl ToolServers for AnyAddress {
    fn at(&self, _address: ToolServerAddress) -> Result<Arc<dyn ToolServer>, ToolServerError> {
        Ok(Arc::new(Desk))
    }

    fn connector(&self, address: ToolServerAddress) -> Result<Arc<dyn Connector>, ToolServerError> {
        Err(ToolServerError::new(format!(
            "`{}` is not for code",
            address.label
        )))
    }
}

async fn start(answers: Vec<ScriptedAnswer>) -> Server {
    let provider = Arc::new(ScriptedProvider::new(answers)) as Arc<dyn Provider>;
    serve_with(provider, |options| {
        options.tools.configured = vec![ConfiguredServer {
            server: Arc::new(Desk),
            always: true,
        }];
        options.tools.named = Some(Arc::new(AnyAddress));
    })
    .await
}

fn calls(tools: &[&str]) -> ScriptedAnswer {
    let numbered = tools.iter().enumerate();
    numbered.fold(ScriptedAnswer::new(), |answer, (at, tool)| {
        answer.call(&format!("c{at}"), tool, "{}")
    })
}

/// The number behind a name and its labels.
async fn counted(server: &Server, name: &str) -> Option<u64> {
    let text = server.metrics().await;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    lines.next().map(|number| number.trim().parse().unwrap())
}

async fn ended(server: &Server, label: &str, outcome: &str) -> Option<u64> {
    let name = format!("cellblock_tool_calls_total{{server=\"{label}\",outcome=\"{outcome}\"}}");
    counted(server, &name).await
}

#[test]
fn calls_of_tools_are_counted_by_their_server_and_how_they_ended() {
    block_on(async {
        let first = calls(&["answer", "fail", "answer", "die", "no_such"]);
        let answers = vec![first, ScriptedAnswer::new().text("Done."), calls(&["hang"])];
        let server = start(answers).await;
        let asked = json!({"input": "Ask.", "tools": interpreter_tool()});
        let response = server.create(asked.clone()).await.ok();
        assert_eq!(response["status"], "completed", "{response}");
        for (outcome, number) in [
            ("completed", Some(2)),
            ("failed", Some(1)),
            ("error", Some(1)),
            ("cancelled", None),
        ] {
            assert_eq!(ended(&server, LABEL, outcome).await, number, "{outcome}");
        }
        let timed = format!("cellblock_tool_call_seconds_count{{server=\"{LABEL}\"}}");
        assert_eq!(counted(&server, &timed).await, Some(4));

        // Gone while a tool hangs.
        let mut stream = server.stream(asked).await;
        until(&mut stream, "response.mcp_call.in_progress").await;
        drop(stream);
        until_ok(async || match ended(&server, LABEL, "cancelled").await {
            Some(1) => Ok(()),
            other => Err(format!("cancelled: {other:?}")),
        })
        .await;
        assert_eq!(counted(&server, &timed).await, Some(4));
    });
}

#[test]
fn servers_at_addresses_of_requests_are_counted_as_one_whatever_they_are_called() {
    block_on(async {
        for label in [LABEL, "made_up"] {
            let server = start(vec![calls(&["answer"]), ScriptedAnswer::new().text("Done.")]).await;
            let before = ended(&server, "(requested)", "completed").await.unwrap_or(0);
            let tool = json!({
                "type": "mcp", "server_label": label, "server_url": "https://desk.example.com/mcp",
                "require_approval": "never",
            });
            let asked = json!({"input": "Ask.", "tools": [tool]});
            let response = server.create(asked).await.ok();
            assert_eq!(response["status"], "completed", "{response}");
            let after = ended(&server, "(requested)", "completed").await;
            assert_eq!(after, Some(before + 1), "{label}");
            assert!(!server.metrics().await.contains("made_up"));
        }
    });
}
