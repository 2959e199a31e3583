//! Operations on files of a chat, as seen from its working directory.

use serde::Serialize;
use serde_json::Value;

use super::chat::HeldChat;
use super::problem::Problem;
use crate::workspace::{self, OperationResult};

/// Does an operation.
pub(super) async fn operate(
    held: &HeldChat,
    operation: &str,
    arguments: &impl Serialize,
) -> Result<Value, Problem> {
    Ok(perform(held, operation, arguments).await?.answer)
}

/// Does an operation whose answer may have bytes after it.
pub(super) async fn perform(
    held: &HeldChat,
    operation: &str,
    arguments: &impl Serialize,
) -> Result<OperationResult, Problem> {
    let cwd = held.kept.cwd();
    Ok(workspace::perform(&held.session, &cwd, operation, arguments).await?)
}
