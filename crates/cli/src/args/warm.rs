//! The command line of warm hosts.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::env_vars;
use crate::policy::PolicyArgs;
use crate::session_id::SessionId;
use crate::warm::setting::{DEFAULT_IDLE, parse_idle};

/// Command for warm hosts.
#[derive(Args, Clone, Debug)]
pub(crate) struct WarmArgs {
    #[command(subcommand)]
    pub(crate) command: WarmCommand,
}

/// Command for warm hosts.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum WarmCommand {
    /// Start a warm host in the background and wait until it is ready
    ///
    /// `cellblock run`, local sessions of the Python client and `cellblock serve --warm` use it if
    /// the image and the policy are the same. The host ends with `warm stop`, or when nothing has
    /// used it for its idle timeout. If there is such a host already, nothing is started.
    Start(WarmStartArgs),
    /// List the warm hosts: image, policy, ready sandboxes, memory and remaining idle time
    Status {
        /// Print one JSON object as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Stop all warm hosts, including those of other versions; runs and cells in their sandboxes end
    /// with an error
    Stop,
    /// The process behind a warm host; `warm start` starts it
    #[command(hide = true)]
    Host {
        /// ID of the host
        #[arg(value_name = "ID")]
        id: SessionId,
    },
}

/// Host to start.
#[derive(Args, Clone, Debug)]
pub(crate) struct WarmStartArgs {
    /// Use this image: a name, an ID, or a TOML file that describes one
    #[arg(long, value_name = "IMAGE", default_value_t = env_vars::default_image())]
    pub(crate) image: String,
    /// End the host after nothing has used it for this time, such as `90s` or `1h`
    #[arg(long, value_name = "TIME", value_parser = parse_idle, default_value = DEFAULT_IDLE,
        allow_negative_numbers = true)]
    pub(crate) idle_timeout: Duration,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}
