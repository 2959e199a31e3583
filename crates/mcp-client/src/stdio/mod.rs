//! Servers that are programs, started here and connected over their stdin and stdout.

mod child;
mod transport;

use std::fmt;

pub(super) use child::start;

/// A program that is a server.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioProgram {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Environment variables in addition to `PATH`, `HOME` and a few more of this process. May
    /// contain secrets.
    pub environment: Vec<(String, String)>,
}

impl fmt::Debug for StdioProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("StdioProgram")
            .field("command", &self.command.first())
            .field("environment", &names)
            .finish()
    }
}
