//! Arguments of `cellblock dataset`.

use std::path::PathBuf;

use cellblock_interpreter::project::ExportFormat;
use clap::{Args, Subcommand};

use super::one_of;
use crate::env_vars;

/// Datasets to use, and a command for them.
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

/// Command for datasets.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// List the datasets of a project
    List,
    /// Show a dataset: its columns, notes, origin and versions
    #[command(aliases = ["get", "inspect"])]
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
        #[arg(long, value_name = "FORMAT", value_parser = one_of(ExportFormat::ALL, ExportFormat::name),
            default_value = "parquet")]
        format: ExportFormat,
        /// File to write, or `-` for stdout [default: a file in the current directory, named after
        /// the dataset]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Publish the table of a file, as a new version if there is such a dataset
    Publish(PublishArgs),
    /// Remove a dataset with all its versions
    #[command(alias = "delete")]
    Remove {
        /// Slug of the dataset
        #[arg(value_name = "SLUG")]
        slug: String,
    },
}

/// A file to publish.
#[derive(Args, Clone, Debug)]
pub(crate) struct PublishArgs {
    /// Slug of the dataset
    #[arg(value_name = "SLUG")]
    pub(crate) slug: String,
    /// Table to publish: a CSV, TSV, Parquet or Arrow file, or a workbook
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Title of the dataset; texts that are left out stay as they were
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Description of the dataset
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Tag of the dataset; repeat it for several
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Note about the dataset; repeat it for several
    #[arg(long = "note", value_name = "TEXT")]
    pub(crate) notes: Vec<String>,
    /// Image whose libraries read the file
    #[arg(long, value_name = "IMAGE", default_value_t = env_vars::default_image())]
    pub(crate) image: String,
}
