//! Tool servers in a request, and their items of earlier responses.

use cellblock_settings::json::STRING;
use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use crate::wire::error::ApiError;
use crate::wire::item::{ItemStatus, ListedTool, McpCall, McpError, McpListTools};
use crate::wire::tool::{AllowedTools, INTERPRETER, McpTool, Secrets};

/// Maximum number of headers for a server in a request, and their size in bytes.
const MAX_HEADERS: usize = 32;
const MAX_HEADER: usize = 8 << 10;

/// Parses `{"type": "mcp"}`.
pub(super) fn tool(fields: &Fields<'_>) -> Result<McpTool, ApiError> {
    for (key, instead) in [
        ("connector_id", "there are no connectors here; send `server_url`"),
        ("tunnel_id", "there are no tunnels here; send `server_url`"),
    ] {
        if fields.get(key).is_some() {
            let reason = format!("is not supported: {instead}");
            return Err(fields.invalid(key, "unsupported_parameter", &reason));
        }
    }
    let server_label = super::tools::name(fields, "server_label")?;
    // Approvals of code have this label.
    if server_label == INTERPRETER {
        let reason = format!("is `{INTERPRETER}`, which names the code of this server; choose another label");
        return Err(fields.invalid("server_label", "invalid_value", &reason));
    }
    Ok(McpTool {
        server_label,
        server_url: fields.text("server_url")?,
        server_description: fields.text("server_description")?,
        allowed_tools: selection(fields, "allowed_tools")?,
        allowed_callers: super::tools::callers(fields)?,
        defer_loading: fields.flag("defer_loading")?.unwrap_or(false),
        require_approval: super::approval::rule(fields)?,
        headers: Secrets(headers(fields)?),
    })
}

/// Parses a selection of tools.
pub(super) fn selection(fields: &Fields<'_>, key: &'static str) -> Result<Option<AllowedTools>, ApiError> {
    match fields.get(key) {
        None => Ok(None),
        Some(Value::Array(_)) => Ok(Some(AllowedTools::Names(fields.texts(key)?))),
        Some(value @ Value::Object(_)) => {
            let filter = Fields::of(value, fields.path(key))?;
            let tool_names = filter.get("tool_names").map(|_| filter.texts("tool_names"));
            let tool_names = tool_names.transpose()?;
            let read_only = filter.flag("read_only")?;
            Ok(Some(AllowedTools::Filter {
                tool_names,
                read_only,
            }))
        }
        Some(_) => Err(fields.wrong(key, "an array or an object")),
    }
}

/// Parses `headers`, and `authorization` as a bearer token.
fn headers(fields: &Fields<'_>) -> Result<Vec<(String, String)>, ApiError> {
    let mut headers = Vec::new();
    if let Some(sent) = fields.fields("headers")? {
        for (name, value) in sent.entries() {
            let value = value.as_str().ok_or_else(|| sent.wrong(name, STRING))?;
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    if let Some(token) = fields.text("authorization")? {
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    if headers.len() > MAX_HEADERS {
        let reason = format!("has {} entries; at most {MAX_HEADERS} are allowed", headers.len());
        return Err(fields.invalid("headers", "invalid_value", &reason));
    }
    for (name, value) in &headers {
        // Values are not repeated: they may be secrets.
        if http::HeaderName::try_from(name.as_str()).is_err()
            || http::HeaderValue::try_from(value.as_str()).is_err()
            || value.len() > MAX_HEADER
        {
            let path = fields.path("headers");
            let message =
                format!("`{path}.{name}` is not a valid header, or has more than {MAX_HEADER} bytes");
            return Err(ApiError::invalid(path, "invalid_value", message));
        }
    }
    Ok(headers)
}

/// Parses `mcp_list_tools` of an earlier response.
pub(super) fn list(fields: &Fields<'_>, id: String) -> Result<McpListTools, ApiError> {
    let tool = |fields: &Fields<'_>| {
        Ok(ListedTool {
            name: fields.required("name")?,
            description: fields.text("description")?,
            input_schema: fields.get("input_schema").cloned().unwrap_or_default(),
            annotations: fields.get("annotations").cloned(),
        })
    };
    Ok(McpListTools {
        id,
        server_label: fields.required("server_label")?,
        tools: fields.each("tools", tool)?,
        error: fields.get("error").map(said),
    })
}

/// Parses `mcp_call` of an earlier response.
pub(super) fn call(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<McpCall, ApiError> {
    Ok(McpCall {
        id,
        status,
        server_label: fields.required("server_label")?,
        name: fields.required("name")?,
        arguments: fields.required("arguments")?,
        output: fields.text("output")?,
        error: fields.get("error").map(|error| {
            serde_json::from_value(error.clone()).unwrap_or_else(|_| McpError::protocol(said(error)))
        }),
        approval_request_id: fields.text("approval_request_id")?,
        report: None,
    })
}

/// Parses an error message, in every form that clients send.
fn said(error: &Value) -> String {
    match error {
        Value::String(text) => text.clone(),
        other => match other.get("message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => other.to_string(),
        },
    }
}
