//! Arguments of `cellblock serve`.

use std::path::PathBuf;

use clap::Args;

use crate::config::listen::Listen;

/// Options for serving.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    /// Configuration file [default: `cellblock.yaml`, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<Listen>,
    /// Postgres database for records, `postgres://USER@HOST/DATABASE`; if it needs a password, set
    /// `records` in the configuration instead [default: a file in the directory of the state]
    #[arg(long, value_name = "URL")]
    pub(crate) records: Option<String>,
    /// Answer without a language model: `demo` runs the Python block of a message, or a small
    /// analysis of its own
    #[arg(long)]
    pub(crate) demo: bool,
    /// Serve only sandboxes (sessions, containers, files and `/mcp`), without a model
    #[arg(long, conflicts_with = "demo")]
    pub(crate) no_model: bool,
    /// Take sandboxes from the warm host of the same image and policy if there is one, as `run`
    /// does; `CELLBLOCK_WARM` applies
    #[arg(long)]
    pub(crate) warm: bool,
    /// Let running requests continue for this many seconds after SIGTERM or Ctrl-C; a second signal
    /// stops them immediately [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<u32>,
}
