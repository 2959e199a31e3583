//! Arguments of `cellblock serve`.

use std::path::PathBuf;

use clap::Args;

use crate::config::listen::Listen;

/// How to serve.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    /// Read this configuration; without the option `cellblock.yaml`, if there is one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Listen here; port 0 takes one that is free [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<Listen>,
    /// Answer without any model: the model `demo` runs the Python block of a message, or a small analysis of its own
    #[arg(long)]
    pub(crate) demo: bool,
    /// Serve sandboxes only: sessions, containers, files and `/mcp`, and no answers of a model
    #[arg(long, conflicts_with = "demo")]
    pub(crate) no_model: bool,
    /// Let what runs go on for so many seconds after SIGTERM or Ctrl-C; a second signal ends it at once [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<u32>,
}
