//! Reasons for which an upload ends before it is complete.

use std::time::Duration;

use super::super::MeterDenial;
use super::MaxUpload;

/// Reason for which an upload ends before it is complete, as a fragment that its client reads.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The file is larger than one may be; status 413.
    #[error("receive the upload: the file has {}, {max}; send a smaller file",
        described(*.declared, .max.bytes))]
    TooLarge {
        /// Its size, if the request announced it.
        declared: Option<u64>,
        /// The maximum.
        max: MaxUpload,
    },
    /// A quota has no room for it; status 429.
    #[error(transparent)]
    Denied(#[from] MeterDenial),
    /// The owner, or all owners together, are sending as much as they may at a time; status 429.
    #[error(
        "receive the upload: {} are being received for {}, and `{}` allows {limit} at a time; wait until \
         another upload has ended",
        bytes(*.used), if *.is_owner { "this key" } else { "all keys" },
        if *.is_owner { "uploads.max_bytes_per_key" } else { "uploads.max_bytes" }
    )]
    Busy {
        /// Whether it is the limit of the owner rather than that of all.
        is_owner: bool,
        /// Bytes that are being received.
        used: u64,
        /// The maximum.
        limit: u64,
    },
    /// The client took too long; status 408.
    #[error(
        "receive the upload: it was not complete after {} seconds, the limit that `uploads.timeout` sets; \
         send a smaller file, or use a faster connection",
        .0.as_secs_f64()
    )]
    TimedOut(Duration),
    /// The client sent less than it announced, or another form than it announced; status 400.
    #[error("receive the upload: {0}")]
    Broken(String),
    /// The server cannot keep it; status 500.
    #[error("keep the upload")]
    File(#[source] std::io::Error),
}

fn described(declared: Option<u64>, limit: u64) -> String {
    match declared {
        Some(size) => bytes(size),
        None => format!("more than {}", bytes(limit)),
    }
}

fn bytes(count: u64) -> String {
    format!("{count} bytes")
}
