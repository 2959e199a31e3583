//! Items of a request, including those of earlier responses.

use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use crate::wire::content::{Annotation, Part};
use crate::wire::error::ApiError;
use crate::wire::id::Ids;
use crate::wire::item::{
    CodeInterpreterCall, Compaction, FunctionCall, FunctionCallOutput, FunctionOutput, InterpreterOutput,
    Item, ItemReference, ItemStatus, Message, Reasoning, Role, ToolCaller,
};

/// Maximum number of items in a request.
pub(super) const MAX_ITEMS: usize = 10_000;

const KINDS: &str = "`message`, `function_call`, `function_call_output`, `reasoning`, \
                     `code_interpreter_call`, `shell_call`, `shell_call_output`, `apply_patch_call`, \
                     `apply_patch_call_output`, `custom_tool_call`, `custom_tool_call_output`, \
                     `local_shell_call`, `local_shell_call_output`, `program`, `program_output`, \
                     `tool_search_call`, `tool_search_output`, `mcp_list_tools`, `mcp_call`, \
                     `mcp_approval_request`, `mcp_approval_response`, \
                     `compaction` or `item_reference`";
const PARTS: &str = "`input_text`, `input_image`, `input_file`, `output_text` or `refusal`";

/// Parses a list of at most `most` items.
pub(super) fn list(
    fields: &Fields<'_>,
    key: &str,
    most: usize,
    ids: &mut Ids,
) -> Result<Vec<Item>, ApiError> {
    bounded(fields, key, most)?;
    fields.each(key, |fields| item(fields, ids))
}

/// Rejects a list of more than `most` items.
pub(super) fn bounded(fields: &Fields<'_>, key: &str, most: usize) -> Result<(), ApiError> {
    let count = fields.list(key)?.len();
    if count > most {
        let message = format!("`{key}` has {count} items; at most {most} are allowed");
        return Err(ApiError::invalid(key, "array_above_max_length", message));
    }
    Ok(())
}

