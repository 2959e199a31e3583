//! The command line of cells and checkpoints of a session that outlives a command.

use std::time::Duration;

use clap::Args;

use super::parse_timeout;
use crate::session_id::SessionId;

/// Code to run as a cell of a session.
#[derive(Args, Clone, Debug)]
pub(crate) struct CellArgs {
    /// ID of the session
    #[arg(value_name = "ID")]
    pub(crate) session: SessionId,
    /// Python code; `-` reads it from stdin
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: String,
    /// Interrupt the code after this many seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
}

/// Checkpoint to make.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeepArgs {
    /// ID of the session
    #[arg(value_name = "ID")]
    pub(crate) session: SessionId,
    /// Name, which can be used instead of the checkpoint's ID
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// Options for forking a session.
#[derive(Args, Clone, Debug)]
pub(crate) struct ForkArgs {
    /// ID of the session
    #[arg(value_name = "ID")]
    pub(crate) session: SessionId,
    /// Number of new sessions, at most 16
    #[arg(value_name = "COUNT", default_value_t = 1)]
    pub(crate) count: usize,
    /// Let all of them go on with the same random numbers
    #[arg(long)]
    pub(crate) same_random: bool,
}

/// Checkpoint to use.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckpointArgs {
    /// ID of the session
    #[arg(value_name = "ID")]
    pub(crate) session: SessionId,
    /// ID or name of the checkpoint
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) checkpoint: String,
}
