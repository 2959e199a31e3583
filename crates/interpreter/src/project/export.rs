//! The rows of a dataset for other programs.

use std::io::{self, Write};

use arrow_schema::ArrowError;
use cellblock_artifact::Store;
use serde::Deserialize;
use tokio::task::spawn_blocking;

use super::DatasetVersion;
use crate::error::{Error, Result};
use crate::output::{OutputError, table_batches, write_arrow, write_csv};

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
    /// Writes all rows, and returns what they were written into. The stored bytes are checked first.
    pub async fn export<W: Write + Send + 'static>(
        &self,
        store: &Store,
        format: ExportFormat,
        mut into: W,
    ) -> Result<W> {
        let mut file = store.verified_file(self.sha256).await?;
        let written = spawn_blocking(move || -> Result<W> {
            if format == ExportFormat::Parquet {
                io::copy(&mut file, &mut into).map_err(Error::Spool)?;
                return Ok(into);
            }
            let batches = table_batches(file)?;
            let written = match format {
                ExportFormat::Csv => write_csv(batches, &mut into),
                _ => write_arrow(batches, &mut into),
            };
            written.map_err(unwritten)?;
            into.flush().map_err(Error::Spool)?;
            Ok(into)
        });
        written.await.expect("writing rows does not panic")
    }
}

fn unwritten(error: ArrowError) -> Error {
    match error {
        ArrowError::CsvError(reason) | ArrowError::InvalidArgumentError(reason) => Error::Argument {
            name: "format",
            missing: false,
            reason: format!("the rows have no CSV form: {reason}; use `parquet` or `arrow`"),
        },
        error => OutputError::from(error).into(),
    }
}
