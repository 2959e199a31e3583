//! Programs of earlier responses, and their outputs.

use super::fields::{Fields, RequestFields as _};
use super::items::call_id;
use crate::wire::error::ApiError;
use crate::wire::item::ItemStatus;
use crate::wire::program::{Program, ProgramOutput};

/// Parses `program`.
pub(super) fn program(fields: &Fields<'_>, id: String) -> Result<Program, ApiError> {
    Ok(Program {
        id,
        call_id: call_id(fields)?,
        code: fields.required("code")?,
        fingerprint: fields.required("fingerprint")?,
        container: None,
    })
}

/// Parses `program_output`.
pub(super) fn output(fields: &Fields<'_>, id: String, status: ItemStatus) -> Result<ProgramOutput, ApiError> {
    Ok(ProgramOutput {
        id,
        call_id: call_id(fields)?,
        result: fields.required("result")?,
        status,
    })
}
