//! The rows of a dataset for other programs.

use std::io::{self, Write};

use arrow_array::RecordBatchReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use cellblock_artifact::Store;
use serde::Deserialize;

use super::DatasetVersion;
use crate::error::{Error, Result};
use crate::output::OutputError;

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
            store.verify(self.sha256).await?;
            let mut file = store.file(self.sha256).await?;
            return io::copy(&mut file, into).map(drop).map_err(Error::Spool);
        }
        let batches = self.open(store).await?;
        let written = match format {
            ExportFormat::Csv => csv(batches, into),
            _ => arrow(batches, into),
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

fn csv(batches: impl RecordBatchReader, into: &mut impl Write) -> Result<(), ArrowError> {
    let mut writer = arrow_csv::WriterBuilder::new().with_header(true).build(into);
    // A table without rows still has a header.
    writer.write(&arrow_array::RecordBatch::new_empty(batches.schema()))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    Ok(())
}

fn arrow(batches: impl RecordBatchReader, into: &mut impl Write) -> Result<(), ArrowError> {
    let mut writer = StreamWriter::try_new(into, &batches.schema())?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.finish()
}
