//! A request to a model, independent of its provider.

use serde_json::{Value, json};

use crate::tools::{model_name, qualified};
use crate::wire::{
    AllowedMode, ApprovalAnswers, CallKind, ChoiceMode, CodeInterpreterCall, Function, FunctionCall,
    FunctionCallOutput, FunctionOutput, INTERPRETER, InterpreterOutput, Item, ItemStatus, McpApprovalRequest,
    McpCall, PromptCache, ReasoningOptions, SamplingSettings, Text, ToolChoice, ToolName, arguments_of_code,
};

/// A request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// The provider's name of the model.
    pub model: String,
    /// The application's instructions.
    pub instructions: Option<String>,
    /// The conversation, oldest first.
    pub items: Vec<Item>,
    /// Tools, each as a function.
    pub tools: Vec<Function>,
    /// Selection of the tools that may or must be called. Hosted tools have the names of their functions.
    pub tool_choice: ToolChoice,
    /// Whether several tools may be called at once.
    pub parallel_tool_calls: bool,
    /// Maximum number of output tokens.
    pub max_output_tokens: Option<u64>,
    /// Sampling settings.
    pub sampling: SamplingSettings,
    /// Format of the answer.
    pub text: Text,
    /// Reasoning settings.
    pub reasoning: ReasoningOptions,
    /// The client's key for cached prompts.
    pub prompt_cache_key: Option<String>,
    /// Other hints for cached prompts.
    pub prompt_cache: PromptCache,
}

impl ModelRequest {
    /// Creates a request for a plain answer to `items`, without tools and with the provider's
    /// defaults.
    pub fn new(model: impl Into<String>, items: Vec<Item>) -> Self {
        Self {
            model: model.into(),
            instructions: None,
            items,
            tools: Vec::new(),
            tool_choice: ToolChoice::Mode(ChoiceMode::Auto),
            parallel_tool_calls: true,
            max_output_tokens: None,
            sampling: SamplingSettings::default(),
            text: Text::default(),
            reasoning: ReasoningOptions::default(),
            prompt_cache_key: None,
            prompt_cache: PromptCache::default(),
        }
    }

    /// Returns the tools that may be chosen. Others are not sent to the model.
    pub(super) fn offered(&self) -> impl Iterator<Item = &Function> {
        self.tools.iter().filter(|tool| match &self.tool_choice {
            ToolChoice::Allowed { tools, .. } => tools.iter().any(|name| function_name(name) == tool.name),
            _ => true,
        })
    }
}

/// Returns the model's name of a tool.
fn function_name(tool: &ToolName) -> &str {
    match tool {
        // A turn sets the model's names for functions in namespaces.
        ToolName::Function { name, .. } | ToolName::Custom { name, .. } => name,
        ToolName::CodeInterpreter => INTERPRETER,
        ToolName::Shell => CallKind::Shell.function(),
        ToolName::ApplyPatch => CallKind::Patch.function(),
        ToolName::ProgrammaticToolCalling => CallKind::Program.function(),
        // A turn presents the tools of servers as functions.
        ToolName::Mcp { server_label, name } => name.as_ref().unwrap_or(server_label),
    }
}

/// Returns the tool choice in the form that both APIs share; they differ in naming one function.
pub(super) fn choice(choice: &ToolChoice, named: impl FnOnce(&str) -> Value) -> Value {
    match choice {
        ToolChoice::Mode(ChoiceMode::None) => json!("none"),
        ToolChoice::Mode(ChoiceMode::Auto)
        | ToolChoice::Allowed {
            mode: AllowedMode::Auto,
            ..
        } => json!("auto"),
        ToolChoice::Mode(ChoiceMode::Required) | ToolChoice::Allowed { .. } => json!("required"),
        ToolChoice::Tool(tool) => named(function_name(tool)),
    }
}

/// Returns the conversation in items that every provider knows: executed code becomes a function
/// call and its output.
pub(super) fn plain(items: &[Item]) -> Vec<Item> {
    let mut plain = Vec::with_capacity(items.len());
    let approvals = ApprovalAnswers::of(items);
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::CodeInterpreterCall(call) => plain.extend(ran(call, index)),
            Item::McpCall(call) => plain.extend(called(call, index)),
            // The call itself says the rest once it was made.
            Item::McpApprovalRequest(request) if !approvals.is_made(request) => {
                plain.extend(unmade(request, &approvals, index));
            }
            // Each request offers its tools again.
            Item::McpListTools(_) | Item::McpApprovalRequest(_) | Item::McpApprovalResponse(_) => {}
            // Without tools, as in a request for a summary, no turn has set the model's name.
            Item::FunctionCall(call) if call.namespace.is_some() => {
                plain.push(Item::FunctionCall(flat(call)));
            }
            other => plain.push(other.clone().into_function()),
        }
    }
    plain
}

