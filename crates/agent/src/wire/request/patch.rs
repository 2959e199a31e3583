//! The tool `apply_patch` in a request, and its items of earlier responses.

use super::fields::{Fields, RequestFields as _};
use super::items::call_id;
use crate::wire::error::ApiError;
use crate::wire::item::ItemStatus;
use crate::wire::patch::{PatchCall, PatchCallOutput, PatchOperation};

/// Parses `apply_patch_call` of an earlier response.
pub(super) fn call(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<PatchCall, ApiError> {
    let operation = fields.required_fields("operation")?;
    let path = operation.required("path")?;
    let operation = match operation.required("type")?.as_str() {
        "create_file" => PatchOperation::CreateFile {
            path,
            diff: operation.required("diff")?,
        },
        "update_file" => PatchOperation::UpdateFile {
            path,
            diff: operation.required("diff")?,
        },
        "delete_file" => PatchOperation::DeleteFile { path },
        other => {
            let known = "`create_file`, `update_file` or `delete_file`";
            return Err(operation.unknown("type", other, known));
        }
    };
    Ok(PatchCall {
        id,
        status,
        call_id: call_id(fields)?,
        operation,
    })
}

/// Parses `apply_patch_call_output`.
pub(super) fn output(fields: &Fields<'_>, id: String) -> Result<PatchCallOutput, ApiError> {
    Ok(PatchCallOutput {
        id,
        status: match fields.required("status")?.as_str() {
            "completed" => ItemStatus::Completed,
            "failed" => ItemStatus::Failed,
            other => return Err(fields.unknown("status", other, "`completed` or `failed`")),
        },
        call_id: call_id(fields)?,
        output: fields.text("output")?,
    })
}
