//! The body of a request to Chat Completions.

use cellblock_interpreter::toolset::object;
use serde_json::{Map, Value, json};

use super::ChatDialect;
use crate::provider::request::{choice, plain};
use crate::provider::{ModelRequest, ProviderError};
use crate::wire::{FunctionCall, FunctionOutput, Item, Message, Part, Reasoning, Role, TextFormat};

/// Builds the body that requests a stream. Reasoning is sent back in the given field.
pub(super) fn body(
    request: &ModelRequest,
    dialect: &ChatDialect,
    reasoning: Option<&str>,
) -> Result<Value, ProviderError> {
    let mut body = Map::new();
    let mut set = |key: &str, value: Option<Value>| value.map(|value| body.insert(key.to_owned(), value));
    set("model", Some(json!(request.model)));
    set("messages", Some(messages(request, dialect, reasoning)?));
    set("stream", Some(json!(true)));
    set(
        "stream_options",
        dialect.stream_usage.then(|| json!({"include_usage": true})),
    );
    set(
        dialect.max_tokens_field.name(),
        request.max_output_tokens.map(|count| json!(count)),
    );
    for (key, value) in object(json!(request.sampling)) {
        set(&key, Some(value));
    }
    set(
        "reasoning_effort",
        request.reasoning.effort.as_ref().map(|effort| json!(effort)),
    );
    set("response_format", format(&request.text.format));
    let tools = offered(request, dialect);
    if !tools.is_empty() {
        set("tools", Some(Value::Array(tools)));
        let named = |name: &str| json!({"type": "function", "function": {"name": name}});
        set("tool_choice", Some(choice(&request.tool_choice, named)));
        // Only non-default values are sent: not every server knows the field.
        set(
            "parallel_tool_calls",
            (dialect.parallel_tool_calls && !request.parallel_tool_calls).then_some(json!(false)),
        );
    }
    Ok(Value::Object(body))
}

fn offered(request: &ModelRequest, dialect: &ChatDialect) -> Vec<Value> {
    let tools = request.offered();
    tools
        .map(|tool| {
            let mut function = json!({"name": tool.name});
            function["parameters"] = tool.parameters.as_ref().map_or_else(
                || json!({"type": "object", "properties": {}}),
                |parameters| json!(parameters),
            );
            if let Some(description) = &tool.description {
                function["description"] = json!(description);
            }
            if dialect.strict && tool.strict == Some(true) {
                function["strict"] = json!(true);
            }
            json!({"type": "function", "function": function})
        })
        .collect()
}

fn format(format: &TextFormat) -> Option<Value> {
    match format {
        TextFormat::Text => None,
        TextFormat::JsonObject => Some(json!({"type": "json_object"})),
        TextFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            let mut form = json!({"name": name, "schema": schema});
            if let Some(description) = description {
                form["description"] = json!(description);
            }
            if let Some(strict) = strict {
                form["strict"] = json!(strict);
            }
            Some(json!({"type": "json_schema", "json_schema": form}))
        }
    }
}

/// Messages under construction.
struct ChatMessages<'a> {
    dialect: &'a ChatDialect,
    /// Field in which reasoning is sent back.
    field: Option<&'a str>,
    done: Vec<Value>,
    /// Reasoning for the model's next message.
    reasoning: Option<String>,
    /// Pictures of tool results. They follow the results, which are text, in a message of the user.
    pictures: Vec<Value>,
}

fn messages(
    request: &ModelRequest,
    dialect: &ChatDialect,
    field: Option<&str>,
) -> Result<Value, ProviderError> {
    let mut messages = ChatMessages {
        dialect,
        field,
        done: Vec::new(),
        reasoning: None,
        pictures: Vec::new(),
    };
    if let Some(instructions) = &request.instructions {
        let role = dialect.system_role.name();
        messages.done.push(json!({"role": role, "content": instructions}));
    }
    for item in plain(&request.items) {
        match item {
            Item::FunctionCallOutput(output) => messages.output(&output.call_id, &output.output)?,
            other => {
                messages.show_pictures();
                match other {
                    Item::Message(message) => messages.message(&message)?,
                    Item::FunctionCall(call) => messages.call(&call),
                    Item::Reasoning(reasoning) => messages.reasoning(&reasoning),
                    // The first is handled above; the others were converted to plain messages.
                    Item::FunctionCallOutput(_)
                    | Item::CodeInterpreterCall(_)
                    | Item::ShellCall(_)
                    | Item::ShellCallOutput(_)
                    | Item::ApplyPatchCall(_)
                    | Item::ApplyPatchCallOutput(_)
                    | Item::LocalShellCall(_)
                    | Item::LocalShellCallOutput(_)
                    | Item::CustomToolCall(_)
                    | Item::CustomToolCallOutput(_)
                    | Item::Program(_)
                    | Item::ProgramOutput(_)
                    | Item::ToolSearchCall(_)
                    | Item::ToolSearchOutput(_)
                    | Item::McpListTools(_)
                    | Item::McpCall(_)
                    | Item::McpApprovalRequest(_)
                    | Item::McpApprovalResponse(_)
                    | Item::Compaction(_)
                    | Item::ItemReference(_) => {}
                }
            }
        }
    }
    messages.show_pictures();
    Ok(Value::Array(messages.done))
}