fn flat(call: &FunctionCall) -> FunctionCall {
    let mut flat = call.clone();
    if let Some(namespace) = flat.namespace.take() {
        flat.name = qualified(&namespace, &flat.name);
    }
    flat
}

fn ran(call: &CodeInterpreterCall, index: usize) -> [Item; 2] {
    let arguments = json!({"code": call.code.as_deref().unwrap_or_default()}).to_string();
    let logs: Vec<_> = call.outputs.iter().flatten().map(log).collect();
    let text = match (logs.join("\n"), &call.outputs) {
        (_, None) => "(the output was not kept)".to_owned(),
        (text, Some(_)) if text.is_empty() => "(no output)".to_owned(),
        (text, Some(_)) => text,
    };
    let text = match call.status {
        ItemStatus::Completed => text,
        _ => format!("{text}\n(the code did not run to its end)"),
    };
    pair(&call.id, index, INTERPRETER.to_owned(), arguments, text)
}

/// Returns a call of a server's tool as a function call.
pub fn called(call: &McpCall, index: usize) -> [Item; 2] {
    let text = match (&call.output, &call.error) {
        (Some(output), _) => output.clone(),
        (None, Some(error)) => format!("The tool returned no result: {}", error.words()),
        (None, None) => "(the output was not kept)".to_owned(),
    };
    pair(
        &call.id,
        index,
        model_name(&call.name),
        call.arguments.clone(),
        text,
    )
}

/// Returns a call that was not made as a function call.
fn unmade(request: &McpApprovalRequest, approvals: &ApprovalAnswers<'_>, index: usize) -> [Item; 2] {
    let (name, arguments) = if request.runs_code() {
        (INTERPRETER.to_owned(), arguments_of_code(&request.arguments))
    } else {
        (model_name(&request.name), request.arguments.clone())
    };
    pair(
        &request.call_item(),
        index,
        name,
        arguments,
        approvals.unmade(request),
    )
}

fn pair(id: &str, index: usize, name: String, arguments: String, text: String) -> [Item; 2] {
    // Ids of calls have at most 64 characters; ids of items may be longer.
    let call_id = if id.len() <= 64 {
        id.to_owned()
    } else {
        format!("call_at_{index}")
    };
    [
        Item::FunctionCall(FunctionCall {
            id: format!("fc_{id}"),
            status: ItemStatus::Completed,
            call_id: call_id.clone(),
            name,
            namespace: None,
            arguments,
            caller: None,
        }),
        Item::FunctionCallOutput(FunctionCallOutput {
            caller: None,
            id: format!("fco_{id}"),
            status: ItemStatus::Completed,
            call_id,
            output: FunctionOutput::Text(text),
        }),
    ]
}

fn log(output: &InterpreterOutput) -> &str {
    match output {
        InterpreterOutput::Logs { logs } => logs,
        InterpreterOutput::Image { .. } => "(a picture, which the user sees)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_reads_calls_that_were_not_approved_as_calls_that_were_not_made() {
        let request = |id: &str| {
            json!({"type": "mcp_approval_request", "id": id, "server_label": "shop", "name": "set.price",
                   "arguments": "{}"})
        };
        let answer = |id: &str, approve: bool| {
            json!({"type": "mcp_approval_response", "id": "mcpa_1", "approval_request_id": id,
                   "approve": approve, "reason": "too dear"})
        };
        let made = json!({"type": "function_call", "id": "fc_mcp_3", "status": "completed",
                          "call_id": "mcp_3", "name": "set_price", "arguments": "{}"});
        let items = json!([
            request("mcpr_1"),
            request("mcpr_2"),
            request("mcpr_3"),
            answer("mcpr_1", false),
            answer("mcpr_3", true),
            made,
        ]);
        let items: Vec<Item> = serde_json::from_value(items).unwrap();
        let plain = json!(plain(&items));
        let plain = plain.as_array().unwrap();
        let ids: Vec<_> = plain
            .iter()
            .map(|item| item["call_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["mcp_1", "mcp_1", "mcp_2", "mcp_2", "mcp_3"]);
        assert_eq!(plain[0]["name"], "set_price");
        assert_eq!(
            plain[1]["output"],
            "The call was not made: the user denied it, and nothing was changed. The user's reason: too dear"
        );
        let unanswered = plain[3]["output"].as_str().unwrap();
        assert!(unanswered.contains("has not given"), "{unanswered}");
    }

    #[test]
    fn a_call_in_a_namespace_has_a_flat_name_where_no_turn_gave_it_one() {
        let call = FunctionCall {
            id: "fc_1".to_owned(),
            status: ItemStatus::Completed,
            call_id: "c1".to_owned(),
            name: "find".to_owned(),
            namespace: Some("n".repeat(60)),
            arguments: "{}".to_owned(),
            caller: None,
        };
        let plain = json!(plain(&[Item::FunctionCall(call)]));
        assert_eq!(
            plain,
            json!([{"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c1",
                    "name": format!("{}__fi", "n".repeat(60)), "arguments": "{}"}])
        );
    }
}
