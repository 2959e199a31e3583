//! Arguments of `cellblock serve`.

use std::net::SocketAddr;

use clap::Args;

/// How to serve.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    /// Listen here
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Answer without any model: the model `demo` runs the Python block of a message, or a small analysis of its own
    #[arg(long)]
    pub(crate) demo: bool,
    /// Let what runs go on for so many seconds after SIGTERM or Ctrl-C; a second signal ends it at once
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    pub(crate) grace: u32,
}
