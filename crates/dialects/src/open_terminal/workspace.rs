//! Operations on files of a chat, as seen from its working directory.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chat::{Caller, HeldChat, OpenTerminal};
use super::problem::Problem;
use crate::files;

impl OpenTerminal {
    /// Performs an operation.
    pub(super) async fn operate<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        operation: &str,
        arguments: &impl Serialize,
    ) -> Result<T, Problem> {
        Ok(perform(&self.chat(caller).await?, operation, arguments).await?.0)
    }
}

/// Performs an operation whose answer may have bytes after it.
pub(super) async fn perform<T: DeserializeOwned>(
    held: &HeldChat,
    operation: &str,
    arguments: &impl Serialize,
) -> Result<(T, Vec<u8>), Problem> {
    let cwd = held.kept.cwd();
    Ok(files::perform(&held.session, &cwd, operation, arguments).await?)
}