impl ChatMessages<'_> {
    fn message(&mut self, message: &Message) -> Result<(), ProviderError> {
        let role = match message.role {
            Role::User => {
                // Reasoning for an earlier answer does not belong to this one.
                self.forget_reasoning();
                "user"
            }
            Role::Assistant => {
                let text = text(&message.content);
                self.assistant(json!({"role": "assistant", "content": text}));
                return Ok(());
            }
            Role::System | Role::Developer => self.dialect.system_role.name(),
        };
        let parts = message.content.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        let plain = parts.iter().all(|part| part["type"] == "text");
        let content = if plain {
            json!(text(&message.content))
        } else {
            json!(parts)
        };
        self.done.push(json!({"role": role, "content": content}));
        Ok(())
    }

    fn forget_reasoning(&mut self) {
        self.reasoning = None;
        let Some(field) = self.field else { return };
        for message in &mut self.done {
            message.as_object_mut().and_then(|message| message.remove(field));
        }
    }

    fn assistant(&mut self, mut message: Value) {
        if let (Some(field), Some(reasoning)) = (self.field, self.reasoning.take()) {
            message[field] = json!(reasoning);
        }
        self.done.push(message);
    }

    fn reasoning(&mut self, reasoning: &Reasoning) {
        let parts = reasoning.content.as_ref().unwrap_or(&reasoning.summary);
        self.reasoning = Some(text(parts));
    }

    fn call(&mut self, call: &FunctionCall) {
        // Templates parse arguments as an object, and fail otherwise; other text of the model is
        // wrapped in one.
        let arguments = match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
            Ok(_) => call.arguments.clone(),
            Err(_) if call.arguments.trim().is_empty() => "{}".to_owned(),
            Err(_) => json!({"malformed_arguments": call.arguments}).to_string(),
        };
        let call = json!({
            "id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": arguments},
        });
        if !self.done.last().is_some_and(|last| last["role"] == "assistant") {
            self.assistant(json!({"role": "assistant", "content": null, "tool_calls": []}));
        }
        if let Some(last) = self.done.last_mut() {
            match last["tool_calls"].as_array_mut() {
                Some(calls) => calls.push(call),
                None => last["tool_calls"] = json!([call]),
            }
        }
    }

    fn output(&mut self, call_id: &str, output: &FunctionOutput) -> Result<(), ProviderError> {
        let content = match output {
            FunctionOutput::Text(text) => text.clone(),
            FunctionOutput::Parts(parts) => {
                let pictures = parts
                    .iter()
                    .filter(|part| matches!(part, Part::InputImage { .. }));
                self.pictures
                    .extend(pictures.map(part).collect::<Result<Vec<_>, _>>()?);
                text(parts)
            }
        };
        self.done
            .push(json!({"role": "tool", "tool_call_id": call_id, "content": content}));
        Ok(())
    }

    fn show_pictures(&mut self) {
        if self.pictures.is_empty() {
            return;
        }
        let mut content = vec![json!({"type": "text", "text": "Pictures that the tools made:"})];
        content.append(&mut self.pictures);
        self.done.push(json!({"role": "user", "content": content}));
    }
}

fn text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::InputText { text }
        | Part::OutputText { text, .. }
        | Part::ReasoningText { text }
        | Part::SummaryText { text } => Some(text.as_str()),
        Part::Refusal { refusal } => Some(refusal.as_str()),
        Part::InputImage { .. } | Part::InputFile { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Converts a part to Chat Completions. Ids of uploaded files must be resolved before: only the
/// gateway knows them.
fn part(part: &Part) -> Result<Value, ProviderError> {
    Ok(match part {
        Part::InputImage {
            image_url: Some(url),
            detail,
            ..
        } => json!({"type": "image_url", "image_url": {"url": url, "detail": detail}}),
        Part::InputFile {
            filename,
            file_data: Some(data),
            ..
        } => json!({"type": "file", "file": {"filename": filename, "file_data": data}}),
        Part::InputImage { .. } | Part::InputFile { .. } => {
            return Err(ProviderError::Request {
                message: "a file is given by its id or address; the model needs its content".to_owned(),
            });
        }
        _ => json!({"type": "text", "text": text(std::slice::from_ref(part))}),
    })
}
