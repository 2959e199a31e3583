//! Requests that answer calls of code: the code, which waits for them, goes on.

use std::collections::HashSet;

use cellblock_agent::turn::SuspendedCode;
use cellblock_agent::wire::{
    ApiError, FunctionCallOutput, FunctionOutput, Item, ResponseRequest, ToolCaller,
};
use serde_json::json;

use crate::records::ItemRow;
use crate::state::responses::WaitingTurn;
use crate::state::{Caller, Gateway};

/// A turn that a request goes on with, and its answers.
#[derive(Debug)]
pub(super) struct ResumedTurn {
    pub(super) turn: WaitingTurn,
    /// Outputs of the code's calls, by their ids.
    pub(super) answers: Vec<(String, FunctionOutput)>,
    /// Outputs of the model's own calls.
    pub(super) others: Vec<Item>,
}

/// Finds the turn whose code waits for this request.
pub(super) fn find(
    gateway: &Gateway,
    caller: &Caller,
    request: &ResponseRequest,
) -> Result<Option<ResumedTurn>, ApiError> {
    let goes_on = request.previous_response_id.is_some() || request.conversation.is_some();
    let is = |turn: &WaitingTurn| match (&request.previous_response_id, &request.conversation) {
        (Some(previous), _) => turn.response == *previous,
        (None, Some(_)) => turn.conversation == request.conversation,
        (None, None) => request.input.iter().any(
            |item| matches!(item, Item::FunctionCallOutput(output) if turn.calls.contains(&output.call_id)),
        ),
    };
    let Some(turn) = gateway.responses.suspended.find(&caller.owner, is) else {
        return Ok(None);
    };
    // The model's calls in other forms may be answered at the same time.
    let input: Vec<_> = request.input.iter().filter_map(output).collect();
    let outputs = || input.iter();
    let answered: Vec<_> = outputs().map(|output| &output.call_id).collect();
    let invalid = |code, message| Err(ApiError::invalid("input", code, message));
    if let Some(missing) = turn.calls.iter().find(|id| !answered.contains(id)) {
        let message = format!(
            "code waits for the output of the call `{missing}`; send a `function_call_output` \
             with its `call_id`"
        );
        return invalid("missing_call_output", message);
    }
    let mut once = HashSet::new();
    if let Some(twice) = answered.iter().find(|id| !once.insert(id.as_str())) {
        return invalid(
            "duplicate_call_output",
            format!("the call `{twice}` has two outputs; send one"),
        );
    }
    // So may its searches, whose outputs have tools.
    let searched = || {
        request
            .input
            .iter()
            .filter(|item| matches!(item, Item::ToolSearchOutput(_)))
    };
    if goes_on && input.len() + searched().count() < request.input.len() {
        let message = "code waits for the outputs of its calls: send only these now, and the rest after \
                       the next response";
        return invalid("invalid_value", message.to_owned());
    }
    let mut answers = Vec::new();
    let mut others = Vec::new();
    for output in outputs() {
        if turn.calls.contains(&output.call_id) {
            answers.push((output.call_id.clone(), output.output.clone()));
        } else if goes_on || is_open(&turn.items, &output.call_id) {
            others.push(Item::FunctionCallOutput(output.clone()));
        }
    }
    let open = |item: &&Item| match item {
        Item::ToolSearchOutput(output) => {
            let id = output.call_id.as_deref();
            goes_on || id.is_some_and(|id| is_open(&turn.items, id))
        }
        _ => false,
    };
    others.extend(searched().filter(open).cloned());
    Ok(Some(ResumedTurn {
        turn,
        answers,
        others,
    }))
}

/// Returns the output of a call in the form of a function's.
fn output(item: &Item) -> Option<FunctionCallOutput> {
    match item {
        Item::FunctionCallOutput(output) => Some(output.clone()),
        Item::ShellCallOutput(_)
        | Item::ApplyPatchCallOutput(_)
        | Item::CustomToolCallOutput(_)
        | Item::LocalShellCallOutput(_) => match item.clone().into_function() {
            Item::FunctionCallOutput(output) => Some(output),
            _ => None,
        },
        _ => None,
    }
}

/// Whether items have this call, and no output of it.
fn is_open(items: &[Item], call_id: &str) -> bool {
    let called = |item: &Item| matches!(item, Item::FunctionCall(call) if call.call_id == call_id);
    let answers = |item: &Item| matches!(item, Item::FunctionCallOutput(output) if output.call_id == call_id);
    items.iter().any(called) && !items.iter().any(answers)
}

impl ResumedTurn {
    /// Takes the code, with its answers. Another request may have done so meanwhile.
    pub(super) fn take(self, gateway: &Gateway) -> Result<SuspendedCode, ApiError> {
        let WaitingTurn { owner, response, .. } = &self.turn;
        let Some(mut code) = gateway.responses.suspended.take(owner, response) else {
            let message =
                format!("the code of `{response}` does not wait for the outputs of its calls any more");
            return Err(ApiError::invalid("input", "unknown_call_id", message));
        };
        for (call_id, output) in &self.answers {
            code.answer(call_id, output);
        }
        Ok(code)
    }

    /// Returns the answers as rows of a conversation: the model knows nothing of them.
    pub(super) fn rows(&self, input: &[Item]) -> Vec<ItemRow> {
        let answers = input.iter().filter(|item| {
            matches!(item, Item::FunctionCallOutput(output) if self.turn.calls.contains(&output.call_id))
        });
        let row = |item: &Item| ItemRow {
            id: item.id().to_owned(),
            body: json!(item).to_string(),
            items: json!([]).to_string(),
        };
        answers.map(row).collect()
    }
}

/// Returns the input of a request that goes on with no code, without calls of earlier code: the
/// model reads what became of the code instead.
pub(super) fn without_calls_of_code(input: &[Item]) -> Result<Vec<Item>, ApiError> {
    let mut calls = HashSet::new();
    let mut running = HashSet::new();
    let programs = input.iter().filter_map(|item| match item {
        Item::Program(program) => Some(program.call_id.as_str()),
        _ => None,
    });
    // Programs run again with their calls.
    let programs: HashSet<_> = programs.collect();
    for item in input {
        match item {
            Item::FunctionCall(call) => {
                if let Some(ToolCaller::Program { caller_id }) = &call.caller
                    && !programs.contains(caller_id.as_str())
                {
                    calls.insert(call.call_id.as_str());
                    running.insert(caller_id.as_str());
                }
            }
            Item::CodeInterpreterCall(call) if !call.status.is_running() => {
                running.remove(call.id.as_str());
            }
            _ => {}
        }
    }
    let mut kept = Vec::with_capacity(input.len());
    for item in input {
        match item {
            Item::FunctionCall(call) if calls.contains(call.call_id.as_str()) => {}
            Item::FunctionCallOutput(output) if calls.contains(output.call_id.as_str()) => {}
            Item::CodeInterpreterCall(call) if running.contains(call.id.as_str()) => {
                let message = format!(
                    "the code `{}` does not wait for the outputs of its calls any more; leave it and its \
                     calls out",
                    call.id
                );
                return Err(ApiError::invalid("input", "unknown_call_id", message));
            }
            Item::CodeInterpreterCall(call) if call.status.is_running() => {}
            item => kept.push(item.clone()),
        }
    }
    Ok(kept)
}
