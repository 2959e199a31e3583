//! Outputs for readers that cannot take one back: those that may still change are sent at the end.

use crate::execution::Event;
use crate::output::Output;

/// Outputs of a cell that its reader has not got yet. Once a cell shows a value that it can
/// replace, or clears what it has shown, further outputs wait for its end, so that the reader gets
/// the last ones only.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnsentOutputs {
    /// Outputs that were sent and are still shown.
    sent: usize,
    is_waiting: bool,
    is_clearing: bool,
}

impl UnsentOutputs {
    /// Takes note of an event, and returns it if it is to be sent.
    pub fn pass(&mut self, event: Event) -> Option<Event> {
        let is_clear = matches!(event, Event::Clear { .. });
        if !is_clear && std::mem::take(&mut self.is_clearing) {
            self.sent = 0;
        }
        match event {
            Event::Clear { wait } => {
                self.is_waiting = true;
                self.is_clearing = true;
                if !wait {
                    self.sent = 0;
                }
                None
            }
            Event::Display(_) => {
                self.is_waiting = true;
                None
            }
            // An exception ends the cell.
            Event::Output(Output::Exception(_)) | Event::Stdout(_) | Event::Stderr(_) => Some(event),
            Event::Output(_) if self.is_waiting => None,
            Event::Output(output) => {
                self.sent += 1;
                Some(Event::Output(output))
            }
        }
    }

    /// Returns the outputs that were not sent, of those that a cell shows at its end.
    pub fn rest(self, outputs: &[Output]) -> impl Iterator<Item = &Output> {
        let from = if self.is_waiting { self.sent } else { outputs.len() };
        let rest = outputs.iter().skip(from);
        rest.filter(|output| !matches!(output, Output::Exception(_)))
    }
}
