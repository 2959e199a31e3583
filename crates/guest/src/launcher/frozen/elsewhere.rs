//! Processors on which templates are not frozen.

use std::path::Path;

use cellblock_jail::{Error, Result};

use super::place::FrozenPlace;
use crate::launcher::control::Launch;

const REASON: &str = "templates are frozen only on x86_64 processors";

pub(in crate::launcher) const LOADER: [u64; 2] = [0, 0];

/// Returns the reason.
pub fn place(_directory: &Path, _launch: &Launch) -> Result<FrozenPlace, String> {
    Err(REASON.to_owned())
}

pub(in crate::launcher) fn make(_launch: &Launch, _place: &FrozenPlace, _yields: bool) -> Result<i32> {
    Err(Error::Child(REASON.to_owned()))
}

pub(in crate::launcher) fn become_frozen(_place: &FrozenPlace, _is_draft: bool) -> Error {
    Error::Child(REASON.to_owned())
}
