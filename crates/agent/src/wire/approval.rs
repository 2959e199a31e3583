//! Approvals of calls: requests, which end a response, and a person's answers.
//!
//! ```text
//! mcp_approval_request  mcpr_4f…     the call, which is not made yet
//! mcp_approval_response              approve, or deny with a reason
//! mcp_call              mcp_4f…      the approved call; of rehearsed code, code_interpreter_call ci_4f…
//! ```
//!
//! Nothing else remembers a request: its item has the whole call, so that an answer also counts
//! after a restart, and for a response that was not stored. An item with the id of the approved
//! call says that the call was made.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call_kind::served;
use super::error::ApiError;
use super::item::Item;
use super::tool::{AllowedTools, INTERPRETER};

/// Prefix of the ids of approval requests.
pub(crate) const REQUEST_PREFIX: &str = "mcpr";

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpApprovalRequest {
    /// `mcpr_…`.
    pub id: String,
    /// The server's label; `code_interpreter` for code that was rehearsed.
    pub server_label: String,
    /// Name of the tool; `code_interpreter` for code that was rehearsed.
    pub name: String,
    /// JSON as written by the model, possibly invalid; of code, also the calls that it would make.
    pub arguments: String,
}

/// A person's answer to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpApprovalResponse {
    /// `mcpa_…`.
    pub id: String,
    /// Id of the request.
    pub approval_request_id: String,
    /// Whether the call may be made.
    pub approve: bool,
    /// Reason, for the model.
    pub reason: Option<String>,
}

impl McpApprovalRequest {
    /// Returns whether it is for code that was rehearsed.
    pub fn runs_code(&self) -> bool {
        self.server_label == INTERPRETER && self.name == INTERPRETER
    }

    /// Returns the id of the item of the approved call.
    pub fn call_item(&self) -> String {
        let prefix = if self.runs_code() { "ci" } else { "mcp" };
        let id = self.id.strip_prefix(REQUEST_PREFIX).unwrap_or(&self.id);
        format!("{prefix}_{}", id.trim_start_matches('_'))
    }
}

/// Approvals in a conversation.
#[derive(Debug, Default)]
pub(crate) struct ApprovalAnswers<'a> {
    /// Answers by the ids of their requests.
    answers: HashMap<&'a str, &'a McpApprovalResponse>,
    /// Ids of the items of calls that were made.
    made: HashSet<String>,
}

impl<'a> ApprovalAnswers<'a> {
    pub(crate) fn of(items: &'a [Item]) -> Self {
        let mut approvals = Self::default();
        for item in items {
            match item {
                Item::McpApprovalResponse(answer) => {
                    approvals.answers.insert(&answer.approval_request_id, answer);
                }
                Item::FunctionCall(call) => drop(approvals.made.insert(call.id.clone())),
                Item::CodeInterpreterCall(_) | Item::McpCall(_) => {
                    approvals.made.insert(served(item.id()));
                }
                _ => {}
            }
        }
        approvals
    }

    /// Returns whether the call was made after all.
    pub(crate) fn is_made(&self, request: &McpApprovalRequest) -> bool {
        self.made.contains(&served(&request.call_item()))
    }

    /// Returns what the model reads instead of the result of a call that was not made.
    pub(crate) fn unmade(&self, request: &McpApprovalRequest) -> String {
        let Some(answer) = self.answers.get(request.id.as_str()) else {
            return "The call was not made: it needs the user's approval, which the user has not given."
                .to_owned();
        };
        let reason = answer.reason.as_deref().unwrap_or_default().trim();
        let about = if reason.is_empty() {
            String::new()
        } else {
            format!(" The user's reason: {reason}")
        };
        if answer.approve {
            return format!("The call was approved, but it was stopped before it was made.{about}");
        }
        format!("The call was not made: the user denied it, and nothing was changed.{about}")
    }
}

/// Returns the calls in a conversation that are approved and that were not made, in its order.
pub(crate) fn approved(items: &[Item]) -> Vec<McpApprovalRequest> {
    let approvals = ApprovalAnswers::of(items);
    let requests = items.iter().filter_map(|item| match item {
        Item::McpApprovalRequest(request) => Some(request),
        _ => None,
    });
    let is_approved = |request: &&McpApprovalRequest| {
        let answer = approvals.answers.get(request.id.as_str());
        answer.is_some_and(|answer| answer.approve) && !approvals.is_made(request)
    };
    requests.filter(is_approved).cloned().collect()
}

