//! The command line of run records.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Runs to use, and a command for them.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunsArgs {
    /// Configuration of the server that has recorded them [default: as for `serve`]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Postgres database with the server's records [default: as for `serve`]
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) records: Option<String>,
    /// Print one JSON object as the only line of stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

/// Command for runs.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the newest runs of all keys and of `cellblock run`
    List {
        /// Only runs of this session or container
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// Maximum number of runs
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
    },
    /// Show the record of a run
    #[command(aliases = ["get", "inspect"])]
    Show {
        /// ID of the run
        #[arg(value_name = "RUN")]
        run: String,
    },
    /// Run it again in a fresh sandbox of this machine, and compare what it makes by hash
    ///
    /// The cells before it in its sandbox run first. Exits with 0 if it made the same, with 1 if it
    /// made something else, and with 2 if it cannot be replayed.
    Replay {
        /// ID of the run
        #[arg(value_name = "RUN")]
        run: String,
    },
    /// Print one JSON document with a run, the runs before it in its sandbox, and their inputs
    Export {
        /// ID of the run
        #[arg(value_name = "RUN")]
        run: String,
    },
}
