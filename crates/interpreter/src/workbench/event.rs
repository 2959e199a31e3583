//! What a host is told while tools work.

use std::path::PathBuf;

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkbenchEvent {
    /// A command wrote these bytes to stdout.
    Stdout(Vec<u8>),
    /// A command wrote these bytes to stderr.
    Stderr(Vec<u8>),
    /// A command left a picture in `/tmp/output`.
    Visualization {
        /// Where it is: in the host's folder for this session; without such a folder its name below `/tmp/output`.
        path: PathBuf,
        /// The artifact with its bytes.
        sha256: String,
        /// `image/png`, `image/jpeg` or `image/svg+xml`. The bytes begin as such a picture does; a drawing (SVG) may hold scripts.
        media_type: String,
    },
}