/// Checks that each approval in a conversation answers one request, once.
pub fn check_approvals(items: &[Item]) -> Result<(), ApiError> {
    let mut requests = HashSet::new();
    let mut answered = HashSet::new();
    for item in items {
        match item {
            Item::McpApprovalRequest(request) => drop(requests.insert(request.id.as_str())),
            Item::McpApprovalResponse(answer) => {
                let id = answer.approval_request_id.as_str();
                if !requests.contains(id) {
                    let message = format!(
                        "there is no approval request `{id}` before its `mcp_approval_response`; send the \
                         `mcp_approval_request` item too, or `previous_response_id`"
                    );
                    return Err(ApiError::invalid("input", "unknown_approval_request", message));
                }
                if !answered.insert(id) {
                    let message = format!("the approval request `{id}` has two answers; send one");
                    return Err(ApiError::invalid("input", "duplicate_approval_response", message));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Calls of a server's tools that need approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ApprovalRule {
    /// All of them, or none.
    Mode(ApprovalMode),
    /// Those of some tools.
    Tools {
        /// Tools whose calls need approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always: Option<AllowedTools>,
        /// Tools whose calls need none; calls of all others do, if this is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        never: Option<AllowedTools>,
    },
}

/// Whether the calls of a server's tools need approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Each call needs approval.
    Always,
    /// No call does.
    Never,
}

impl ApprovalRule {
    /// The rule that no call needs approval.
    pub const NEVER: Self = Self::Mode(ApprovalMode::Never);

    /// Returns whether calls of this tool need approval. That it only reads is a claim of its server.
    pub fn asks(&self, name: &str, reads: bool) -> bool {
        match self {
            Self::Mode(mode) => *mode == ApprovalMode::Always,
            Self::Tools { always, never } => {
                let is_in = |tools: &AllowedTools| tools.allows(name, reads);
                always.as_ref().is_some_and(is_in) || never.as_ref().is_some_and(|tools| !is_in(tools))
            }
        }
    }

    /// Returns whether it can require approval of any call.
    pub fn can_ask(&self) -> bool {
        *self != Self::NEVER
    }
}

/// Returns the arguments of rehearsed code without the calls that it would make.
pub(crate) fn arguments_of_code(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(mut fields)) => {
            fields.remove("writes");
            Value::Object(fields).to_string()
        }
        _ => arguments.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn items(items: Value) -> Vec<Item> {
        serde_json::from_value(items).unwrap()
    }

    fn request(id: &str, name: &str) -> Value {
        let label = if name == INTERPRETER { INTERPRETER } else { "shop" };
        json!({"type": "mcp_approval_request", "id": id, "server_label": label, "name": name,
               "arguments": "{}"})
    }

    fn answer(id: &str, approve: bool) -> Value {
        json!({"type": "mcp_approval_response", "id": format!("mcpa_{id}"), "approval_request_id": id,
               "approve": approve, "reason": null})
    }

    #[test]
    fn a_rule_names_the_tools_that_need_approval() {
        let rule = |rule: Value| serde_json::from_value::<ApprovalRule>(rule).unwrap();
        let asked = |written: Value| {
            let rule = rule(written);
            ["get", "set", "drop"].map(|name| rule.asks(name, name == "get"))
        };
        assert_eq!(asked(json!("always")), [true; 3]);
        assert_eq!(asked(json!("never")), [false; 3]);
        let drop = json!({"tool_names": ["drop"]});
        assert_eq!(asked(json!({"always": drop})), [false, false, true]);
        assert_eq!(asked(json!({"never": {"read_only": true}})), [false, true, true]);
        assert_eq!(asked(json!({"never": drop})), [true, true, false]);
        assert_eq!(asked(json!({"always": drop, "never": drop})), [true; 3]);
        let written = json!({"always": drop, "never": {"read_only": true}});
        assert_eq!(json!(rule(written.clone())), written);
        assert!(!rule(json!("never")).can_ask() && rule(written).can_ask());
    }

    #[test]
    fn only_approved_calls_that_were_not_made_are_due() {
        let made = json!({"type": "mcp_call", "id": "mcp_1", "status": "completed", "server_label": "shop",
                          "name": "set", "arguments": "{}", "output": "1", "error": null,
                          "approval_request_id": "mcpr_1"});
        let ran = json!({"type": "function_call", "id": "fc_ci_2", "status": "completed", "call_id": "c",
                         "name": INTERPRETER, "arguments": "{}"});
        let all = items(json!([
            request("mcpr_1", "set"),
            request("mcpr_2", INTERPRETER),
            request("mcpr_3", "set"),
            request("mcpr_4", "set"),
            request("mcpr_5", INTERPRETER),
            answer("mcpr_1", true),
            made,
            answer("mcpr_2", true),
            ran,
            answer("mcpr_3", false),
            answer("mcpr_5", true),
        ]));
        let due: Vec<_> = approved(&all).into_iter().map(|request| request.id).collect();
        assert_eq!(due, ["mcpr_5"]);
        assert_eq!(check_approvals(&all), Ok(()));
    }

    #[test]
    fn an_answer_without_its_request_is_an_error() {
        let code = |written: Value| check_approvals(&items(written)).unwrap_err().code.unwrap();
        let unknown = json!([answer("mcpr_1", true), request("mcpr_1", "set")]);
        assert_eq!(code(unknown), "unknown_approval_request");
        let twice = json!([
            request("mcpr_1", "set"),
            answer("mcpr_1", true),
            answer("mcpr_1", false)
        ]);
        assert_eq!(code(twice), "duplicate_approval_response");
    }
}
