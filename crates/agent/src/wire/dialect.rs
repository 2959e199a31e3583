//! Additional or renamed events that a client requests, numbered consistently.

use super::event::{EventKind, StreamEvent};
use super::item::{Item, ItemStatus};

/// A client's choice of events. By default, those that OpenAI's own SDKs know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// Adds `response.code_interpreter_call.failed` before the item of code that did not complete.
    /// OpenAI's SDK for Node aborts at unknown events.
    pub failed: bool,
    /// Sends reasoning as `response.reasoning.delta` and `.done`, the names in Open Responses.
    pub open_responses: bool,
    /// Reports code that did not complete as `completed`; its logs say what happened. The tool runner of
    /// OpenAI's SDK for Python ends at other statuses, before its model can repair anything.
    pub completed: bool,
}

impl Dialect {
    /// Adds a client's comma-separated options, such as `failed, open_responses`. Unknown options
    /// are ignored, so that a client can send newer options to older gateways.
    #[must_use]
    pub fn and(mut self, asked: &str) -> Self {
        for word in asked.split(',').map(str::trim) {
            match word {
                "failed" => self.failed = true,
                "open_responses" => self.open_responses = true,
                "completed" => self.completed = true,
                _ => {}
            }
        }
        self
    }

    /// Returns the events to send for an event: itself, possibly renamed, and any that precede it.
    pub fn tell(self, mut kind: EventKind) -> impl Iterator<Item = EventKind> {
        let before = self.failed.then(|| failure(&kind)).flatten();
        let completed = self.completed.then(|| completion(&mut kind)).flatten();
        let kind = if self.open_responses { open(kind) } else { kind };
        before.into_iter().chain(completed).chain([kind])
    }

    /// Gives the items of a response the statuses that its events had.
    pub fn settle(self, output: &mut [Item]) {
        for item in output.iter_mut().filter(|_| self.completed) {
            complete(item);
        }
    }
}

/// Numbers events from 0, without gaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers(u64);

impl Numbers {
    /// Returns an event with the next number.
    pub fn next(&mut self, kind: EventKind) -> StreamEvent {
        let sequence_number = self.0;
        self.0 += 1;
        StreamEvent {
            kind,
            sequence_number,
        }
    }
}

fn failure(kind: &EventKind) -> Option<EventKind> {
    let EventKind::ItemDone { output_index, item } = kind else {
        return None;
    };
    match &**item {
        // Code that waits for the client has not failed.
        Item::CodeInterpreterCall(call)
            if matches!(call.status, ItemStatus::Incomplete | ItemStatus::Failed) =>
        {
            let (item_id, output_index) = (call.id.clone(), *output_index);
            Some(EventKind::InterpreterFailed {
                item_id,
                output_index,
            })
        }
        _ => None,
    }
}

/// Completes the item of code that did not complete, and returns the event that says so.
fn completion(kind: &mut EventKind) -> Option<EventKind> {
    let EventKind::ItemDone { output_index, item } = kind else {
        return None;
    };
    complete(item).then(|| EventKind::InterpreterCompleted {
        item_id: item.id().to_owned(),
        output_index: *output_index,
    })
}

/// Completes an item of code that did not complete. Code that waits for the client stays as it is.
fn complete(item: &mut Item) -> bool {
    match item {
        Item::CodeInterpreterCall(call)
            if matches!(call.status, ItemStatus::Incomplete | ItemStatus::Failed) =>
        {
            call.status = ItemStatus::Completed;
            true
        }
        _ => false,
    }
}

fn open(kind: EventKind) -> EventKind {
    match kind {
        EventKind::ReasoningDelta {
            item_id,
            output_index,
            content_index,
            delta,
        } => EventKind::OpenReasoningDelta {
            item_id,
            output_index,
            content_index,
            delta,
        },
        EventKind::ReasoningDone {
            item_id,
            output_index,
            content_index,
            text,
        } => EventKind::OpenReasoningDone {
            item_id,
            output_index,
            content_index,
            text,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::CodeInterpreterCall;

    fn ended(status: ItemStatus) -> EventKind {
        EventKind::ItemDone {
            output_index: 3,
            item: Box::new(Item::CodeInterpreterCall(CodeInterpreterCall {
                id: "ci_1".to_owned(),
                status,
                container_id: "cntr_1".to_owned(),
                code: Some(String::new()),
                outputs: None,
                report: None,
            })),
        }
    }

    fn names(dialect: Dialect, kind: EventKind) -> Vec<String> {
        let mut numbers = Numbers::default();
        let told = dialect.tell(kind).map(|kind| numbers.next(kind).frame());
        told.map(|frame| frame.lines().next().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn failed_code_has_its_own_event_only_on_request() {
        let done = "event: response.output_item.done";
        assert_eq!(names(Dialect::default(), ended(ItemStatus::Failed)), [done]);
        let asked = Dialect::default().and("failed, something_newer");
        assert_eq!(
            names(asked, ended(ItemStatus::Failed)),
            ["event: response.code_interpreter_call.failed", done]
        );
        assert_eq!(names(asked, ended(ItemStatus::Completed)), [done]);
    }

    #[test]
    fn code_that_did_not_complete_is_reported_as_completed_only_on_request() {
        let done = "event: response.output_item.done";
        let ends = ["event: response.code_interpreter_call.completed", done];
        let asked = Dialect::default().and("completed");
        for status in [ItemStatus::Incomplete, ItemStatus::Failed] {
            assert_eq!(names(asked, ended(status)), ends);
        }
        for status in [ItemStatus::Completed, ItemStatus::Interpreting] {
            assert_eq!(names(asked, ended(status)), [done]);
        }
        let settled = |dialect: Dialect, status| {
            let EventKind::ItemDone { item, .. } = ended(status) else {
                panic!("an item")
            };
            let mut output = [*item];
            dialect.settle(&mut output);
            serde_json::json!(output)[0]["status"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(settled(asked, ItemStatus::Failed), "completed");
        assert_eq!(settled(asked, ItemStatus::Interpreting), "interpreting");
        assert_eq!(settled(Dialect::default(), ItemStatus::Failed), "failed");
    }

    #[test]
    fn reasoning_has_the_requested_event_names() {
        let delta = || EventKind::ReasoningDelta {
            item_id: "rs_1".to_owned(),
            output_index: 0,
            content_index: 0,
            delta: "hm".to_owned(),
        };
        assert_eq!(
            names(Dialect::default(), delta()),
            ["event: response.reasoning_text.delta"]
        );
        let open = Dialect::default().and("open_responses");
        assert_eq!(names(open, delta()), ["event: response.reasoning.delta"]);
    }
}
