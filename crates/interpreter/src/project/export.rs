//! The rows of a dataset for other programs.

use std::io::{self, Write};

use arrow_schema::ArrowError;
use cellblock_artifact::Store;
use serde::Deserialize;

use super::DatasetVersion;
use crate::error::{Error, Result};
use crate::output::{OutputError, write_arrow, write_csv};

/// The format of exported rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// The stored file.
    #[default]
    Parquet,
    /// Text with a header, which has no lists and structs.
    Csv,
    /// An Arrow IPC stream.
    Arrow,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Parquet, Self::Csv, Self::Arrow];

    /// Returns its name, which is also the extension of its files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Arrow => "arrow",
        }
    }
}

impl DatasetVersion {
    /// Writes all rows. The stored bytes are checked first.
    pub async fn export(&self, store: &Store, format: ExportFormat, into: &mut impl Write) -> Result<()> {
        if format == ExportFormat::Parquet {
            let mut file = store.verified_file(self.sha256).await?;
            return io::copy(&mut file, into).map(drop).map_err(Error::Spool);
        }
        let batches = self.open(store).await?;
        let written = match format {
            ExportFormat::Csv => write_csv(batches, into),
            _ => write_arrow(batches, into),
        };
        written.map_err(|error| match error {
            ArrowError::CsvError(reason) | ArrowError::InvalidArgumentError(reason) => Error::Argument {
                name: "format",
                missing: false,
                reason: format!("the rows have no CSV form: {reason}; use `parquet` or `arrow`"),
            },
            error => OutputError::from(error).into(),
        })
    }
}
