//! A server of two series, and models that fetch from it and derive.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_agent::provider::scripted::{ScriptedAnswer, ScriptedProvider};
use cellblock_agent::tools::ConfiguredServer;
use cellblock_agent::{OfferedTools, ToolReply, ToolServer, ToolServerError};
use cellblock_gateway::Options;
use cellblock_interpreter::toolset::ToolDefinition;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::support::{Server, interpreter_tool, serve_with};

/// Days of each series.
pub(crate) const DAYS: i64 = 90;

/// A server of two series.
#[derive(Debug)]
pub(crate) struct Market {
    pub(crate) days: i64,
}

impl ToolServer for Market {
    fn label(&self) -> &'static str {
        "market"
    }

    fn tools(&self) -> BoxFuture<'_, Result<Arc<OfferedTools>, ToolServerError>> {
        let tool = |name: &str| ToolDefinition {
            name: name.to_owned(),
            description: format!("{name}, day by day"),
            input_schema: json!({"type": "object", "properties": {"symbol": {"type": "string"}}})
                .as_object()
                .unwrap()
                .clone(),
            ..ToolDefinition::default()
        };
        let tools = vec![tool("get_price_history"), tool("get_net_flow")];
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
        let series = series(tool, self.days);
        Box::pin(async move { Ok(ToolReply::Result(series)) })
    }
}

pub(crate) fn series(tool: &str, days: i64) -> Value {
    let key = if tool == "get_price_history" {
        "close"
    } else {
        "net_flow"
    };
    let rows = (0..days).map(|day| {
        let date = format!("2026-{:02}-{:02}", 1 + day / 28, 1 + day % 28);
        json!({"date": date, key: 100 + day * 3 % 17})
    });
    rows.collect()
}

pub(crate) fn tools(options: &mut Options) {
    options.tools.configured = vec![ConfiguredServer {
        server: Arc::new(Market { days: DAYS }),
        always: true,
    }];
}

pub(crate) async fn start(
    answers: Vec<ScriptedAnswer>,
    change: impl FnOnce(&mut Options),
) -> (Server, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(answers));
    let model = Arc::clone(&provider) as Arc<dyn Provider>;
    let server = serve_with(model, |options| {
        tools(options);
        change(options);
    });
    (server.await, provider)
}

pub(crate) fn fetches() -> ScriptedAnswer {
    ScriptedAnswer::new()
        .call("c1", "get_price_history", r#"{"symbol": "ACME"}"#)
        .call("c2", "get_net_flow", r#"{"symbol": "ACME"}"#)
}

/// A call of the interpreter under a contract.
pub(crate) fn derives(code: &str, artifacts: &[&str]) -> ScriptedAnswer {
    let arguments = json!({
        "intent": "compare price and flow",
        "code": code,
        "postProcessingContract": {
            "operation": "join two series by day and draw them",
            "reason": "neither tool draws",
            "inputAliases": ["get_price_history_1", "get_net_flow_1"],
            "expectedArtifacts": artifacts,
        },
    });
    ScriptedAnswer::new().call("c3", "code_interpreter", &arguments.to_string())
}

pub(crate) fn says(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::new().text(text)
}

pub(crate) const DRAWS: &str = "\
merged = safe_merge_timeseries(get_price_history_1, get_net_flow_1, time_col='date', names=['price', 'flow'])
fig, ax = plt.subplots()
ax.plot(merged.index, merged['close'])
";
pub(crate) const SAVES: &str = "\
merged = safe_merge_timeseries(get_price_history_1, get_net_flow_1, time_col='date', names=['price', 'flow'])
fig, ax = plt.subplots()
ax.plot(merged.index, merged['close'])
save_figure('price by day', title='ACME')
set_result({'rows': len(merged), 'flow': int(merged['net_flow'].sum())})
";

pub(crate) fn asking() -> Value {
    json!({
        "input": "How do ACME's price and flow compare? Draw it.",
        "tools": interpreter_tool(),
        "include": ["code_interpreter_call.outputs"],
        "metadata": {"chart_intent": "explicit"},
    })
}

pub(crate) fn items<'a>(response: &'a Value, kind: &str) -> Vec<&'a Value> {
    let items = response["output"].as_array().unwrap().iter();
    items.filter(|item| item["type"] == kind).collect()
}

/// Returns what the model read of its last calls.
pub(crate) fn read(provider: &ScriptedProvider, asked: usize) -> Vec<String> {
    let items = json!(provider.asked()[asked].items);
    let outputs = items
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "function_call_output");
    outputs
        .map(|item| match &item["output"] {
            Value::String(text) => text.clone(),
            parts => parts[0]["text"].as_str().unwrap().to_owned(),
        })
        .collect()
}
