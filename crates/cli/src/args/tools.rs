//! The command line of tools.

use cellblock_interpreter::toolset::{TOOLSETS, ToolsetKind};
use clap::{Args, Subcommand};

use crate::session_id::SessionId;
use crate::toolset::kinds;

/// Command for tools.
#[derive(Args, Clone, Debug)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

/// Command for tools.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools, with their arguments and descriptions
    List {
        /// List only the tools of this set
        #[arg(long, value_name = "TOOLSET", value_parser = kinds(|kind| !kind.runs_cells()))]
        toolset: Option<ToolsetKind>,
        /// Print one JSON object with the JSON Schemas of arguments and results as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Call a tool in a session started with `session start`, and print its result as the only line
    /// of stdout
    #[command(after_long_help = EXIT_CODES)]
    Call(CallArgs),
}

/// Tool to call, and its arguments.
#[derive(Args, Clone, Debug)]
pub(crate) struct CallArgs {
    /// The tool's name, such as `sandbox_exec`
    #[arg(value_name = "NAME")]
    pub(crate) tool: String,
    /// Arguments as a JSON object; `@FILE` reads them from a file, `-` from stdin
    #[arg(
        long = "args",
        value_name = "JSON|@FILE|-",
        default_value = "{}",
        allow_hyphen_values = true
    )]
    pub(crate) arguments: String,
    /// ID of the session
    #[arg(long, value_name = "ID")]
    pub(crate) session: SessionId,
    /// Stream the output of commands to stderr
    #[arg(long)]
    pub(crate) watch: bool,
}

/// The toolsets with tools to call. `cellblock run` runs cells.
pub(crate) fn listed() -> impl Iterator<Item = ToolsetKind> {
    TOOLSETS.into_iter().filter(|kind| !kind.runs_cells())
}

const EXIT_CODES: &str = "\
Exit codes:
        0  the tool succeeded; a command exited with 0
    1  a command exited with a nonzero code, which is in the result
    2  the tool rejected the call (\"success\": false), or the session does not exist
   70  the sandbox or its backend failed, or the session ended; there is no result
   75  no sandbox became available in time; try again later
   78  the policy requires a protection that this machine lacks
  124  a command timed out
  130  Ctrl-C ended the call and its command";
