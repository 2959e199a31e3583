//! Errors of frames.

/// A frame that violates the protocol; its channel cannot be used any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is larger than the receiver accepts.
    #[error("frame of {actual} bytes is over the limit of {limit} bytes; send less, or in several frames")]
    FrameTooLarge {
        /// Maximum that the receiver accepts.
        limit: u64,
        /// Size that the frame declares.
        actual: u64,
    },
    /// The header is larger than the receiver accepts.
    #[error("header of {actual} bytes is over the limit of {limit} bytes; large values belong in a blob")]
    HeaderTooLarge {
        /// Maximum that the receiver accepts.
        limit: u64,
        /// Size that the header declares.
        actual: u64,
    },
    /// The frame is too short for the header that it declares.
    #[error("header of {header} bytes does not fit in a frame of {total} bytes")]
    HeaderBeyondFrame {
        /// Total length of the frame.
        total: u32,
        /// Declared length of the header.
        header: u32,
    },
    /// The header has more entries in `blobs` than a receiver accepts.
    #[error("frame with {actual} blobs is over the limit of {limit} blobs")]
    TooManyBlobs {
        /// Maximum that a receiver accepts.
        limit: usize,
        /// Number of entries in the header.
        actual: usize,
    },
    /// The lengths in `blobs` do not add up to the bytes after the header.
    #[error("blobs of {listed} bytes in a frame that has {present} bytes for them")]
    BlobLengths {
        /// Sum of the header's `blobs`; saturated.
        listed: u64,
        /// Number of bytes for blobs according to the prefix.
        present: u64,
    },
    /// The header's length differs from the one in its prefix.
    #[error("header of {actual} bytes where the prefix announced {announced} bytes")]
    HeaderLength {
        /// Length in the prefix.
        announced: u32,
        /// Actual length.
        actual: usize,
    },
    /// The header is not a JSON object with a `type`.
    #[error("could not read a frame's header as a JSON object with a `type`")]
    Header(#[source] serde_json::Error),
    /// The receiver does not know the type.
    #[error("unknown message type {found}")]
    UnknownType {
        /// The type, quoted, escaped and cut.
        found: String,
    },
    /// The fields do not match the type.
    #[error("could not read the fields of a `{kind}` message")]
    Fields {
        /// Type of the message.
        kind: &'static str,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
    /// The message cannot be written as JSON.
    #[error("could not encode a message")]
    Encode(#[source] serde_json::Error),
}
