//! Commands and their outputs in a draft.

use super::Draft;
use crate::wire::event::{EventKind, ShellDelta};
use crate::wire::item::{Item, ItemStatus};
use crate::wire::shell::{ShellCall, ShellCallOutput, ShellOutcome, ShellOutput};

/// Outputs of commands, under construction.
#[derive(Debug)]
pub struct ShellSlot {
    index: usize,
    /// Whether each command has ended.
    ended: Vec<bool>,
}

impl Draft {
    /// Writes a whole call: each command in full.
    pub fn whole_shell_call(&mut self, call: ShellCall) {
        let commands = call.action.commands.clone();
        let mut empty = call;
        empty.status = ItemStatus::InProgress;
        empty.action.commands.clear();
        let output_index = self.add(Item::ShellCall(empty));
        for (command_index, command) in commands.into_iter().enumerate() {
            self.tell(EventKind::ShellCommandAdded {
                output_index,
                command_index,
                command: String::new(),
            });
            self.tell(EventKind::ShellCommandDelta {
                output_index,
                command_index,
                delta: command.clone(),
            });
            if let Item::ShellCall(call) = &mut self.response.output[output_index] {
                call.action.commands.push(command.clone());
            }
            self.tell(EventKind::ShellCommandDone {
                output_index,
                command_index,
                command,
            });
        }
        self.close(output_index, ItemStatus::Completed);
    }

    /// Starts the outputs of a call.
    pub fn shell_output(&mut self, id: String, call: &ShellCall) -> ShellSlot {
        let commands = call.action.commands.len();
        let index = self.add(Item::ShellCallOutput(ShellCallOutput {
            id,
            status: ItemStatus::InProgress,
            call_id: call.call_id.clone(),
            output: Vec::new(),
            max_output_length: call.action.max_output_length,
        }));
        // Commands that are broken off have no other outcome.
        let unended = ShellOutput {
            stdout: String::new(),
            stderr: String::new(),
            outcome: ShellOutcome::Timeout,
        };
        if let Item::ShellCallOutput(output) = &mut self.response.output[index] {
            output.output = vec![unended; commands];
        }
        let ended = vec![false; commands];
        ShellSlot { index, ended }
    }

    /// Adds text that a command wrote.
    pub fn shell_wrote(&mut self, slot: &ShellSlot, command_index: usize, delta: ShellDelta) {
        if slot.ended.get(command_index) != Some(&false) {
            return;
        }
        let (item_id, output_index) = self.at(slot.index);
        if let Some(output) = self.shell_entry(slot.index, command_index) {
            output
                .stdout
                .push_str(delta.stdout.as_deref().unwrap_or_default());
            output
                .stderr
                .push_str(delta.stderr.as_deref().unwrap_or_default());
        }
        self.tell(EventKind::ShellOutputDelta {
            item_id,
            output_index,
            command_index,
            delta,
        });
    }

    /// Ends a command. Happens once.
    pub fn end_shell_command(&mut self, slot: &mut ShellSlot, command_index: usize, output: ShellOutput) {
        let Some(ended) = slot.ended.get_mut(command_index).filter(|ended| !**ended) else {
            return;
        };
        *ended = true;
        let (item_id, output_index) = self.at(slot.index);
        if let Some(entry) = self.shell_entry(slot.index, command_index) {
            entry.clone_from(&output);
        }
        self.tell(EventKind::ShellOutputDone {
            item_id,
            output_index,
            command_index,
            output: vec![output],
        });
    }

    /// Ends the outputs. Commands whose end was not reported have these outputs, or else what they
    /// wrote and `missing`.
    pub fn end_shell(&mut self, mut slot: ShellSlot, outputs: &[ShellOutput], missing: &str) {
        for command in 0..slot.ended.len() {
            let written = self.shell_entry(slot.index, command).cloned();
            let failed = || {
                let mut failed = written?;
                failed.stderr.push_str(missing);
                // As of a program that could not be run to its end.
                failed.outcome = ShellOutcome::Exit { exit_code: 125 };
                Some(failed)
            };
            if let Some(output) = outputs.get(command).cloned().or_else(failed) {
                self.end_shell_command(&mut slot, command, output);
            }
        }
        self.close(slot.index, ItemStatus::Completed);
    }

    fn shell_entry(&mut self, index: usize, command: usize) -> Option<&mut ShellOutput> {
        match &mut self.response.output[index] {
            Item::ShellCallOutput(output) => output.output.get_mut(command),
            _ => None,
        }
    }
}
