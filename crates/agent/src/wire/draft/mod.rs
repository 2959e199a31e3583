//! A response under construction: each step returns its events, in an order that clients accept.
//!
//! ```text
//! begin ─> message ─> text* ─> end_message ─────────────────┐
//!      ├─> reasoning ─> think* ─> end_reasoning ────────────┤
//!      ├─> function_call ─> arguments* ─> end_function_call ┼─> complete | incomplete | fail
//!      ├─> interpreter ─> code* ─> interpret ─> end_interpreter
//!      ├─> whole_patch_call, whole_custom_call, whole_compaction, whole_program, whole_program_output,
//!      │   whole_search_call, whole_search_output (`whole`)
//!      ├─> whole_shell_call ─> shell_output ─> shell_wrote*, end_shell_command* ─> end_shell (see `shell`)
//!      └─> mcp_list ─> end_mcp_list, mcp_call ─> mcp_arguments* ─> call_mcp ─> end_mcp_call (see `mcp`)
//! ```
//!
//! Items may be written concurrently. Items that are still open at the end are closed as
//! incomplete, so that no stream ends with half an item.

mod mcp;
mod shell;
mod tell;
mod whole;

use crate::wire::call_report::CallReport;
use crate::wire::content::{Annotation, Part};
use crate::wire::error::ApiError;
use crate::wire::event::{EventKind, StreamError, StreamEvent};
use crate::wire::item::{
    CodeInterpreterCall, FunctionCall, InterpreterOutput, Item, ItemStatus, Message, Reasoning, Role,
};
use crate::wire::report::TurnReport;
use crate::wire::response::{Failure, IncompleteReason, Response, ResponseStatus, TokenUsage};

/// A response under construction.
#[derive(Debug)]
pub struct Draft {
    response: Response,
    /// Progress of each item's events.
    told: Vec<ReportStage>,
    events: Vec<StreamEvent>,
    next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportStage {
    /// The item can be added to.
    Open,
    /// The code, or the arguments of the call, are complete.
    Code,
    /// The item is final.
    Done,
}

/// A message under construction.
#[derive(Debug)]
pub struct MessageSlot(usize);

/// Reasoning under construction.
#[derive(Debug)]
pub struct ReasoningSlot(usize);

/// A function call under construction.
#[derive(Debug)]
pub struct CallSlot(usize);

pub use mcp::{McpListSlot, McpSlot};
pub use shell::ShellSlot;

/// A call of the interpreter, under construction or running.
#[derive(Debug)]
pub struct InterpreterSlot(usize);

impl Draft {
    /// Starts a response.
    pub fn begin(response: Response) -> Self {
        let mut draft = Self {
            response,
            told: Vec::new(),
            events: Vec::new(),
            next: 0,
        };
        draft.response.status = ResponseStatus::InProgress;
        let response = Box::new(draft.response.clone());
        draft.tell(EventKind::Created {
            response: response.clone(),
        });
        draft.tell(EventKind::InProgress { response });
        draft
    }

