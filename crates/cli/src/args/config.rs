//! Arguments of `cellblock config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::serve::ServeArgs;

/// Command for a configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// Command for a configuration.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report errors in a configuration
    ///
    /// Checks everything that `cellblock serve` with the same options checks at startup: keys of
    /// providers, certificates, API keys for addresses that other machines can reach, the image,
    /// and whether there is a model. Connects to nothing and starts nothing. Exits with 0 if
    /// `serve` would accept the configuration, otherwise with its exit code.
    Check(CheckArgs),
    /// Show the effective configuration: each value and its origin; keys of providers are never
    /// shown
    Show {
        /// Configuration file; by default `cellblock.yaml`, if it exists
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The same as FILE
        #[arg(long, value_name = "FILE", conflicts_with = "file")]
        config: Option<PathBuf>,
    },
    /// Print the JSON Schema of the file, for editors
    Schema,
}

/// Configuration to check.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckArgs {
    /// Configuration file; the same as `--config FILE`
    #[arg(value_name = "FILE", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}
