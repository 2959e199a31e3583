//! Listener to one command of a call.

use super::report::{CommandReport, ShellEvent, ShellListener};
use crate::session::processes::ProcessStream;

/// The listener of a call, for one of its commands.
#[derive(Debug)]
pub(super) struct CommandListener<'a> {
    pub(super) listener: Option<&'a ShellListener>,
    /// Index of the command.
    pub(super) command: usize,
}

impl CommandListener<'_> {
    /// Sends text that the command wrote; waits for a listener that reads slowly.
    pub(super) async fn wrote(&self, stream: ProcessStream, text: String) {
        if !text.is_empty() {
            let command = self.command;
            self.send(ShellEvent::Wrote {
                command,
                stream,
                text,
            })
            .await;
        }
    }

    /// Sends the end of the command.
    pub(super) async fn ended(&self, report: &CommandReport) {
        let (command, report) = (self.command, report.clone());
        self.send(ShellEvent::Ended { command, report }).await;
    }

    async fn send(&self, event: ShellEvent) {
        if let Some(listener) = self.listener {
            // A listener that is gone is noticed by the call.
            let _ = listener.send(event).await;
        }
    }
}
