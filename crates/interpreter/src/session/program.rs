//! Running a program to its end: what a sandbox server of single calls needs.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Result;
use crate::execution::StreamText;
use crate::session::Session;
use crate::session::runtime::command::{CommandEnd, CommandOrder};

/// A program to run in `/workspace` of a session's sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxProgram {
    /// The program and its arguments; a bare name is looked for along `PATH`.
    pub argv: Vec<String>,
    /// Its environment, on top of the one that commands of the sandbox have.
    pub env: BTreeMap<String, String>,
    /// Packages that it needs, as requirement strings. They have as long to be installed as it may run.
    pub requirements: Vec<String>,
    /// After this it is killed with all that it started.
    pub timeout: Duration,
    /// Maximum number of bytes of each of its streams that are kept: the first and the last halves of it.
    pub stream_bytes: usize,
}

/// Result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRun {
    /// Outcome.
    pub end: CommandEnd,
    /// Text that it wrote to stdout.
    pub stdout: StreamText,
    /// Text that it wrote to stderr.
    pub stderr: StreamText,
    /// Duration of the program.
    pub duration: Duration,
    /// Additional note, such as a limit that was hit.
    pub notes: Vec<String>,
}

impl Session {
    /// Runs a program to its end; a program that fails is `Ok`. Files that it makes stay in the
    /// sandbox, and nothing is collected.
    pub async fn run_program(&self, program: SandboxProgram) -> Result<ProgramRun> {
        let order = CommandOrder {
            argv: program.argv,
            timeout: program.timeout,
            requirements: program.requirements,
            env: program.env,
            stream_bytes: program.stream_bytes,
            for_model: false,
            files: 0,
            listener: None,
        };
        let executed = self.command(order).await?;
        Ok(ProgramRun {
            end: executed.end,
            stdout: executed.stdout,
            stderr: executed.stderr,
            duration: executed.duration,
            notes: executed.notes,
        })
    }
}
