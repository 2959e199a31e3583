//! Searches of deferred tools: the tool, its calls, and the tools that they load.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call_kind::CallKind;
use super::item::{FunctionCall, FunctionCallOutput, FunctionOutput, Item, ItemStatus};
use super::tool::{Function, Tool};

/// Maximum number of deferred tools of a request, and of tools that a search of the client loads.
pub(crate) const MAX_DEFERRED: usize = 1024;

/// The tool that searches deferred tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchTool {
    /// Place in which its calls are served.
    #[serde(default)]
    pub execution: SearchExecution,
    /// Description of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments of searches that the client serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
}

/// Place in which a search is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchExecution {
    /// Here, among the deferred tools of the request.
    #[default]
    Server,
    /// At the client.
    Client,
}

/// A search by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchCall {
    /// `tsc_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Place in which it is served.
    pub execution: SearchExecution,
    /// Id that its output refers to; null for searches that are served here.
    pub call_id: Option<String>,
    /// Arguments of the search.
    pub arguments: Value,
}

/// The tools that a search loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchOutput {
    /// `tso_…`.
    pub id: String,
    /// Progress.
    pub status: ItemStatus,
    /// Place in which it was served.
    pub execution: SearchExecution,
    /// Id of the call; null for searches that are served here, which are answered in their order.
    pub call_id: Option<String>,
    /// The tools.
    pub tools: Vec<Tool>,
}

impl SearchCall {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self, call_id: String) -> FunctionCall {
        FunctionCall {
            id: self.id,
            status: self.status,
            call_id,
            name: CallKind::Search.function().to_owned(),
            namespace: None,
            arguments: self.arguments.to_string(),
            caller: None,
        }
    }
}

/// Puts the searches of a conversation into the form that models know: calls of a function, whose results
/// describe the tools with the model's names. A half without its other half is dropped.
pub(crate) fn searches_as_functions(
    items: Vec<Item>,
    describe: impl Fn(&Tool) -> Vec<Function>,
) -> Vec<Item> {
    let mut open = VecDeque::new();
    let mut pairs = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        match item {
            Item::ToolSearchCall(call) if call.call_id.is_none() => {
                open.push_back((place, call_id(call, place)));
            }
            Item::ToolSearchOutput(output) if output.call_id.is_none() => {
                if let Some((call, id)) = open.pop_front() {
                    pairs.insert(call, id.clone());
                    pairs.insert(place, id);
                }
            }
            _ => {}
        }
    }
    let known = |(place, item): (usize, Item)| match item {
        Item::ToolSearchCall(call) => {
            let id = call.call_id.clone().or_else(|| pairs.remove(&place))?;
            Some(Item::FunctionCall(call.into_function(id)))
        }
        Item::ToolSearchOutput(output) => {
            let functions: Vec<_> = output.tools.iter().flat_map(&describe).collect();
            Some(Item::FunctionCallOutput(FunctionCallOutput {
                caller: None,
                id: output.id,
                status: output.status,
                call_id: output.call_id.or_else(|| pairs.remove(&place))?,
                output: FunctionOutput::Text(text(&functions)),
            }))
        }
        item => Some(item),
    };
    items.into_iter().enumerate().filter_map(known).collect()
}

/// Ids of calls have at most 64 characters; ids of items may be longer.
fn call_id(call: &SearchCall, place: usize) -> String {
    if call.id.len() <= 64 {
        call.id.clone()
    } else {
        format!("call_at_{place}")
    }
}

fn text(functions: &[Function]) -> String {
    if functions.is_empty() {
        return "No tool matches. Search with other words, or continue without it.".to_owned();
    }
    let found = functions.iter().map(|function| {
        json!({
            "name": function.name,
            "description": function.description,
            "parameters": function.parameters,
        })
    });
    format!("These tools are loaded now: {}", Value::Array(found.collect()))
}
