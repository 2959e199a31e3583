//! Approvals in a request: the rule of a server's tools, and the items.

use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use super::mcp::selection;
use crate::wire::approval::{ApprovalMode, ApprovalRule, McpApprovalRequest, McpApprovalResponse};
use crate::wire::error::ApiError;

/// Maximum number of characters of a request's id, and of a reason.
const MAX_ID: usize = 64;
const MAX_REASON: usize = 4000;

/// Parses `require_approval`. Without it, as in OpenAI's API, each call needs approval.
pub(super) fn rule(fields: &Fields<'_>) -> Result<ApprovalRule, ApiError> {
    const KEY: &str = "require_approval";
    match fields.get(KEY) {
        None => Ok(ApprovalRule::Mode(ApprovalMode::Always)),
        Some(Value::String(mode)) => match mode.as_str() {
            "always" => Ok(ApprovalRule::Mode(ApprovalMode::Always)),
            "never" => Ok(ApprovalRule::NEVER),
            other => Err(fields.unknown(KEY, other, "`always`, `never`, or an object with these keys")),
        },
        Some(Value::Object(_)) => {
            let tools = fields.required_fields(KEY)?;
            let (always, never) = (selection(&tools, "always")?, selection(&tools, "never")?);
            if always.is_none() && never.is_none() {
                let reason = "must have `always` or `never`, each with `tool_names`";
                return Err(fields.invalid(KEY, "invalid_value", reason));
            }
            Ok(ApprovalRule::Tools { always, never })
        }
        Some(_) => Err(fields.wrong(KEY, "a string or an object")),
    }
}

/// Parses `mcp_approval_request` of an earlier response.
pub(super) fn request(fields: &Fields<'_>) -> Result<McpApprovalRequest, ApiError> {
    Ok(McpApprovalRequest {
        id: short(fields, "id")?,
        server_label: fields.required("server_label")?,
        name: fields.required("name")?,
        arguments: fields.required("arguments")?,
    })
}

/// Parses `mcp_approval_response`.
pub(super) fn response(fields: &Fields<'_>, id: String) -> Result<McpApprovalResponse, ApiError> {
    let reason = fields.text("reason")?;
    if let Some(reason) = &reason
        && reason.chars().count() > MAX_REASON
    {
        let problem = format!("is too long: at most {MAX_REASON} characters are allowed");
        return Err(fields.invalid("reason", "string_above_max_length", &problem));
    }
    Ok(McpApprovalResponse {
        id,
        approval_request_id: short(fields, "approval_request_id")?,
        approve: fields.flag("approve")?.ok_or_else(|| fields.missing("approve"))?,
        reason,
    })
}

fn short(fields: &Fields<'_>, key: &str) -> Result<String, ApiError> {
    let id = fields.required(key)?;
    if id.is_empty() || id.chars().count() > MAX_ID {
        let reason = format!("must have 1 to {MAX_ID} characters");
        return Err(fields.invalid(key, "invalid_value", &reason));
    }
    Ok(id)
}
