//! The messages of a request, block by block, as items.

use std::collections::HashMap;

use serde_json::Value;

use super::super::fields::{Fields, RequestFields as _, joined};
use super::super::items::MAX_ITEMS;
use super::super::tools::name;
use super::results;
use crate::wire::content::Part;
use crate::wire::error::ApiError;
use crate::wire::id::Ids;
use crate::wire::item::{
    FunctionCall, FunctionCallOutput, FunctionOutput, Item, ItemStatus, Message, Reasoning, Role, ToolCaller,
};

const OF_USER: &str = "`text`, `image`, `document`, `search_result`, `tool_result` or `container_upload`";
const OF_MODEL: &str =
    "`text`, `thinking`, `redacted_thinking`, `tool_use`, `server_tool_use` or the result of code execution";
const BLOCKS: &str = "a string or an array of blocks";
const SOURCES: &str = "`base64`, `text`, `content` or `file`";

/// Parses `messages`.
pub(super) fn messages(
    fields: &Fields<'_>,
    ids: &mut Ids,
    container: Option<&str>,
    code: bool,
) -> Result<Vec<Item>, ApiError> {
    if fields.list("messages")?.is_empty() {
        return Err(fields.missing("messages"));
    }
    let mut reading = BlockParser {
        ids,
        container: container.unwrap_or_default(),
        code,
        items: Vec::new(),
        parts: Vec::new(),
        calls: HashMap::new(),
    };
    fields.each("messages", |message| {
        reading.message(message)?;
        if reading.items.len() > MAX_ITEMS {
            let message = format!("`messages` has more than {MAX_ITEMS} blocks; send fewer");
            return Err(ApiError::invalid("messages", "array_above_max_length", message));
        }
        Ok(())
    })?;
    let unanswered = reading.items.iter().find_map(|item| match item {
        Item::FunctionCall(call) if reading.calls.get(&call.call_id) == Some(&false) => Some(&call.call_id),
        _ => None,
    });
    if let Some(id) = unanswered {
        let message = format!(
            "the `tool_use` `{id}` has no result; send a `tool_result` block with this `tool_use_id` in \
             the next user message"
        );
        return Err(ApiError::invalid("messages", "missing_call_output", message));
    }
    Ok(reading.items)
}

/// Messages while they are parsed.
struct BlockParser<'a> {
    ids: &'a mut Ids,
    container: &'a str,
    /// Whether there is code execution, which files are uploaded for.
    code: bool,
    items: Vec<Item>,
    /// Parts of a message so far.
    parts: Vec<Part>,
    /// Each call of the client's tools, and whether its result was found.
    calls: HashMap<String, bool>,
}

impl BlockParser<'_> {
    fn message(&mut self, fields: &Fields<'_>) -> Result<(), ApiError> {
        let role = match fields.required("role")?.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => return Err(fields.unknown("role", other, "`user`, `assistant` or `system`")),
        };
        let of_model = role == Role::Assistant;
        match fields.get("content") {
            None => return Err(fields.missing("content")),
            Some(Value::String(text)) => self.parts.push(said(text.clone(), of_model)),
            Some(Value::Array(_)) => {
                fields.each("content", |block| {
                    if of_model {
                        self.of_model(block)
                    } else {
                        self.of_user(block, role)
                    }
                })?;
            }
            Some(_) => return Err(fields.wrong("content", BLOCKS)),
        }
        self.flush(role);
        Ok(())
    }

    /// Ends a message, if it has parts.
    fn flush(&mut self, role: Role) {
        let content = std::mem::take(&mut self.parts);
        if content.is_empty() {
            return;
        }
        self.items.push(Item::Message(Message {
            id: self.ids.mint("msg"),
            status: ItemStatus::Completed,
            role,
            content,
            phase: None,
        }));
    }

    fn of_user(&mut self, block: &Fields<'_>, role: Role) -> Result<(), ApiError> {
        match block.required("type")?.as_str() {
            "tool_result" => {
                self.flush(role);
                self.result(block)
            }
            "container_upload" if !self.code => {
                let path = block.path("type");
                let message = format!(
                    "`{path}`: there is no container; add the tool `code_execution_20260120` to `tools`"
                );
                Err(ApiError::invalid(path, "invalid_value", message))
            }
            "container_upload" => {
                let file = file(Some(block.required("file_id")?), None, None);
                self.parts.push(file);
                Ok(())
            }
            _ => {
                self.parts.extend(shown(block, OF_USER)?);
                Ok(())
            }
        }
    }

    fn of_model(&mut self, block: &Fields<'_>) -> Result<(), ApiError> {
        let kind = block.required("type")?;
        if kind == "text" {
            let text = block.required("text")?;
            self.parts.push(said(text, true));
            return Ok(());
        }
        self.flush(Role::Assistant);
        match kind.as_str() {
            "thinking" => self.thinking(block),
            // Only its own provider could read it.
            "redacted_thinking" => Ok(()),
            "tool_use" => self.call(block),
            "server_tool_use" => {
                self.items.push(results::call(block, self.container)?);
                Ok(())
            }
            _ if results::is_result(&kind) => results::add(block, &kind, &mut self.items),
            other => Err(block.unknown("type", other, OF_MODEL)),
        }
    }

    fn thinking(&mut self, block: &Fields<'_>) -> Result<(), ApiError> {
        let text = block.text("thinking")?.filter(|text| !text.is_empty());
        let signature = block.text("signature")?.filter(|text| !text.is_empty());
        if text.is_none() && signature.is_none() {
            return Ok(());
        }
        self.items.push(Item::Reasoning(Reasoning {
            id: self.ids.mint("rs"),
            status: ItemStatus::Completed,
            summary: Vec::new(),
            content: text.map(|text| vec![Part::ReasoningText { text }]),
            encrypted_content: signature,
        }));
        Ok(())
    }

    fn call(&mut self, block: &Fields<'_>) -> Result<(), ApiError> {
        let call_id = block.required("id")?;
        let caller = match block.fields("caller")? {
            Some(caller) if caller.required("type")? != "direct" => Some(ToolCaller::Program {
                caller_id: results::code_id(&caller.required("tool_id")?),
            }),
            _ => None,
        };
        self.calls.insert(call_id.clone(), false);
        self.items.push(Item::FunctionCall(FunctionCall {
            id: self.ids.mint("fc"),
            status: ItemStatus::Completed,
            call_id,
            name: name(block, "name")?,
            namespace: None,
            arguments: results::input(block)?,
            caller,
        }));
        Ok(())
    }

    fn result(&mut self, block: &Fields<'_>) -> Result<(), ApiError> {
        let call_id = block.required("tool_use_id")?;
        let path = block.path("tool_use_id");
        let Some(answered) = self.calls.get_mut(&call_id) else {
            let message = format!(
                "there is no `tool_use` `{call_id}` before `{path}`; send the assistant's message with it too"
            );
            return Err(ApiError::invalid(path, "unknown_call_id", message));
        };
        if std::mem::replace(answered, true) {
            let message = format!("the `tool_use` `{call_id}` has two results; send one");
            return Err(ApiError::invalid(path, "duplicate_call_output", message));
        }
        let mut parts = match block.get("content") {
            None => Vec::new(),
            Some(Value::String(text)) => vec![said(text.clone(), false)],
            Some(_) => content(block, "content")?,
        };
        if block.flag("is_error")?.unwrap_or(false) {
            parts.insert(0, said("(the tool failed)".to_owned(), false));
        }
        let text = match &parts[..] {
            [] => Some(String::new()),
            [Part::InputText { text }] => Some(text.clone()),
            _ => None,
        };
        self.items.push(Item::FunctionCallOutput(FunctionCallOutput {
            caller: None,
            id: self.ids.mint("fco"),
            status: ItemStatus::Completed,
            call_id,
            output: text.map_or(FunctionOutput::Parts(parts), FunctionOutput::Text),
        }));
        Ok(())
    }
}