/// Parses an item.
pub(super) fn item(fields: &Fields<'_>, ids: &mut Ids) -> Result<Item, ApiError> {
    let kind = fields.text("type")?;
    // SDKs omit the type of messages.
    let kind = match kind.as_deref() {
        Some(kind) => kind,
        None if fields.get("role").is_some() => "message",
        None if fields.get("id").is_some() => "item_reference",
        None => return Err(fields.missing("type")),
    };
    let mut id = |prefix| Ok::<_, ApiError>(fields.text("id")?.unwrap_or_else(|| ids.mint(prefix)));
    Ok(match kind {
        "message" => {
            let role = role(fields)?;
            Item::Message(Message {
                id: id("msg")?,
                status: status(fields)?,
                role,
                content: content(fields, "content", role)?.ok_or_else(|| fields.missing("content"))?,
                phase: fields.text("phase")?,
            })
        }
        "function_call" => Item::FunctionCall(FunctionCall {
            id: id("fc")?,
            status: status(fields)?,
            call_id: call_id(fields)?,
            name: super::tools::name(fields, "name")?,
            namespace: super::tools::namespace(fields)?,
            arguments: fields.required("arguments")?,
            caller: caller(fields)?,
        }),
        "function_call_output" => Item::FunctionCallOutput(FunctionCallOutput {
            id: id("fco")?,
            status: status(fields)?,
            call_id: call_id(fields)?,
            output: result(fields)?,
            caller: caller(fields)?,
        }),
        "reasoning" => Item::Reasoning(Reasoning {
            id: id("rs")?,
            status: status(fields)?,
            summary: thoughts(fields, "summary")?.unwrap_or_default(),
            content: thoughts(fields, "content")?,
            encrypted_content: fields.text("encrypted_content")?,
        }),
        "code_interpreter_call" => Item::CodeInterpreterCall(CodeInterpreterCall {
            id: id("ci")?,
            status: status(fields)?,
            container_id: fields.required("container_id")?,
            code: fields.text("code")?,
            outputs: outputs(fields)?,
            report: None,
        }),
        "shell_call" => Item::ShellCall(super::shell::call(fields, id("sh")?, status(fields)?)?),
        "shell_call_output" => Item::ShellCallOutput(super::shell::output(fields, id("sho")?)?),
        "apply_patch_call" => Item::ApplyPatchCall(super::patch::call(fields, id("ap")?, status(fields)?)?),
        "apply_patch_call_output" => Item::ApplyPatchCallOutput(super::patch::output(fields, id("apo")?)?),
        "local_shell_call" => {
            Item::LocalShellCall(super::local_shell::call(fields, id("lsh")?, status(fields)?)?)
        }
        "local_shell_call_output" => Item::LocalShellCallOutput(super::local_shell::output(fields)?),
        "custom_tool_call" => Item::CustomToolCall(super::custom::call(fields, id("ctc")?, status(fields)?)?),
        "custom_tool_call_output" => {
            Item::CustomToolCallOutput(super::custom::output(fields, id("ctco")?, status(fields)?)?)
        }
        "program" => Item::Program(super::program::program(fields, id("prog")?)?),
        "program_output" => Item::ProgramOutput(super::program::output(fields, id("po")?, status(fields)?)?),
        "tool_search_call" => Item::ToolSearchCall(super::search::call(fields, id("tsc")?, status(fields)?)?),
        "tool_search_output" => {
            Item::ToolSearchOutput(super::search::output(fields, id("tso")?, status(fields)?)?)
        }
        "mcp_list_tools" => Item::McpListTools(super::mcp::list(fields, id("mcpl")?)?),
        "mcp_call" => Item::McpCall(super::mcp::call(fields, id("mcp")?, status(fields)?)?),
        "mcp_approval_request" => Item::McpApprovalRequest(super::approval::request(fields)?),
        "mcp_approval_response" => Item::McpApprovalResponse(super::approval::response(fields, id("mcpa")?)?),
        "compaction" | "compaction_summary" => Item::Compaction(Compaction {
            id: id("cmp")?,
            encrypted_content: fields.required("encrypted_content")?,
        }),
        "item_reference" => Item::ItemReference(ItemReference {
            id: fields.required("id")?,
        }),
        other => {
            let known = super::unsupported::item(fields, other);
            return Err(known.unwrap_or_else(|| fields.unknown("type", other, KINDS)));
        }
    })
}

/// Parses the result of a tool of the client: text, or parts.
pub(super) fn result(fields: &Fields<'_>) -> Result<FunctionOutput, ApiError> {
    if let Some(Value::String(text)) = fields.get("output") {
        return Ok(FunctionOutput::Text(text.clone()));
    }
    let parts = content(fields, "output", Role::User)?;
    parts
        .map(FunctionOutput::Parts)
        .ok_or_else(|| fields.missing("output"))
}

fn role(fields: &Fields<'_>) -> Result<Role, ApiError> {
    Ok(match fields.required("role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "developer" => Role::Developer,
        other => return Err(fields.unknown("role", other, "`user`, `assistant`, `system` or `developer`")),
    })
}

fn status(fields: &Fields<'_>) -> Result<ItemStatus, ApiError> {
    Ok(match fields.text("status")?.as_deref() {
        None | Some("completed") => ItemStatus::Completed,
        Some("in_progress") => ItemStatus::InProgress,
        Some("interpreting") => ItemStatus::Interpreting,
        Some("incomplete") => ItemStatus::Incomplete,
        Some("calling") => ItemStatus::Calling,
        Some("failed") => ItemStatus::Failed,
        Some(other) => {
            return Err(fields.unknown("status", other, "`in_progress`, `completed` or `incomplete`"));
        }
    })
}

