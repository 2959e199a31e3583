//! Why an output of a kernel was not accepted.

use arrow_schema::ArrowError;
use cellblock_artifact::ArtifactError;
use parquet::errors::ParquetError;

/// An output that could not be decoded or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The bytes of a table are not what Arrow and the protocol allow.
    #[error("table from a kernel is malformed: {what}")]
    Table {
        /// What is wrong.
        what: String,
    },
    /// Arrow refused the bytes of a table.
    #[error("could not read a table from a kernel")]
    Arrow(#[from] ArrowError),
    /// Something is larger than the host accepts.
    #[error("{what} of {actual} from a kernel is over the limit of {limit}")]
    Limit {
        /// What is too large, and its unit.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// What was claimed or sent.
        actual: u64,
    },
    /// A picture is not one of its format.
    #[error("{mime} from a kernel is malformed: {what}")]
    Picture {
        /// The format.
        mime: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// A chart's specification is not a JSON object.
    #[error("chart specification from a kernel is not a JSON object")]
    Specification,
    /// A result or the rows of a chart are not the JSON that they have to be.
    #[error("{kind} from a kernel is not the JSON that it has to be")]
    Document {
        /// The kind of output.
        kind: &'static str,
        /// Where reading failed.
        #[source]
        source: serde_json::Error,
    },
    /// A chart that its kernel should not have sent.
    #[error("chart from a kernel is wrong")]
    Chart {
        /// What is wrong with it.
        #[source]
        source: crate::chart::ChartError,
    },
    /// An output has another number of blobs than its kind needs.
    #[error("{kind} from a kernel has {actual} blobs where it needs {expected}")]
    Blobs {
        /// The kind of output.
        kind: &'static str,
        /// How many it needs.
        expected: usize,
        /// How many it has.
        actual: usize,
    },
    /// A media type that is none.
    #[error("media type {found} from a kernel is not of the form type/subtype")]
    MediaType {
        /// What was given, quoted, escaped and cut.
        found: String,
    },
    /// The code that reads or writes a table panicked; its input is to blame until shown otherwise.
    #[error("table from a kernel made its reader panic")]
    Panicked,
    /// The host could not read a blob that it had spilled, or not write a temporary file.
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
    pub(super) fn table(what: impl Into<String>) -> Self {
        Self::Table { what: what.into() }
    }

    /// Says whether the kernel is to blame, so that its sandbox can not be trusted further.
    pub fn is_from_the_kernel(&self) -> bool {
        !matches!(
            self,
            Self::File(_) | Self::Parquet(_) | Self::Json(_) | Self::Store(_)
        )
    }
}
