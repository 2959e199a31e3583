//! Commands of a shell over one session: those of one call run at the same time, each in a separate
//! shell, and what they leave running continues as a process of the session.
//!
//! ```text
//! {commands} ──> a process each ──> output up to a length, exit code ──> files, as a cell leaves them
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use super::{ToolDefinition, ToolEffect, ToolResult, Toolset, ToolsetKind, Watch};
use crate::error::{Error, Result};
use crate::session::Session;

mod arguments;
mod command;
mod listener;
mod report;
mod streams;

pub use arguments::ShellArguments;
use listener::CommandListener;
pub use report::{CommandOutcome, CommandReport, ShellEvent, ShellListener, ShellReport};

/// The name of the tool.
pub const SHELL: &str = "shell";
/// Maximum number of commands in a call.
pub const MAX_COMMANDS: usize = 64;
/// Maximum size in bytes of a command.
pub const MAX_COMMAND: usize = 100 << 10;
/// Maximum number of characters of a command's output, and the number if a call names none.
pub const MAX_OUTPUT: usize = 200_000;
const OUTPUT: usize = 10_000;
/// Maximum number of characters of the outputs of a call, which its commands share equally.
const MAX_CALL_OUTPUT: usize = 1_000_000;
/// Maximum number of commands that run at the same time.
const AT_ONCE: usize = 8;

/// The toolset. No configuration names it: requests of the Responses API do.
pub const KIND: ToolsetKind = ToolsetKind {
    name: SHELL,
    summary: "Run commands of a shell",
    about: "How to work with commands",
    prelude: &[],
    on_results: false,
    definitions: |terms| vec![definition(terms.max_timeout)],
    prompt: |_| String::new(),
    open: |interpreter, session, terms| {
        let shell = Shell {
            session,
            timeout: interpreter.limits().cell_timeout.min(terms.max_timeout),
            max_timeout: terms.max_timeout,
            listener: terms.listener.clone(),
        };
        Box::pin(async { Ok(Arc::new(shell) as Arc<dyn Toolset>) })
    },
};

/// Commands over one session.
#[derive(Debug)]
struct Shell {
    session: Session,
    timeout: Duration,
    max_timeout: Duration,
    listener: Option<ShellListener>,
}

impl Toolset for Shell {
    fn definitions(&self) -> Vec<ToolDefinition> {
        vec![definition(self.max_timeout)]
    }

    fn call<'a>(
        &'a self,
        _tool: &'a str,
        arguments: Value,
        _watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>> {
        Box::pin(async move {
            let arguments = ShellArguments::parse(&arguments).map_err(|reason| Error::Argument {
                name: "arguments",
                missing: false,
                reason,
            })?;
            let run = self.run(&arguments);
            match &self.listener {
                None => run.await,
                // Dropping the commands ends them.
                Some(listener) => tokio::select! {
                    ran = run => ran,
                    () = listener.closed() => Err(Error::Closed),
                },
            }
        })
    }

    fn prompt(&self) -> String {
        String::new()
    }
}

impl Shell {
    async fn run(&self, arguments: &ShellArguments) -> Result<ToolResult> {
        let timeout = arguments.timeout_ms.map_or(self.timeout, Duration::from_millis);
        let timeout = timeout.min(self.max_timeout);
        let length = arguments.max_output_length.map_or(OUTPUT, |length| {
            usize::try_from(length).unwrap_or(MAX_OUTPUT).min(MAX_OUTPUT)
        });
        let length = length.min(share(arguments.commands.len()));
        let commands = arguments.commands.clone().into_iter().enumerate();
        let commands = stream::iter(commands)
            .map(|(index, command)| async move { self.run_one(index, &command, timeout, length).await })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let (files, skipped_files) = self.session.collect_files().await?;
        Ok(ToolResult::Commands(Box::new(ShellReport {
            commands,
            files,
            skipped_files,
        })))
    }

    async fn run_one(
        &self,
        index: usize,
        command: &str,
        timeout: Duration,
        length: usize,
    ) -> Result<CommandReport> {
        let listener = CommandListener {
            listener: self.listener.as_ref(),
            command: index,
        };
        let report = command::run(&self.session, command, timeout, length, &listener).await?;
        listener.ended(&report).await;
        Ok(report)
    }
}

/// Returns the maximum number of characters of the output of each of so many commands.
fn share(commands: usize) -> usize {
    MAX_OUTPUT.min(MAX_CALL_OUTPUT / commands.max(1))
}

/// Returns the tool as models know it.
pub fn definition(max_timeout: Duration) -> ToolDefinition {
    let seconds = max_timeout.as_secs();
    ToolDefinition::new(
        SHELL,
        "Run commands",
        "Runs commands of bash in a sandbox and returns the output and the exit code of each. The \
         commands of one call run at the same time, each in a separate shell: they share files, and \
         no variables or working directory. To run commands one after the other, join them with `&&` \
         or `;`, or send them in several calls. There is no terminal, and commands cannot ask \
         questions. A process that a command leaves in the background continues until the sandbox \
         ends, so servers can be used in later calls; redirect its output to a file, as too much of it \
         hides the end of the command. A command that reaches its timeout is ended with everything \
         that it started.",
        json!({
            "type": "object",
            "properties": {
                "commands": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": MAX_COMMANDS,
                    "description": "The commands.",
                },
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!(
                        "Milliseconds that each command may run; at most {}.",
                        u128::from(seconds) * 1000
                    ),
                },
                "max_output_length": {
                    "type": "integer",
                    "minimum": 0,
                    "description": format!(
                        "Characters of stdout and stderr together that are returned of each command: \
                         {OUTPUT} by default, at most {MAX_OUTPUT}, and at most {MAX_CALL_OUTPUT} of all \
                         commands of a call, which share them equally."
                    ),
                },
            },
            "required": ["commands"],
            "additionalProperties": false,
        }),
        ToolEffect::Changes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_commands_share_the_output_of_a_call() {
        assert_eq!([1, 5].map(share), [MAX_OUTPUT; 2]);
        assert_eq!(share(8), 125_000);
        assert!(share(MAX_COMMANDS) >= OUTPUT);
        assert!(share(MAX_COMMANDS) * MAX_COMMANDS <= MAX_CALL_OUTPUT);
    }

    #[test]
    fn absent_limits_are_the_defaults() {
        let read = ShellArguments::parse(&json!({"commands": ["ls"], "timeout_ms": null})).unwrap();
        assert_eq!(read.commands, ["ls"]);
        assert_eq!((read.timeout_ms, read.max_output_length), (None, None));
    }
}