fn caller(fields: &Fields<'_>) -> Result<Option<ToolCaller>, ApiError> {
    let Some(caller) = fields.fields("caller")? else {
        return Ok(None);
    };
    match caller.required("type")?.as_str() {
        "direct" => Ok(None),
        "program" => Ok(Some(ToolCaller::Program {
            caller_id: caller.required("caller_id")?,
        })),
        other => Err(caller.unknown("type", other, "`direct` or `program`")),
    }
}

pub(super) fn call_id(fields: &Fields<'_>) -> Result<String, ApiError> {
    let id = fields.required("call_id")?;
    if id.is_empty() || id.chars().count() > 64 {
        return Err(fields.invalid("call_id", "invalid_value", "must have 1 to 64 characters"));
    }
    Ok(id)
}

fn content(fields: &Fields<'_>, key: &str, role: Role) -> Result<Option<Vec<Part>>, ApiError> {
    match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if role == Role::Assistant => Ok(Some(vec![Part::output_text(text)])),
        Some(Value::String(text)) => Ok(Some(vec![Part::InputText { text: text.clone() }])),
        Some(_) => fields.each(key, part).map(Some),
    }
}

fn part(fields: &Fields<'_>) -> Result<Part, ApiError> {
    Ok(match fields.required("type")?.as_str() {
        "input_text" | "text" => Part::InputText {
            text: fields.required("text")?,
        },
        "input_image" => {
            let (image_url, file_id) = (fields.text("image_url")?, fields.text("file_id")?);
            if image_url.is_none() && file_id.is_none() {
                return Err(fields.missing("image_url"));
            }
            let detail = fields.text("detail")?.unwrap_or_else(|| "auto".to_owned());
            Part::InputImage {
                image_url,
                file_id,
                detail,
            }
        }
        "input_file" => {
            let (file_data, file_id, file_url) = (
                fields.text("file_data")?,
                fields.text("file_id")?,
                fields.text("file_url")?,
            );
            if file_data.is_none() && file_id.is_none() && file_url.is_none() {
                return Err(fields.missing("file_id"));
            }
            let filename = fields.text("filename")?;
            Part::InputFile {
                filename,
                file_data,
                file_id,
                file_url,
            }
        }
        "output_text" => Part::OutputText {
            text: fields.required("text")?,
            annotations: annotations(fields)?,
            logprobs: Vec::new(),
        },
        "refusal" => Part::Refusal {
            refusal: fields.required("refusal")?,
        },
        other => return Err(fields.unknown("type", other, PARTS)),
    })
}

/// Parses annotations of a text that a client sends back; only complete citations are recognized as
/// ours.
fn annotations(fields: &Fields<'_>) -> Result<Vec<Annotation>, ApiError> {
    let list = fields.list("annotations")?.iter();
    let read = |value: &Value| {
        serde_json::from_value(value.clone()).unwrap_or_else(|_| Annotation::Other(value.clone()))
    };
    Ok(list.map(read).collect())
}

fn thoughts(fields: &Fields<'_>, key: &str) -> Result<Option<Vec<Part>>, ApiError> {
    let thought = |fields: &Fields<'_>| {
        let text = fields.required("text")?;
        match fields.required("type")?.as_str() {
            "summary_text" => Ok(Part::SummaryText { text }),
            "reasoning_text" => Ok(Part::ReasoningText { text }),
            other => Err(fields.unknown("type", other, "`summary_text` or `reasoning_text`")),
        }
    };
    let thoughts = fields.get(key).map(|_| fields.each(key, thought));
    thoughts.transpose()
}

fn outputs(fields: &Fields<'_>) -> Result<Option<Vec<InterpreterOutput>>, ApiError> {
    let output = |fields: &Fields<'_>| match fields.required("type")?.as_str() {
        "logs" => fields
            .required("logs")
            .map(|logs| InterpreterOutput::Logs { logs }),
        "image" => fields.required("url").map(|url| InterpreterOutput::Image { url }),
        other => Err(fields.unknown("type", other, "`logs` or `image`")),
    };
    let outputs = fields.get("outputs").map(|_| fields.each("outputs", output));
    outputs.transpose()
}
