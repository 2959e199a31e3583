//! Errors in a kernel's outputs.

use arrow_schema::ArrowError;
use cellblock_artifact::ArtifactError;
use parquet::errors::ParquetError;

/// The reason why an output could not be decoded or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The bytes of a table violate Arrow or the protocol.
    #[error("table from a kernel is malformed: {what}")]
    Table {
        /// The problem.
        what: String,
    },
    /// Arrow rejected the bytes of a table.
    #[error("could not read a table from a kernel")]
    Arrow(#[from] ArrowError),
    /// A size exceeds the host's limit.
    #[error("{what} of {actual} from a kernel is over the limit of {limit}")]
    Limit {
        /// Name of what is too large, with its unit.
        what: &'static str,
        /// The maximum.
        limit: u64,
        /// The declared or actual size.
        actual: u64,
    },
    /// A picture does not match its format.
    #[error("{mime} from a kernel is malformed: {what}")]
    Picture {
        /// Media type of the picture.
        mime: &'static str,
        /// The problem.
        what: &'static str,
    },
    /// A chart's specification is not a JSON object.
    #[error("chart specification from a kernel is not a JSON object")]
    Specification,
    /// A result or the rows of a chart are not the required JSON.
    #[error("{kind} from a kernel is not the required JSON")]
    Document {
        /// Kind of the output.
        kind: &'static str,
        /// The parse error.
        #[source]
        source: serde_json::Error,
    },
    /// A chart that its kernel should not have sent.
    #[error("chart from a kernel is invalid")]
    Chart {
        /// The mistakes in the chart.
        #[source]
        source: crate::chart::ChartError,
    },
    /// The rows cannot be sorted as requested.
    #[error("{reason}")]
    Order {
        /// Reason of the rejection.
        reason: String,
    },
    /// An output has the wrong number of blobs.
    #[error("{kind} from a kernel has {actual} blobs where it needs {expected}")]
    Blobs {
        /// Kind of the output.
        kind: &'static str,
        /// Required number.
        expected: usize,
        /// Actual number.
        actual: usize,
    },
    /// A media type is invalid.
    #[error("media type {found} from a kernel is not of the form type/subtype")]
    MediaType {
        /// The given text, quoted, escaped and cut.
        found: String,
    },
    /// The code that reads or writes a table panicked; its input is presumed to be the cause.
    #[error("table from a kernel made its reader panic")]
    Panicked,
    /// The host could not read a spilled blob or write a temporary file.
    #[error("could not use a temporary file below `{}` for an output", std::env::temp_dir().display())]
    File(#[from] std::io::Error),
    /// The host could not write a table as Parquet.
    #[error("could not write a table as Parquet")]
    Parquet(#[from] ParquetError),
    /// The host could not describe an output as JSON.
    #[error("could not encode an output as JSON")]
    Json(#[from] serde_json::Error),
    /// The artifact store failed.
    #[error("could not store an output")]
    Store(#[from] ArtifactError),
}

impl OutputError {
    pub(crate) fn table(what: impl Into<String>) -> Self {
        Self::Table { what: what.into() }
    }

    /// Returns whether the kernel is at fault, so that its sandbox cannot be trusted any further.
    pub fn is_from_the_kernel(&self) -> bool {
        !matches!(
            self,
            Self::File(_) | Self::Parquet(_) | Self::Json(_) | Self::Store(_)
        )
    }
}
