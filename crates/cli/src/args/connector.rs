//! Arguments of `cellblock connector`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Connectors to use, and a command for them.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectorArgs {
    #[command(subcommand)]
    pub(crate) command: ConnectorCommand,
    /// Configuration file [default: `cellblock.yaml`, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON object as the only line of stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Command for connectors.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConnectorCommand {
    /// List the functions that code can call
    List,
    /// Show the parameters of a connector's functions as JSON Schema
    Show {
        /// Name of a connector, such as `fred`, or of a function, such as `fred.series`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Call a function once, as code in a sandbox would
    ///
    /// The host checks the arguments and removes secrets from the answer. Of a table, the first and
    /// the last five rows are shown.
    #[command(after_long_help = EXIT_CODES)]
    Call {
        /// Name of the function, such as `fred.series`
        #[arg(value_name = "CONNECTOR.FUNCTION")]
        function: String,
        /// Arguments: text where the parameter is text, and otherwise JSON
        #[arg(value_name = "NAME=VALUE", value_parser = parse_argument)]
        arguments: Vec<(String, String)>,
    },
    /// Check that connectors can be reached
    ///
    /// Reads the configuration and its secrets. An API over HTTP gets one request to its `base_url`,
    /// without secrets; any answer counts. An MCP server lists its tools. Exits with 1 if one cannot
    /// be reached.
    Check {
        /// Names of connectors [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

fn parse_argument(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| {
        format!("`{text}` is not an argument; write its name and its value, such as `series_id=GDPC1`")
    })?;
    Ok((name.to_owned(), value.to_owned()))
}

const EXIT_CODES: &str = "\
Exit codes:
    0  the function answered
    1  the call failed
    2  there is no such function, or an argument is invalid
  124  there was no answer in time";
