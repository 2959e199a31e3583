//! What can be wrong with a frame.

/// A frame that breaks the protocol; the channel it came from can not be used further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is larger than the receiver accepts.
    #[error("frame of {actual} bytes is over the limit of {limit} bytes; send less, or in several frames")]
    FrameTooLarge {
        /// The most that the receiver accepts.
        limit: u64,
        /// What the frame claims.
        actual: u64,
    },
    /// The header is larger than the receiver accepts.
    #[error("header of {actual} bytes is over the limit of {limit} bytes; large values belong in a blob")]
    HeaderTooLarge {
        /// The most that the receiver accepts.
        limit: u64,
        /// What the frame claims.
        actual: u64,
    },
    /// The total length has no room for the header it announces.
    #[error("header of {header} bytes does not fit in a frame of {total} bytes")]
    HeaderBeyondFrame {
        /// The frame's total length.
        total: u32,
        /// The announced length of the header.
        header: u32,
    },
    /// The header has more entries in `blobs` than a receiver accepts.
    #[error("frame with {actual} blobs is over the limit of {limit} blobs")]
    TooManyBlobs {
        /// The most that a receiver accepts.
        limit: usize,
        /// What the header lists.
        actual: usize,
    },
    /// The lengths in `blobs` do not add up to what follows the header.
    #[error("blobs of {listed} bytes in a frame that has {present} bytes for them")]
    BlobLengths {
        /// The sum of the header's `blobs`; saturated.
        listed: u64,
        /// What the prefix leaves for blobs.
        present: u64,
    },
    /// The header is of another length than its prefix said.
    #[error("header of {actual} bytes where the prefix announced {announced} bytes")]
    HeaderLength {
        /// What the prefix announced.
        announced: u32,
        /// What was given.
        actual: usize,
    },
    /// The header is not a JSON object with a `type`.
    #[error("could not read a frame's header as a JSON object with a `type`")]
    Header(#[source] serde_json::Error),
    /// The type is none that the receiver knows.
    #[error("unknown message type {found}")]
    UnknownType {
        /// The type, quoted, escaped and cut.
        found: String,
    },
    /// The fields are not those of the type.
    #[error("could not read the fields of a `{kind}` message")]
    Fields {
        /// The message's type.
        kind: &'static str,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// The message can not be written as JSON.
    #[error("could not encode a message")]
    Encode(#[source] serde_json::Error),
}
