//! The command line of volumes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Volumes to use, and a command for them.
#[derive(Args, Clone, Debug)]
pub(crate) struct VolumeArgs {
    /// Configuration of the server that has the volumes [default: as for `serve`]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Postgres database with the server's records [default: as for `serve`]
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) records: Option<String>,
    /// Print one JSON object as the only line of stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: VolumeCommand,
}

/// Command for volumes.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// List the volumes of all keys
    List,
    /// Show a volume: its revision, its size, and the last session that wrote it
    #[command(aliases = ["get", "inspect"])]
    Show {
        /// ID or name of the volume
        #[arg(value_name = "VOLUME")]
        volume: String,
    },
    /// Remove a volume with its files, unless a session writes it
    #[command(alias = "delete")]
    Remove {
        /// ID or name of the volume
        #[arg(value_name = "VOLUME")]
        volume: String,
    },
}
