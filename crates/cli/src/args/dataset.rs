//! Arguments of `cellblock dataset`.

use std::path::PathBuf;

use cellblock_interpreter::project::ExportFormat;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

/// Which datasets, and what to do with them.
#[derive(Args, Clone, Debug)]
pub(crate) struct DatasetArgs {
    #[command(subcommand)]
    pub(crate) command: DatasetCommand,
    /// Name of the project
    // Not `required`, which clap does not accept for global options.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Print one JSON object as the only line of stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What to do with datasets.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// List the datasets of a project
    List,
    /// Show a dataset: its columns, notes, origin and versions
    Show {
        /// Slug of the dataset
        #[arg(value_name = "SLUG")]
        slug: String,
    },
    /// Save the rows of a dataset to a file
    Export {
        /// Slug of the dataset
        #[arg(value_name = "SLUG")]
        slug: String,
        /// Format of the file
        #[arg(long, value_name = "FORMAT", value_parser = export_format(), default_value = "parquet")]
        format: ExportFormat,
        /// File to write, or `-` for stdout [default: a file in the current directory, named after
        /// the dataset]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Remove a dataset with all its versions
    Remove {
        /// Slug of the dataset
        #[arg(value_name = "SLUG")]
        slug: String,
    },
}

fn export_format() -> impl TypedValueParser<Value = ExportFormat> {
    let names = ExportFormat::ALL.map(ExportFormat::name);
    PossibleValuesParser::new(names).map(|name| {
        // The parser accepts no other names.
        ExportFormat::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .unwrap_or_default()
    })
}
