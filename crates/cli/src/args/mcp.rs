//! Arguments of `cellblock mcp`.

use std::path::PathBuf;
use std::time::Duration;

use cellblock_interpreter::session::hibernate::OnIdle;
use cellblock_interpreter::toolset::ToolsetKind;
use cellblock_mcp::ImageDisplay;
use clap::Args;

use super::parse_memory;
use super::session::{DatasetArg, parse_dataset, parse_idle};
use crate::env_vars;
use crate::policy::{NetworkArgs, PolicyArgs, WallArgs};
use crate::toolset::kinds;
use cellblock_settings::Size;

/// Tools to offer, and their sources.
#[derive(Args, Clone, Debug)]
pub(crate) struct McpArgs {
    /// Offer the tools of this set, in addition to those for sessions and files; repeat it for
    /// several [default: interpreter]
    #[arg(long = "toolset", value_name = "TOOLSET", value_parser = kinds(|_| true))]
    pub(crate) toolsets: Vec<ToolsetKind>,
    /// Configuration file with the `connectors` and `mcp_servers` of `notebook` [default:
    /// `cellblock.yaml`, if it exists]
    #[arg(long, value_name = "FILE", requires = "toolsets")]
    pub(crate) config: Option<PathBuf>,
    /// Let code publish and load datasets of this project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Make a file available in `/tmp/data` of every session, read-only, under this name; repeat it
    /// for several
    #[arg(long = "dataset", value_name = "NAME=PATH", value_parser = parse_dataset)]
    pub(crate) datasets: Vec<DatasetArg>,
    /// End a session after it has been idle for this many seconds [default: 1800]
    #[arg(long, value_name = "SECONDS", value_parser = parse_idle, default_value = "1800",
        hide_default_value = true, allow_negative_numbers = true)]
    pub(crate) idle_timeout: Duration,
    /// Action at the idle timeout: `end`, or `hibernate`, which frees the memory of the session, keeps its
    /// files for a day, and with the backend gvisor also its variables
    #[arg(long, value_name = "ACTION", default_value = "end")]
    pub(crate) on_idle: OnIdle,
    /// Clients that get charts and pictures as images, after the text: `auto` (those that are known to show
    /// images to their model), `always` or `never`
    #[arg(long, value_name = "CLIENTS", default_value = "auto")]
    pub(crate) images: ImageDisplay,
    /// Add links to files and outputs after the text; some frameworks fail on links
    #[arg(long)]
    pub(crate) links: bool,
    /// Maximum number of sessions at a time; beyond it, the one that was idle for the longest time makes room
    #[arg(long, value_name = "N", default_value_t = 16,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) max_sessions: u16,
    /// Maximum number of tokens of text in a result
    #[arg(long, value_name = "N", default_value_t = 8000,
        value_parser = clap::value_parser!(u32).range(500..=1_000_000))]
    pub(crate) max_tokens: u32,
    /// Use this image: a name, an ID, or a TOML file that describes one
    #[arg(long, value_name = "IMAGE", default_value_t = env_vars::default_image())]
    pub(crate) image: String,
    /// Limit a sandbox's memory, including its files, such as `512MiB` [default: 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) memory: Option<Size>,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) wall: WallArgs,
}
