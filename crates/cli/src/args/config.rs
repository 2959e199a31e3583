//! Arguments of `cellblock config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do with a configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What to do with a configuration.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with a configuration
    ///
    /// Everything is checked that `serve` checks before it starts, keys of providers too; nothing is connected to. Exits with 0 when the
    /// configuration can be served, else with 2.
    Check {
        /// The file; without it `cellblock.yaml`, if there is one
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Show what counts: each value, and where it comes from; keys of providers are never shown
    Show {
        /// The file; without it `cellblock.yaml`, if there is one
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of the file, for editors
    Schema,
}
