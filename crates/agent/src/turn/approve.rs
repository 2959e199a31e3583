//! Approvals in a turn: requests for them, and the calls that were approved since.

use cellblock_interpreter::connector::IntendedWrite;
use cellblock_interpreter::render;
use cellblock_interpreter::session::checkpoints::rehearsals::Rehearsal;
use cellblock_interpreter::toolset::WriteTerms;
use serde::Deserialize;
use serde_json::json;

use super::builder::ResponseBuilder;
use super::call_result::{CallResult, TOKENS};
use super::step::{Call, CallPurpose};
use crate::arguments::ArgumentsDecoder;
use crate::provider::INTERPRETER;
use crate::tools::model_name;
use crate::wire::{Item, McpApprovalRequest, REQUEST_PREFIX, ResponseRequest, approved, arguments_of_code};

/// Arguments of rehearsed code.
#[derive(Deserialize)]
struct RehearsedArguments {
    writes: Vec<IntendedWrite>,
}

impl CallResult {
    /// Returns the same as the result of code that was rehearsed, with the request for its approval.
    #[must_use]
    pub fn of_rehearsal(self, code: &str, requirements: &[String], rehearsal: &Rehearsal) -> Self {
        if !rehearsal.can_be_approved() {
            return self.after(rehearsal.note());
        }
        let asks = json!({"code": code, "requirements": requirements, "writes": rehearsal.writes});
        let note = format!(
            "[rehearsal] Nothing was written yet, and variables and files are as before. The user is asked \
             to approve these calls of the code:\n{}",
            render::stream(&rehearsal.list(), TOKENS)
        );
        Self {
            asks: Some(asks.to_string()),
            ..self.after(&note)
        }
    }
}

impl ResponseBuilder<'_> {
    /// Requests approval of rehearsed code with these arguments.
    pub(super) fn ask(&mut self, arguments: String) {
        let request = McpApprovalRequest {
            id: self.ids.mint(REQUEST_PREFIX),
            server_label: INTERPRETER.to_owned(),
            name: INTERPRETER.to_owned(),
            arguments,
        };
        self.draft.whole_approval_request(request.clone());
        self.asked.push(Item::McpApprovalRequest(request));
    }

    /// Returns the approved calls in a conversation that were not made. A request that only
    /// summarizes makes none.
    pub(super) async fn due(&mut self, asked: &ResponseRequest, items: &[Item]) -> Vec<Call> {
        let mut calls = Vec::new();
        if asked.compaction.now {
            return calls;
        }
        for request in approved(items) {
            let call = if request.runs_code() {
                self.due_code(&request, calls.len()).await
            } else {
                self.due_tool(&request)
            };
            calls.push(call);
        }
        calls
    }

    async fn due_code(&mut self, request: &McpApprovalRequest, before: usize) -> Call {
        let id = request.call_item();
        let refused = |why: &str| Call {
            id: id.clone(),
            name: INTERPRETER.to_owned(),
            namespace: None,
            arguments: arguments_of_code(&request.arguments),
            wants: CallPurpose::Refused(format!("The code was not run: {why}.")),
        };
        if !self.code {
            return refused("the request has no tool `code_interpreter`");
        }
        // A client that keeps conversations itself may have changed them.
        let Ok(RehearsedArguments { writes }) = serde_json::from_str(&request.arguments) else {
            return refused("the approved request has no valid list `writes`");
        };
        let place = self.runner.place(before).await;
        let slot = self.draft.interpreter(id.clone(), place.container().to_owned());
        let mut wants = CallPurpose::Code {
            id: id.clone(),
            slot,
            place,
            decoder: Box::new(ArgumentsDecoder::new("code")),
            writes: WriteTerms::Approved(writes),
        };
        let arguments = arguments_of_code(&request.arguments);
        self.grow(&mut wants, arguments.clone());
        Call {
            id,
            name: INTERPRETER.to_owned(),
            namespace: None,
            arguments,
            wants,
        }
    }

    fn due_tool(&mut self, request: &McpApprovalRequest) -> Call {
        let McpApprovalRequest {
            server_label,
            name,
            arguments,
            ..
        } = request;
        let id = request.call_item();
        let Some(bound) = self.catalog.of_server(server_label, name) else {
            let why = format!(
                "The call was not made: the request offers no tool `{name}` of the server `{server_label}`."
            );
            return Call {
                id,
                name: model_name(name),
                namespace: None,
                arguments: arguments.clone(),
                wants: CallPurpose::Refused(why),
            };
        };
        let bound = Box::new(bound.clone());
        let approval = Some(request.id.clone());
        let slot = self
            .draft
            .mcp_call(id.clone(), server_label.clone(), name.clone(), approval);
        let known_as = bound.name.clone();
        let mut wants = CallPurpose::Tool {
            id: id.clone(),
            slot,
            bound: Some(bound),
        };
        self.grow(&mut wants, arguments.clone());
        Call {
            id,
            name: known_as,
            namespace: None,
            arguments: arguments.clone(),
            wants,
        }
    }
}
