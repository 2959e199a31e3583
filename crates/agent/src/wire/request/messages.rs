//! The messages of a chat completion, as instructions and items.

use std::collections::HashMap;

use serde_json::Value;

use super::fields::{Fields, RequestFields as _, joined};
use super::items::MAX_ITEMS;
use super::tools;
use crate::wire::content::Part;
use crate::wire::error::ApiError;
use crate::wire::id::Ids;
use crate::wire::item::{
    FunctionCall, FunctionCallOutput, FunctionOutput, Item, ItemStatus, Message, Reasoning, Role,
};

/// Parses `messages`. Leading messages of the application are the instructions.
pub(super) fn messages(fields: &Fields<'_>, ids: &mut Ids) -> Result<(Option<String>, Vec<Item>), ApiError> {
    let count = fields.list("messages")?.len();
    if count == 0 {
        return Err(fields.missing("messages"));
    }
    if count > MAX_ITEMS {
        let reason = format!("has {count} entries; at most {MAX_ITEMS} are allowed");
        return Err(fields.invalid("messages", "array_above_max_length", &reason));
    }
    let mut reading = MessageParser {
        ids,
        instructions: Vec::new(),
        items: Vec::new(),
        calls: HashMap::new(),
    };
    fields.each("messages", |message| reading.message(message))?;
    if let Some(id) = reading.unanswered() {
        let message = format!(
            "the tool call `{id}` has no result; send a message with the role `tool` and this \
             `tool_call_id` after it"
        );
        return Err(ApiError::invalid("messages", "missing_call_output", message));
    }
    let instructions = reading.instructions;
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    Ok((instructions, reading.items))
}

/// Messages while they are parsed.
struct MessageParser<'a> {
    ids: &'a mut Ids,
    instructions: Vec<String>,
    items: Vec<Item>,
    /// Each call, and whether its result was found.
    calls: HashMap<String, bool>,
}

