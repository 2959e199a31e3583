//! Bytes of outputs that could not be stored. Their cell has run, so they are reported and cost it
//! nothing else.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use cellblock_artifact::is_disk_full;
use cellblock_protocol::text::counted;

use super::{Output, OutputError};

/// An output that was checked, and what of it could not be stored.
#[derive(Debug)]
pub struct DecodedOutput {
    /// The output, without references to bytes that could not be stored.
    pub output: Output,
    /// These bytes.
    pub unkept: Vec<UnkeptBytes>,
}

/// Bytes of an output that could not be stored.
#[derive(Debug)]
pub struct UnkeptBytes {
    /// Name of the output, if it has one.
    pub name: Option<String>,
    /// Media type of the bytes.
    pub media_type: String,
    /// Number of bytes.
    pub bytes: u64,
    /// The cause.
    pub error: OutputError,
}

impl Display for UnkeptBytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}`")?,
            None => f.write_str("an output")?,
        }
        write!(f, " ({}, {})", self.media_type, counted(self.bytes, "byte"))
    }
}

/// Says why the host could not store something, without naming its paths.
pub(crate) fn why_unkept(error: &(dyn Error + 'static)) -> &'static str {
    if is_disk_full(error) {
        "the host's disk is full"
    } else {
        "the host cannot write to its temporary folder (`TMPDIR`) or its store"
    }
}
