//! Calls and other items that the client gets whole, because it cannot use half of one.

use super::Draft;
use crate::wire::approval::McpApprovalRequest;
use crate::wire::custom::CustomCall;
use crate::wire::event::EventKind;
use crate::wire::item::{Compaction, Item, ItemStatus};
use crate::wire::local_shell::LocalShellCall;
use crate::wire::patch::PatchCall;
use crate::wire::program::{Program, ProgramOutput};
use crate::wire::search::{SearchCall, SearchOutput};

impl Draft {
    /// Writes a whole change of a file. Its diff has no events: OpenAI's own clients fail at them.
    pub fn whole_patch_call(&mut self, call: PatchCall) {
        let begun = PatchCall {
            status: ItemStatus::InProgress,
            operation: call.operation.begun(),
            ..call.clone()
        };
        let index = self.add(Item::ApplyPatchCall(begun));
        self.response.output[index] = Item::ApplyPatchCall(call);
        self.close(index, ItemStatus::Completed);
    }

    /// Writes a whole request for approval, which has no other events.
    pub fn whole_approval_request(&mut self, request: McpApprovalRequest) {
        let index = self.add(Item::McpApprovalRequest(request));
        self.close(index, ItemStatus::Completed);
    }

    /// Writes a whole compaction: half of one cannot be read.
    pub fn whole_compaction(&mut self, id: String, encrypted_content: String) {
        let index = self.add(Item::Compaction(Compaction {
            id: id.clone(),
            encrypted_content: String::new(),
        }));
        let (item_id, output_index) = self.at(index);
        self.tell(EventKind::Compacting {
            item_id,
            output_index,
        });
        self.response.output[index] = Item::Compaction(Compaction {
            id,
            encrypted_content,
        });
        self.close(index, ItemStatus::Completed);
    }

    /// Writes a whole command, which has no other events.
    pub fn whole_local_shell_call(&mut self, call: LocalShellCall) {
        let index = self.add(Item::LocalShellCall(LocalShellCall {
            status: ItemStatus::InProgress,
            ..call
        }));
        self.close(index, ItemStatus::Completed);
    }

    /// Writes a whole program. Its code has no events, and clients need it when the item starts.
    pub fn whole_program(&mut self, program: Program) {
        let index = self.add(Item::Program(program));
        self.close(index, ItemStatus::Completed);
    }

    /// Writes the whole output of a program, whose status is known from the start.
    pub fn whole_program_output(&mut self, output: ProgramOutput) {
        let status = output.status;
        let index = self.add(Item::ProgramOutput(output));
        self.close(index, status);
    }

    /// Writes a whole search, which has no other events.
    pub fn whole_search_call(&mut self, call: SearchCall) {
        let index = self.add(Item::ToolSearchCall(SearchCall {
            status: ItemStatus::InProgress,
            ..call
        }));
        self.close(index, ItemStatus::Completed);
    }

    /// Writes the tools that a search loaded.
    pub fn whole_search_output(&mut self, output: SearchOutput) {
        let index = self.add(Item::ToolSearchOutput(SearchOutput {
            status: ItemStatus::InProgress,
            tools: Vec::new(),
            ..output.clone()
        }));
        self.response.output[index] = Item::ToolSearchOutput(output);
        self.close(index, ItemStatus::Completed);
    }

    /// Writes a whole call of a tool that takes one text.
    pub fn whole_custom_call(&mut self, call: CustomCall) {
        let index = self.add(Item::CustomToolCall(CustomCall {
            status: ItemStatus::InProgress,
            input: String::new(),
            ..call.clone()
        }));
        let input = call.input.clone();
        self.response.output[index] = Item::CustomToolCall(call);
        let (item_id, output_index) = self.at(index);
        self.tell(EventKind::CustomInputDelta {
            item_id: item_id.clone(),
            output_index,
            delta: input.clone(),
        });
        self.tell(EventKind::CustomInputDone {
            item_id,
            output_index,
            input,
        });
        self.close(index, ItemStatus::Completed);
    }
}
