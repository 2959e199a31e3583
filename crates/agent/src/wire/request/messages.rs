//! The messages of a chat completion, as instructions and items.

use std::collections::HashMap;

use serde_json::Value;

use super::fields::{Fields, wrong};
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
    let list = fields.list("messages")?;
    if list.is_empty() {
        return Err(fields.missing("messages"));
    }
    if list.len() > MAX_ITEMS {
        let message = format!(
            "`messages` has {} entries; at most {MAX_ITEMS} are allowed",
            list.len()
        );
        return Err(ApiError::invalid("messages", "array_above_max_length", message));
    }
    let mut reading = MessageParser {
        ids,
        instructions: Vec::new(),
        items: Vec::new(),
        calls: HashMap::new(),
    };
    for (index, value) in list.iter().enumerate() {
        reading.message(&Fields::of(value, format!("messages[{index}]"))?)?;
    }
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
                let path = fields.path("role");
                let message = format!(
                    "`{path}` is `function`, which is not supported: send calls in `tool_calls` and \
                     results with the role `tool`"
                );
                return Err(ApiError::invalid(path, "invalid_value", message));
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
                let path = fields.path(key);
                let message = format!("`{path}` is not supported: send `content` and `tool_calls`");
                return Err(ApiError::invalid(path, "unsupported_parameter", message));
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
        let calls = fields.list("tool_calls")?;
        match said {
            Some(text) => self.say(Role::Assistant, vec![Part::output_text(text)]),
            None if calls.is_empty() => self.say(Role::Assistant, vec![Part::output_text("")]),
            None => {}
        }
        for (index, value) in calls.iter().enumerate() {
            self.call(&Fields::of(
                value,
                format!("{}[{index}]", fields.path("tool_calls")),
            )?)?;
        }
        Ok(())
    }

    fn call(&mut self, fields: &Fields<'_>) -> Result<(), ApiError> {
        // Some clients omit the type of calls.
        if let Some(kind) = fields.text("type")?
            && kind != "function"
        {
            return Err(fields.unknown("type", &kind, "`function`"));
        }
        let function = fields
            .fields("function")?
            .ok_or_else(|| fields.missing("function"))?;
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
    let parts = match fields.get(key) {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(text.clone())),
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(wrong(fields.path(key), "a string or a list of parts", other)),
    };
    let path = fields.path(key);
    let text = |(index, value)| {
        let fields = Fields::of(value, format!("{path}[{index}]"))?;
        match fields.required("type")?.as_str() {
            "text" => fields.required("text"),
            "refusal" => fields.required("refusal"),
            other => Err(fields.unknown("type", other, "`text`")),
        }
    };
    let texts = parts
        .iter()
        .enumerate()
        .map(text)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Some(texts.join("\n")))
}

/// Parses the parts of a user's message.
fn parts(fields: &Fields<'_>, key: &str) -> Result<Vec<Part>, ApiError> {
    let path = fields.path(key);
    let part = |(index, value)| {
        let fields = Fields::of(value, format!("{path}[{index}]"))?;
        let inner = |key: &str| fields.fields(key)?.ok_or_else(|| fields.missing(key));
        Ok(match fields.required("type")?.as_str() {
            "text" => Part::InputText {
                text: fields.required("text")?,
            },
            "image_url" => {
                let image = inner("image_url")?;
                Part::InputImage {
                    image_url: Some(image.required("url")?),
                    file_id: None,
                    detail: image.text("detail")?.unwrap_or_else(|| "auto".to_owned()),
                }
            }
            "file" => {
                let file = inner("file")?;
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
    fields.list(key)?.iter().enumerate().map(part).collect()
}
