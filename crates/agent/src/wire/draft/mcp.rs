//! Lists and calls of servers' tools in a draft.

use super::{Draft, ReportStage};
use crate::wire::call_report::CallReport;
use crate::wire::event::EventKind;
use crate::wire::item::{Item, ItemStatus, ListedTool, McpCall, McpError, McpListTools};

/// A request for a server's tools.
#[derive(Debug)]
pub struct McpListSlot(usize);

/// A call of a server's tool, in progress.
#[derive(Debug)]
pub struct McpSlot(usize);

/// The error of a list that did not end.
const CUT: &str = "the server was not asked to the end";

impl Draft {
    /// Starts the request for a server's tools.
    pub fn mcp_list(&mut self, id: String, server_label: String) -> McpListSlot {
        let index = self.add(Item::McpListTools(McpListTools {
            id,
            server_label,
            tools: Vec::new(),
            error: None,
        }));
        let (item_id, output_index) = self.at(index);
        self.tell(EventKind::McpListInProgress {
            item_id,
            output_index,
        });
        McpListSlot(index)
    }

    /// Sends the server's response.
    #[expect(clippy::needless_pass_by_value, reason = "nothing can be added after the end")]
    pub fn end_mcp_list(&mut self, slot: McpListSlot, answer: Result<Vec<ListedTool>, String>) {
        if let Item::McpListTools(list) = &mut self.response.output[slot.0] {
            match answer {
                Ok(tools) => list.tools = tools,
                Err(error) => list.error = Some(error),
            }
        }
        self.close(slot.0, ItemStatus::Completed);
    }

    /// Starts a call of a server's tool, which may have needed the approval of a request.
    pub fn mcp_call(
        &mut self,
        id: String,
        server_label: String,
        name: String,
        approval_request_id: Option<String>,
    ) -> McpSlot {
        let index = self.add(Item::McpCall(McpCall {
            id,
            status: ItemStatus::InProgress,
            server_label,
            name,
            arguments: String::new(),
            output: None,
            error: None,
            approval_request_id,
            report: None,
        }));
        let (item_id, output_index) = self.at(index);
        self.tell(EventKind::McpInProgress {
            item_id,
            output_index,
        });
        McpSlot(index)
    }

    /// Adds to its arguments.
    pub fn mcp_arguments(&mut self, slot: &McpSlot, delta: impl Into<String>) {
        if self.told[slot.0] != ReportStage::Open {
            return;
        }
        let delta = delta.into();
        let (item_id, output_index) = self.at(slot.0);
        if let Item::McpCall(call) = &mut self.response.output[slot.0] {
            call.arguments.push_str(&delta);
        }
        self.tell(EventKind::McpArgumentsDelta {
            item_id,
            output_index,
            delta,
        });
    }

    /// Marks its arguments as complete, when its server starts to work on it. Happens once.
    pub fn call_mcp(&mut self, slot: &McpSlot) {
        if self.told[slot.0] == ReportStage::Open {
            self.end_mcp_arguments(slot.0);
            self.response.output[slot.0].set_status(ItemStatus::Calling);
        }
    }

    /// Notes what the call did in a sandbox, which is sent with the whole item.
    pub fn report_call(&mut self, slot: &McpSlot, report: CallReport) {
        if let Item::McpCall(call) = &mut self.response.output[slot.0] {
            call.report = Some(Box::new(report));
        }
    }

    /// Ends the call.
    #[expect(clippy::needless_pass_by_value, reason = "nothing can be added after the end")]
    pub fn end_mcp_call(&mut self, slot: McpSlot, came: Result<String, McpError>) {
        let status = match &came {
            Ok(_) => ItemStatus::Completed,
            Err(_) => ItemStatus::Failed,
        };
        if let Item::McpCall(call) = &mut self.response.output[slot.0] {
            match came {
                Ok(output) => call.output = Some(output),
                Err(error) => call.error = Some(error),
            }
        }
        self.close(slot.0, status);
    }

    fn end_mcp_arguments(&mut self, index: usize) {
        let Item::McpCall(call) = &self.response.output[index] else {
            return;
        };
        let arguments = call.arguments.clone();
        let (item_id, output_index) = self.at(index);
        self.told[index] = ReportStage::Code;
        self.tell(EventKind::McpArgumentsDone {
            item_id,
            output_index,
            arguments,
        });
    }

    /// Sends the end of a list or a call; `status` is its final status.
    pub(super) fn close_mcp(&mut self, index: usize, status: ItemStatus) {
        let open = self.told[index] == ReportStage::Open;
        let (item_id, output_index) = self.at(index);
        let kind = match &mut self.response.output[index] {
            Item::McpListTools(list) => {
                if status != ItemStatus::Completed {
                    list.error = Some(CUT.to_owned());
                }
                if list.error.is_none() {
                    EventKind::McpListCompleted {
                        item_id,
                        output_index,
                    }
                } else {
                    EventKind::McpListFailed {
                        item_id,
                        output_index,
                    }
                }
            }
            _ if status == ItemStatus::Completed => EventKind::McpCompleted {
                item_id,
                output_index,
            },
            _ => EventKind::McpFailed {
                item_id,
                output_index,
            },
        };
        if open {
            self.end_mcp_arguments(index);
        }
        self.tell(kind);
    }
}