    /// Returns the events since the last call.
    pub fn take(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the response so far.
    pub const fn response(&self) -> &Response {
        &self.response
    }

    /// Sets the turn's report.
    pub fn report(&mut self, report: TurnReport) {
        self.response.cellblock = Some(Box::new(report));
    }

    /// Starts a message.
    pub fn message(&mut self, id: String) -> MessageSlot {
        MessageSlot(self.add(Item::Message(Message {
            id,
            status: ItemStatus::InProgress,
            role: Role::Assistant,
            content: Vec::new(),
            phase: None,
        })))
    }

    /// Adds text to a message.
    pub fn text(&mut self, slot: &MessageSlot, delta: impl Into<String>) {
        let delta = delta.into();
        let (item_id, output_index) = self.at(slot.0);
        let Some(content_index) = self.part(slot.0, Part::output_text(String::new())) else {
            return;
        };
        if let Some(Part::OutputText { text, .. }) = self.parts(slot.0).last_mut() {
            text.push_str(&delta);
        }
        self.tell(EventKind::TextDelta {
            item_id,
            output_index,
            content_index,
            delta,
            logprobs: Vec::new(),
        });
    }

    /// Adds to a message's refusal.
    pub fn refuse(&mut self, slot: &MessageSlot, delta: impl Into<String>) {
        let delta = delta.into();
        let (item_id, output_index) = self.at(slot.0);
        let refusal = String::new();
        let Some(content_index) = self.part(slot.0, Part::Refusal { refusal }) else {
            return;
        };
        if let Some(Part::Refusal { refusal }) = self.parts(slot.0).last_mut() {
            refusal.push_str(&delta);
        }
        self.tell(EventKind::RefusalDelta {
            item_id,
            output_index,
            content_index,
            delta,
        });
    }

    /// Adds a reference of a range in the message's last text.
    pub fn annotate(&mut self, slot: &MessageSlot, annotation: Annotation) {
        let (item_id, output_index) = self.at(slot.0);
        let Some(content_index) = self.part(slot.0, Part::output_text(String::new())) else {
            return;
        };
        let Some(Part::OutputText { annotations, .. }) = self.parts(slot.0).last_mut() else {
            return;
        };
        annotations.push(annotation.clone());
        let annotation_index = annotations.len() - 1;
        self.tell(EventKind::AnnotationAdded {
            item_id,
            output_index,
            content_index,
            annotation_index,
            annotation,
        });
    }

    /// Ends a message.
    #[expect(clippy::needless_pass_by_value, reason = "nothing can be added after the end")]
    pub fn end_message(&mut self, slot: MessageSlot) {
        self.close(slot.0, ItemStatus::Completed);
    }

    /// Starts reasoning.
    pub fn reasoning(&mut self, id: String) -> ReasoningSlot {
        ReasoningSlot(self.add(Item::Reasoning(Reasoning {
            id,
            status: ItemStatus::InProgress,
            summary: Vec::new(),
            content: None,
            encrypted_content: None,
        })))
    }

    /// Adds to reasoning.
    pub fn think(&mut self, slot: &ReasoningSlot, delta: impl Into<String>) {
        let delta = delta.into();
        let (item_id, output_index) = self.at(slot.0);
        let text = String::new();
        let Some(content_index) = self.part(slot.0, Part::ReasoningText { text }) else {
            return;
        };
        if let Some(Part::ReasoningText { text }) = self.parts(slot.0).last_mut() {
            text.push_str(&delta);
        }
        self.tell(EventKind::ReasoningDelta {
            item_id,
            output_index,
            content_index,
            delta,
        });
    }

    /// Sets the sealed form of reasoning, which is sent with the whole item.
    pub fn seal(&mut self, slot: &ReasoningSlot, content: String) {
        if let Item::Reasoning(reasoning) = &mut self.response.output[slot.0] {
            reasoning.encrypted_content = Some(content);
        }
    }

    /// Ends reasoning.
    #[expect(clippy::needless_pass_by_value, reason = "nothing can be added after the end")]
    pub fn end_reasoning(&mut self, slot: ReasoningSlot) {
        self.close(slot.0, ItemStatus::Completed);
    }

    /// Starts a call of one of the client's functions.
    pub fn function_call(
        &mut self,
        id: String,
        call_id: String,
        namespace: Option<String>,
        name: String,
    ) -> CallSlot {
        CallSlot(self.add(Item::FunctionCall(FunctionCall {
            id,
            status: ItemStatus::InProgress,
            call_id,
            name,
            namespace,
            arguments: String::new(),
            caller: None,
        })))
    }

    /// Adds to a call's arguments.
    pub fn arguments(&mut self, slot: &CallSlot, delta: impl Into<String>) {
        let delta = delta.into();
        let (item_id, output_index) = self.at(slot.0);
        if let Item::FunctionCall(call) = &mut self.response.output[slot.0] {
            call.arguments.push_str(&delta);
        }
        self.tell(EventKind::ArgumentsDelta {
            item_id,
            output_index,
            delta,
        });
    }

    /// Ends a function call.
    #[expect(clippy::needless_pass_by_value, reason = "nothing can be added after the end")]
    pub fn end_function_call(&mut self, slot: CallSlot) {
        self.close(slot.0, ItemStatus::Completed);
    }

    /// Writes a whole call of one of the client's functions.
    pub fn whole_function_call(&mut self, call: FunctionCall) {
        let arguments = call.arguments;
        let slot = CallSlot(self.add(Item::FunctionCall(FunctionCall {
            status: ItemStatus::InProgress,
            arguments: String::new(),
            ..call
        })));
        self.arguments(&slot, arguments);
        self.end_function_call(slot);
    }

    /// Starts a call of the interpreter. Its container is sent before any code: some clients need
    /// both to create their call.
    pub fn interpreter(&mut self, id: String, container_id: String) -> InterpreterSlot {
        let index = self.add(Item::CodeInterpreterCall(CodeInterpreterCall {
            id,
            status: ItemStatus::InProgress,
            container_id,
            code: Some(String::new()),
            outputs: None,
            report: None,
        }));
        let (item_id, output_index) = self.at(index);
        self.tell(EventKind::InterpreterInProgress {
            item_id,
            output_index,
        });
        InterpreterSlot(index)
    }

    /// Adds to a call's code. After [`interpret`](Self::interpret) the code is final, and nothing
    /// happens.
    pub fn code(&mut self, slot: &InterpreterSlot, delta: impl Into<String>) {
        if self.told[slot.0] != ReportStage::Open {
            return;
        }
        let delta = delta.into();
        let (item_id, output_index) = self.at(slot.0);
        if let Item::CodeInterpreterCall(call) = &mut self.response.output[slot.0] {
            call.code.get_or_insert_default().push_str(&delta);
        }
        self.tell(EventKind::CodeDelta {
            item_id,
            output_index,
            delta,
        });
    }

    /// Marks the code as complete, when it starts to run. Happens once.
    pub fn interpret(&mut self, slot: &InterpreterSlot) {
        if self.told[slot.0] != ReportStage::Open {
            return;
        }
        self.end_code(slot.0);
        self.response.output[slot.0].set_status(ItemStatus::Interpreting);
        let (item_id, output_index) = self.at(slot.0);
        self.tell(EventKind::InterpreterInterpreting {
            item_id,
            output_index,
        });
    }

    /// Notes what the code did, which is sent with the whole item.
    pub fn report_run(&mut self, slot: &InterpreterSlot, report: CallReport) {
        if let Item::CodeInterpreterCall(call) = &mut self.response.output[slot.0] {
            call.report = Some(Box::new(report));
        }
    }

    /// Ends a call of the interpreter: `completed` only if the code completed. Only the item's
    /// status reports a failure, because clients know no event for it.
    #[expect(clippy::needless_pass_by_value, reason = "nothing can be added after the end")]
    pub fn end_interpreter(
        &mut self,
        slot: InterpreterSlot,
        status: ItemStatus,
        outputs: Option<Vec<InterpreterOutput>>,
    ) {
        if status == ItemStatus::Completed {
            self.interpret(&slot);
        }
        if let Item::CodeInterpreterCall(call) = &mut self.response.output[slot.0] {
            call.outputs = outputs;
        }
        self.close(slot.0, status);
    }

    /// Ends a call of the interpreter in this response only: its code runs on, and another response
    /// goes on with it.
    #[expect(clippy::needless_pass_by_value, reason = "nothing can be added after the end")]
    pub fn leave_interpreter(&mut self, slot: InterpreterSlot) -> Option<CodeInterpreterCall> {
        let Item::CodeInterpreterCall(call) = &self.response.output[slot.0] else {
            return None;
        };
        let call = call.clone();
        self.close(slot.0, call.status);
        Some(call)
    }

    /// Goes on with a call of the interpreter that another response has left.
    pub fn resume_interpreter(&mut self, call: CodeInterpreterCall) -> InterpreterSlot {
        let slot = self.interpreter(call.id, call.container_id);
        self.code(&slot, call.code.unwrap_or_default());
        if call.status == ItemStatus::Interpreting {
            self.interpret(&slot);
        }
        slot
    }

    /// Completes the response. It is incomplete if an item was left open. `now` is in seconds since
    /// 1970.
    pub fn complete(self, usage: TokenUsage, now: u64) -> (Response, Vec<StreamEvent>) {
        if self.told.iter().any(|told| *told != ReportStage::Done) {
            return self.incomplete("unfinished_item", usage);
        }
        self.end(ResponseStatus::Completed, Some(usage), |response| {
            response.completed_at = Some(now);
        })
    }

    /// Ends the response early.
    pub fn incomplete(self, reason: &str, usage: TokenUsage) -> (Response, Vec<StreamEvent>) {
        let reason = reason.to_owned();
        self.end(ResponseStatus::Incomplete, Some(usage), |response| {
            response.incomplete_details = Some(IncompleteReason { reason });
        })
    }

    /// Ends the response with an error.
    pub fn fail(mut self, error: ApiError, usage: Option<TokenUsage>) -> (Response, Vec<StreamEvent>) {
        let failure = Failure {
            code: error.code.clone().unwrap_or_else(|| "server_error".to_owned()),
            message: error.message.clone(),
        };
        self.close_all();
        self.tell(EventKind::Error(StreamError(error)));
        self.end(ResponseStatus::Failed, usage, |response| {
            response.error = Some(failure);
        })
    }

    fn end(
        mut self,
        status: ResponseStatus,
        usage: Option<TokenUsage>,
        change: impl FnOnce(&mut Response),
    ) -> (Response, Vec<StreamEvent>) {
        self.close_all();
        self.response.status = status;
        self.response.usage = usage;
        change(&mut self.response);
        let response = Box::new(self.response.clone());
        self.tell(match status {
            ResponseStatus::Completed => EventKind::Completed { response },
            ResponseStatus::Incomplete => EventKind::Incomplete { response },
            _ => EventKind::Failed { response },
        });
        (self.response, self.events)
    }
}
