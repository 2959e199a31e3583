//! Layers: packages that a cell asks for, resolved and installed on the host, read-only in the sandbox.

mod marker;
mod requirement;
mod scan;

pub use requirement::{Requirement, RequirementError};

use crate::image::{Home, Result};

pub(crate) fn forget_image(_: &Home, _: &str) -> Result<()> {
    Ok(())
}
