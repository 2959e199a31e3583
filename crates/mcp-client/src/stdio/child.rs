//! Starts the process of a server.

use std::sync::Arc;

use cellblock_connector::process::{ProgramLaunch, log_lines};

use super::StdioProgram;
use super::transport::Stdio as Transport;
use crate::failure::Failure;
use crate::wire::Wire;

/// Variables that a server inherits.
const INHERITED: [&str; 9] = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ",
];

/// Starts a server.
pub(crate) fn start(program: &StdioProgram, label: &str, wire: Arc<Wire>) -> Result<Transport, Failure> {
    let launch = ProgramLaunch {
        command: program.command.clone(),
        inherited: &INHERITED,
        environment: program.environment.clone(),
        folder: None,
    };
    let started = launch
        .start()
        .map_err(|error| Failure::NotStarted(Arc::new(error)))?;
    let label = label.to_owned();
    tokio::spawn(log_lines(started.stderr, move |line| {
        tracing::info!(target: "cellblock::mcp_server", server = label, "{line}");
    }));
    Ok(Transport::new(
        started.process,
        started.stdin,
        started.stdout,
        wire,
    ))
}