fn said(text: String, of_model: bool) -> Part {
    if of_model {
        Part::output_text(text)
    } else {
        Part::InputText { text }
    }
}

fn file(file_id: Option<String>, filename: Option<String>, file_data: Option<String>) -> Part {
    Part::InputFile {
        filename,
        file_data,
        file_id,
        file_url: None,
    }
}

/// Parses blocks for the model.
fn content(fields: &Fields<'_>, key: &str) -> Result<Vec<Part>, ApiError> {
    let known = "`text`, `image`, `document` or `search_result`";
    let parts = fields.each(key, |block| shown(block, known))?;
    Ok(parts.into_iter().flatten().collect())
}

/// Parses a block for the model.
fn shown(block: &Fields<'_>, known: &str) -> Result<Vec<Part>, ApiError> {
    Ok(match block.required("type")?.as_str() {
        "text" => vec![said(block.required("text")?, false)],
        "image" => vec![image(&block.required_fields("source")?)?],
        "document" => document(block, &block.required_fields("source")?)?,
        "search_result" => {
            let (title, source) = (block.required("title")?, block.required("source")?);
            let mut parts = vec![said(format!("[{title}] {source}"), false)];
            parts.extend(content(block, "content")?);
            parts
        }
        other => return Err(block.unknown("type", other, known)),
    })
}

fn data_url(source: &Fields<'_>) -> Result<String, ApiError> {
    let (kind, data) = (source.required("media_type")?, source.required("data")?);
    Ok(format!("data:{kind};base64,{data}"))
}

fn image(source: &Fields<'_>) -> Result<Part, ApiError> {
    let (image_url, file_id) = match source.required("type")?.as_str() {
        "base64" => (Some(data_url(source)?), None),
        "url" => (Some(source.required("url")?), None),
        "file" => (None, Some(source.required("file_id")?)),
        other => return Err(source.unknown("type", other, "`base64`, `url` or `file`")),
    };
    Ok(Part::InputImage {
        image_url,
        file_id,
        detail: "auto".to_owned(),
    })
}

fn document(block: &Fields<'_>, source: &Fields<'_>) -> Result<Vec<Part>, ApiError> {
    let title = block.text("title")?;
    let titled = |text: String| {
        let text = match &title {
            Some(title) => format!("{title}:\n\n{text}"),
            None => text,
        };
        said(text, false)
    };
    Ok(match source.required("type")?.as_str() {
        "text" => vec![titled(source.required("data")?)],
        "content" => match source.get("content") {
            Some(Value::String(text)) => vec![titled(text.clone())],
            _ => content(source, "content")?,
        },
        "base64" => {
            let name = title.clone().unwrap_or_else(|| "document.pdf".to_owned());
            vec![file(None, Some(name), Some(data_url(source)?))]
        }
        "file" => vec![file(Some(source.required("file_id")?), None, None)],
        "url" => {
            let path = source.path("url");
            let message = format!("`{path}`: files are not fetched from elsewhere; upload it to `/v1/files`");
            return Err(ApiError::invalid(path, "invalid_value", message));
        }
        other => return Err(source.unknown("type", other, SOURCES)),
    })
}

/// Parses a text, or the texts of blocks.
pub(super) fn texts(fields: &Fields<'_>, key: &str) -> Result<Option<String>, ApiError> {
    joined(fields, key, BLOCKS, "\n\n", |block| {
        match block.required("type")?.as_str() {
            "text" => block.required("text"),
            other => Err(block.unknown("type", other, "`text`")),
        }
    })
}
