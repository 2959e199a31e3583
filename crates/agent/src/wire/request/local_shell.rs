//! Items of `local_shell` of earlier responses.

use super::fields::{Fields, RequestFields as _};
use super::items::call_id;
use crate::wire::error::ApiError;
use crate::wire::item::ItemStatus;
use crate::wire::local_shell::{LocalShellAction, LocalShellCall, LocalShellCallOutput};

/// Parses `local_shell_call` of an earlier response.
pub(super) fn call(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<LocalShellCall, ApiError> {
    let action = fields.object("action")?.ok_or_else(|| fields.missing("action"))?;
    let action: LocalShellAction = serde_json::from_value(action.into()).map_err(|error| {
        let path = fields.path("action");
        let message = format!("`{path}` is not a command: {error}");
        ApiError::invalid(path, "invalid_value", message)
    })?;
    Ok(LocalShellCall {
        id,
        status,
        call_id: call_id(fields)?,
        action,
    })
}

/// Parses `local_shell_call_output`. Its `id` is that of the call in OpenAI's API; other clients send
/// `call_id`.
pub(super) fn output(fields: &Fields<'_>) -> Result<LocalShellCallOutput, ApiError> {
    let called = match fields.get("call_id") {
        Some(_) => call_id(fields)?,
        None => fields.required("id")?,
    };
    Ok(LocalShellCallOutput {
        id: fields.text("id")?.unwrap_or_else(|| called.clone()),
        status: ItemStatus::Completed,
        call_id: called,
        output: fields.required("output")?,
    })
}
