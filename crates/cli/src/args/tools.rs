//! The command line of tools.

use clap::{Args, Subcommand, ValueEnum};

use crate::session::id::SessionId;

/// What to do with tools.
#[derive(Args, Clone, Debug)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

/// What to do with tools.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools, with their arguments and what they do
    List {
        /// Only the tools of this set
        #[arg(long, value_name = "TOOLSET", value_enum)]
        toolset: Option<ListedToolset>,
        /// Print one JSON object with the JSON Schemas of arguments and results as the only line of stdout
        #[arg(long)]
        json: bool,
    },
    /// Call a tool in a session that `session start` has started, and print its result as the only line of stdout
    #[command(after_long_help = EXIT_CODES)]
    Call(CallArgs),
}

/// Which tool to call, and with what.
#[derive(Args, Clone, Debug)]
pub(crate) struct CallArgs {
    /// The tool's name, such as `sandbox_exec`
    #[arg(value_name = "NAME")]
    pub(crate) tool: String,
    /// Its arguments as a JSON object; `@FILE` reads them from a file, `-` from stdin
    #[arg(
        long = "args",
        value_name = "JSON|@FILE|-",
        default_value = "{}",
        allow_hyphen_values = true
    )]
    pub(crate) arguments: String,
    /// The session's id
    #[arg(long, value_name = "ID")]
    pub(crate) session: SessionId,
    /// Show on stderr what commands write, as it comes
    #[arg(long)]
    pub(crate) watch: bool,
}

/// A set of tools that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListedToolset {
    /// Commands, and files to write and edit.
    Workbench,
    /// Code that derives from tool results.
    Derivation,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  the tool did its work; a command exited with 0
    1  a command exited with another code, which is in the result
    2  the tool refused the call (\"success\": false), or there is no such session
   70  the sandbox, or what makes it, failed, or the session ended; there is no result
   75  there was no room for a sandbox in time; try again later
   78  the policy demands a protection that this machine lacks
  124  a command ran out of time
  130  Ctrl-C ended the call, and with it the command";
