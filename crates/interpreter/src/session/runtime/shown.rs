//! Outputs of a cell as in a notebook: code can replace a value that it has shown, and remove everything.

use std::collections::HashSet;

use cellblock_sandbox::Limits;

use crate::output::Output;

/// Maximum number of outputs of a cell, with those that it replaces or removes. The kernel sends fewer.
const MAX_TAKEN: u64 = 8192;

/// The outputs that a cell shows now.
#[derive(Debug, Default)]
pub(in crate::session) struct ShownOutputs {
    /// Each with the ID of its display, if it has one.
    all: Vec<(Option<String>, Output)>,
    /// IDs of displays that were removed: a notebook does not show them again.
    removed: HashSet<String>,
    /// Whether the next thing that is shown or printed removes everything before it.
    is_clearing: bool,
    taken: u64,
    taken_bytes: u64,
}

impl ShownOutputs {
    /// Returns whether another output is within the limits, and counts it if it is.
    pub(in crate::session) fn take(
        &mut self,
        output: &cellblock_protocol::Output,
        bytes: u64,
        replaced: Option<&str>,
        limits: &Limits,
    ) -> bool {
        // The exception that ends a cell comes whatever the limit.
        let extra = usize::from(matches!(output, cellblock_protocol::Output::Exception(_)));
        let has_place = replaced.is_some_and(|id| self.has(id) || self.removed.contains(id));
        let is_full = self.all.len() >= limits.outputs as usize + extra && !has_place;
        // As many bytes as the outputs of a cell that replaces none may have.
        let most_bytes = limits.output_bytes.saturating_mul(limits.outputs.into());
        let taken_bytes = self.taken_bytes.saturating_add(bytes);
        let is_too_much = self.taken >= MAX_TAKEN + extra as u64 || taken_bytes > most_bytes;
        if is_full || is_too_much {
            return false;
        }
        self.taken += 1;
        self.taken_bytes = taken_bytes;
        true
    }

    fn has(&self, id: &str) -> bool {
        self.all.iter().any(|(own, _)| own.as_deref() == Some(id))
    }

    /// Shows an output.
    pub(in crate::session) fn show(&mut self, id: Option<String>, output: Output) {
        if let Some(id) = &id {
            self.removed.remove(id);
        }
        self.all.push((id, output));
    }

    /// Replaces what has an ID. What an earlier cell has shown is shown here, because that cell has ended.
    pub(in crate::session) fn replace(&mut self, id: String, output: Output) {
        if self.removed.contains(&id) {
            return;
        }
        if !self.has(&id) {
            return self.show(Some(id), output);
        }
        for (own, shown) in &mut self.all {
            if own.as_ref() == Some(&id) {
                *shown = output.clone();
            }
        }
    }

    /// Removes everything: now, or with `wait` when something is shown or printed. Returns whether it did.
    pub(in crate::session) fn clear(&mut self, wait: bool) -> bool {
        self.is_clearing = true;
        !wait && self.begin()
    }

    /// Something is shown or printed. Returns whether everything before it was removed.
    pub(in crate::session) fn begin(&mut self) -> bool {
        let clears = std::mem::take(&mut self.is_clearing);
        if clears {
            self.removed.extend(self.all.drain(..).filter_map(|(id, _)| id));
        }
        clears
    }

    /// Returns the outputs.
    pub(in crate::session) fn into_outputs(self) -> Vec<Output> {
        self.all.into_iter().map(|(_, output)| output).collect()
    }
}
