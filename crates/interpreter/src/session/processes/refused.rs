//! Refusals of a guest, as errors about a process.

use super::ProcessError;
use crate::error::{Effect, Error};

/// Returns the meaning of a guest's refusal for a process.
pub(super) fn refused(id: &str, error: cellblock_sandbox::Error) -> Error {
    let id = id.to_owned();
    let of_process = match error.guest_refusal() {
        Some(("start", reason)) => ProcessError::NotStarted {
            id,
            reason: reason.to_owned(),
        },
        Some(("not_found", _)) => ProcessError::NotFound { id },
        Some(("ended", _)) => ProcessError::Ended { id },
        Some(("no_terminal", _)) => ProcessError::NoTerminal { id },
        Some(("closed", _)) => ProcessError::Closed { id },
        Some(("full", reason)) => ProcessError::Full {
            id,
            reason: reason.to_owned(),
        },
        _ if error.effect() == Effect::Destroys => ProcessError::Lost { id },
        _ => return error.into(),
    };
    of_process.into()
}