impl MessageParser<'_> {
    fn message(&mut self, fields: &Fields<'_>) -> Result<(), ApiError> {
        match fields.required("role")?.as_str() {
            role @ ("system" | "developer") => {
                let text = texts(fields, "content")?.ok_or_else(|| fields.missing("content"))?;
                if self.items.is_empty() {
                    self.instructions.push(text);
                    return Ok(());
                }
                let role = if role == "system" {
                    Role::System
                } else {
                    Role::Developer
                };
                self.say(role, vec![Part::InputText { text }]);
            }
            "user" => {
                let content = match fields.get("content") {
                    None => return Err(fields.missing("content")),
                    Some(Value::String(text)) => vec![Part::InputText { text: text.clone() }],
                    Some(_) => parts(fields, "content")?,
                };
                self.say(Role::User, content);
            }
            "assistant" => self.assistant(fields)?,
            "tool" => self.result(fields)?,
            "function" => {
                let reason = "is `function`, which is not supported: send calls in `tool_calls` and \
                              results with the role `tool`";
                return Err(fields.invalid("role", "invalid_value", reason));
            }
            other => {
                let known = "`system`, `developer`, `user`, `assistant` or `tool`";
                return Err(fields.unknown("role", other, known));
            }
        }
        Ok(())
    }

    fn say(&mut self, role: Role, content: Vec<Part>) {
        self.items.push(Item::Message(Message {
            id: self.ids.mint("msg"),
            status: ItemStatus::Completed,
            role,
            content,
            phase: None,
        }));
    }

    fn assistant(&mut self, fields: &Fields<'_>) -> Result<(), ApiError> {
        for key in ["function_call", "audio"] {
            if fields.get(key).is_some() {
                let reason = "is not supported: send `content` and `tool_calls`";
                return Err(fields.invalid(key, "unsupported_parameter", reason));
            }
        }
        // The field in which our responses contain it.
        if let Some(text) = fields.text("reasoning_content")?.filter(|text| !text.is_empty()) {
            self.items.push(Item::Reasoning(Reasoning {
                id: self.ids.mint("rs"),
                status: ItemStatus::Completed,
                summary: Vec::new(),
                content: Some(vec![Part::ReasoningText { text }]),
                encrypted_content: None,
            }));
        }
        let said = texts(fields, "content")?.filter(|text| !text.is_empty());
        let said = said.or(fields.text("refusal")?);
        let has_calls = !fields.list("tool_calls")?.is_empty();
        match said {
            Some(text) => self.say(Role::Assistant, vec![Part::output_text(text)]),
            None if !has_calls => self.say(Role::Assistant, vec![Part::output_text("")]),
            None => {}
        }
        fields.each("tool_calls", |call| self.call(call))?;
        Ok(())
    }

    fn call(&mut self, fields: &Fields<'_>) -> Result<(), ApiError> {
        // Some clients omit the type of calls.
        if let Some(kind) = fields.text("type")?
            && kind != "function"
        {
            return Err(fields.unknown("type", &kind, "`function`"));
        }
        let function = fields.required_fields("function")?;
        let call_id = fields.required("id")?;
        self.calls.insert(call_id.clone(), false);
        self.items.push(Item::FunctionCall(FunctionCall {
            id: self.ids.mint("fc"),
            status: ItemStatus::Completed,
            call_id,
            name: tools::name(&function, "name")?,
            namespace: None,
            arguments: function.required("arguments")?,
            caller: None,
        }));
        Ok(())
    }

    fn result(&mut self, fields: &Fields<'_>) -> Result<(), ApiError> {
        let call_id = fields.required("tool_call_id")?;
        let Some(answered) = self.calls.get_mut(&call_id) else {
            let path = fields.path("tool_call_id");
            let message = format!(
                "there is no tool call `{call_id}` before `{path}`; send the assistant's message with its \
                 `tool_calls` too"
            );
            return Err(ApiError::invalid(path, "unknown_call_id", message));
        };
        *answered = true;
        let text = texts(fields, "content")?.ok_or_else(|| fields.missing("content"))?;
        self.items.push(Item::FunctionCallOutput(FunctionCallOutput {
            caller: None,
            id: self.ids.mint("fco"),
            status: ItemStatus::Completed,
            call_id,
            output: FunctionOutput::Text(text),
        }));
        Ok(())
    }

    /// Returns the first call without a result.
    fn unanswered(&self) -> Option<&str> {
        self.items.iter().find_map(|item| match item {
            Item::FunctionCall(call) if self.calls.get(&call.call_id) == Some(&false) => {
                Some(call.call_id.as_str())
            }
            _ => None,
        })
    }
}

/// Parses a text, or the texts of parts.
fn texts(fields: &Fields<'_>, key: &str) -> Result<Option<String>, ApiError> {
    let expected = "a string or an array of parts";
    joined(fields, key, expected, "\n", |part| {
        match part.required("type")?.as_str() {
            kind @ ("text" | "refusal") => part.required(kind),
            other => Err(part.unknown("type", other, "`text`")),
        }
    })
}

/// Parses the parts of a user's message.
fn parts(fields: &Fields<'_>, key: &str) -> Result<Vec<Part>, ApiError> {
    let part = |fields: &Fields<'_>| {
        Ok(match fields.required("type")?.as_str() {
            "text" => Part::InputText {
                text: fields.required("text")?,
            },
            "image_url" => {
                let image = fields.required_fields("image_url")?;
                Part::InputImage {
                    image_url: Some(image.required("url")?),
                    file_id: None,
                    detail: image.text("detail")?.unwrap_or_else(|| "auto".to_owned()),
                }
            }
            "file" => {
                let file = fields.required_fields("file")?;
                let (file_data, file_id) = (file.text("file_data")?, file.text("file_id")?);
                if file_data.is_none() && file_id.is_none() {
                    return Err(file.missing("file_id"));
                }
                Part::InputFile {
                    filename: file.text("filename")?,
                    file_data,
                    file_id,
                    file_url: None,
                }
            }
            other => return Err(fields.unknown("type", other, "`text`, `image_url` or `file`")),
        })
    };
    fields.each(key, part)
}
