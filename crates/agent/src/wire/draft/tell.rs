//! Changes of a draft's items, and the events that report them.

use super::{Draft, ReportStage};
use crate::wire::content::Part;
use crate::wire::event::{EventKind, StreamEvent};
use crate::wire::item::{Item, ItemStatus};

impl Draft {
    pub(super) fn tell(&mut self, kind: EventKind) {
        let sequence_number = self.next;
        self.next += 1;
        self.events.push(StreamEvent {
            kind,
            sequence_number,
        });
    }

    pub(super) fn at(&self, index: usize) -> (String, usize) {
        (self.response.output[index].id().to_owned(), index)
    }

    pub(super) fn add(&mut self, item: Item) -> usize {
        let output_index = self.response.output.len();
        self.response.output.push(item.clone());
        self.told.push(ReportStage::Open);
        let item = Box::new(item);
        self.tell(EventKind::ItemAdded { output_index, item });
        output_index
    }

    /// Returns the parts of a message or of reasoning.
    pub(super) fn parts(&mut self, index: usize) -> &mut [Part] {
        match &mut self.response.output[index] {
            Item::Message(message) => &mut message.content,
            Item::Reasoning(reasoning) => reasoning.content.as_deref_mut().unwrap_or_default(),
            _ => &mut [],
        }
    }

    /// Returns the index of the last part of the same kind as `empty`: an existing or a new one.
    pub(super) fn part(&mut self, index: usize, empty: Part) -> Option<usize> {
        let parts = self.parts(index);
        let content_index = parts.len();
        let same = std::mem::discriminant(&empty);
        if parts
            .last()
            .is_some_and(|part| std::mem::discriminant(part) == same)
        {
            return Some(content_index - 1);
        }
        self.end_part(index);
        match &mut self.response.output[index] {
            Item::Message(message) => message.content.push(empty.clone()),
            Item::Reasoning(reasoning) => reasoning.content.get_or_insert_default().push(empty.clone()),
            _ => return None,
        }
        let (item_id, output_index) = self.at(index);
        self.tell(EventKind::PartAdded {
            item_id,
            output_index,
            content_index,
            part: empty,
        });
        Some(content_index)
    }

    /// Sends the end of the last part.
    pub(super) fn end_part(&mut self, index: usize) {
        let (item_id, output_index) = self.at(index);
        let parts = self.parts(index);
        let Some(part) = parts.last().cloned() else { return };
        let content_index = parts.len() - 1;
        let id = item_id.clone();
        self.tell(match part.clone() {
            Part::Refusal { refusal } => EventKind::RefusalDone {
                item_id: id,
                output_index,
                content_index,
                refusal,
            },
            Part::ReasoningText { text } => EventKind::ReasoningDone {
                item_id: id,
                output_index,
                content_index,
                text,
            },
            Part::OutputText { text, .. } => EventKind::TextDone {
                item_id: id,
                output_index,
                content_index,
                text,
                logprobs: Vec::new(),
            },
            _ => return,
        });
        self.tell(EventKind::PartDone {
            item_id,
            output_index,
            content_index,
            part,
        });
    }

    pub(super) fn end_code(&mut self, index: usize) {
        let (item_id, output_index) = self.at(index);
        let Item::CodeInterpreterCall(call) = &self.response.output[index] else {
            return;
        };
        let code = call.code.clone().unwrap_or_default();
        self.told[index] = ReportStage::Code;
        self.tell(EventKind::CodeDone {
            item_id,
            output_index,
            code,
        });
    }

    pub(super) fn close(&mut self, index: usize, status: ItemStatus) {
        if self.told[index] == ReportStage::Done {
            return;
        }
        let (item_id, output_index) = self.at(index);
        match &self.response.output[index] {
            Item::Message(_) | Item::Reasoning(_) => self.end_part(index),
            Item::FunctionCall(call) => {
                let (name, arguments) = (call.name.clone(), call.arguments.clone());
                self.tell(EventKind::ArgumentsDone {
                    item_id,
                    output_index,
                    name,
                    arguments,
                });
            }
            Item::CodeInterpreterCall(_) => {
                if self.told[index] == ReportStage::Open {
                    self.end_code(index);
                }
                if status == ItemStatus::Completed {
                    self.tell(EventKind::InterpreterCompleted {
                        item_id,
                        output_index,
                    });
                }
            }
            Item::McpListTools(_) | Item::McpCall(_) => self.close_mcp(index, status),
            Item::FunctionCallOutput(_)
            | Item::ShellCall(_)
            | Item::ShellCallOutput(_)
            | Item::ApplyPatchCall(_)
            | Item::ApplyPatchCallOutput(_)
            | Item::LocalShellCall(_)
            | Item::LocalShellCallOutput(_)
            | Item::CustomToolCall(_)
            | Item::CustomToolCallOutput(_)
            | Item::McpApprovalRequest(_)
            | Item::McpApprovalResponse(_)
            | Item::Program(_)
            | Item::ProgramOutput(_)
            | Item::ToolSearchCall(_)
            | Item::ToolSearchOutput(_)
            | Item::Compaction(_)
            | Item::ItemReference(_) => {}
        }
        self.told[index] = ReportStage::Done;
        self.response.output[index].set_status(status);
        let item = Box::new(self.response.output[index].clone());
        self.tell(EventKind::ItemDone { output_index, item });
    }

    pub(super) fn close_all(&mut self) {
        for index in 0..self.told.len() {
            self.close(index, ItemStatus::Incomplete);
        }
    }
}
