//! Tools that take one text in a request, choices of them, and their items of earlier responses.

use super::fields::{Fields, RequestFields as _};
use super::items::{call_id, result};
use super::namespace::chosen_among;
use super::tools::{name, namespace};
use crate::wire::custom::{CustomCall, CustomCallOutput, CustomFormat, CustomTool, GrammarSyntax};
use crate::wire::error::ApiError;
use crate::wire::item::ItemStatus;
use crate::wire::tool::{Tool, ToolName};

/// Parses `{"type": "custom"}`.
pub(super) fn tool(fields: &Fields<'_>) -> Result<CustomTool, ApiError> {
    super::unsupported::asynchronous(fields)?;
    Ok(CustomTool {
        name: name(fields, "name")?,
        description: fields.text("description")?,
        format: match fields.fields("format")? {
            None => CustomFormat::Text,
            Some(format) => self::format(&format)?,
        },
        allowed_callers: super::shell::direct(fields)?,
        defer_loading: fields.flag("defer_loading")?.unwrap_or(false),
    })
}

fn format(fields: &Fields<'_>) -> Result<CustomFormat, ApiError> {
    match fields.required("type")?.as_str() {
        "text" => Ok(CustomFormat::Text),
        "grammar" => Ok(CustomFormat::Grammar {
            syntax: match fields.required("syntax")?.as_str() {
                "lark" => GrammarSyntax::Lark,
                "regex" => GrammarSyntax::Regex,
                other => return Err(fields.unknown("syntax", other, "`lark` or `regex`")),
            },
            definition: fields.required("definition")?,
        }),
        other => Err(fields.unknown("type", other, "`text` or `grammar`")),
    }
}

/// Parses which tool a choice names.
pub(super) fn chosen(fields: &Fields<'_>, tools: &[Tool]) -> Result<ToolName, ApiError> {
    let customs = tools.iter().flat_map(Tool::customs);
    let customs = customs.map(|(within, custom)| (within, custom.name.as_str()));
    let (name, namespace) = chosen_among(fields, "custom tool", customs)?;
    Ok(ToolName::Custom { name, namespace })
}

/// Parses `custom_tool_call` of an earlier response.
pub(super) fn call(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<CustomCall, ApiError> {
    Ok(CustomCall {
        id,
        status,
        call_id: call_id(fields)?,
        name: name(fields, "name")?,
        namespace: namespace(fields)?,
        input: fields.required("input")?,
    })
}

/// Parses `custom_tool_call_output`.
pub(super) fn output(
    fields: &Fields<'_>,
    id: String,
    status: ItemStatus,
) -> Result<CustomCallOutput, ApiError> {
    Ok(CustomCallOutput {
        id,
        status,
        call_id: call_id(fields)?,
        output: result(fields)?,
    })
}
