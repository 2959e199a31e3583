//! Calls and their outputs in a conversation: each belongs to the other.

use std::collections::HashMap;

use cellblock_agent::wire::{ApiError, CallKind, Item, ToolCaller, is_served_shell};

/// Puts the items of a conversation into the form that models know, and drops what clients repeat:
/// outputs of commands that the records have, too. Programs stay as they are while they may run again.
pub(super) fn as_functions(items: Vec<Item>, calls: &mut CallPairs) -> Vec<Item> {
    let items = items.into_iter().map(|item| match item {
        Item::Program(_) | Item::ProgramOutput(_) => item,
        other => other.into_function(),
    });
    items.filter(|item| calls.add(item)).collect()
}

/// The calls of a conversation, in the order of its items.
#[derive(Debug, Default)]
pub(super) struct CallPairs {
    /// The calls by their call ids.
    calls: HashMap<String, CallEntry>,
    /// The first output without a call.
    unknown: Option<(String, CallKind)>,
    /// The first call of a program with two outputs.
    repeated: Option<String>,
    /// The first call whose output names another caller.
    foreign: Option<String>,
}

/// A call.
#[derive(Debug)]
struct CallEntry {
    /// Id of its item.
    id: String,
    kind: CallKind,
    /// Whether it has an output.
    answered: bool,
    /// Whether commands of it ran in one of our containers.
    served: bool,
    caller: Option<ToolCaller>,
}

impl CallPairs {
    /// Notes an item, and returns whether it belongs into the conversation.
    fn add(&mut self, item: &Item) -> bool {
        match item {
            Item::FunctionCall(call) => {
                let served = is_served_shell(&call.id);
                // Some models count their calls anew, so that another call may have the same id.
                let known = self.calls.get(&call.call_id);
                if served && known.is_some_and(|known| known.id == call.id) {
                    return false;
                }
                if let Some(ToolCaller::Program { caller_id }) = &call.caller
                    && let Some(program) = self.calls.get_mut(caller_id)
                    && program.kind == CallKind::Program
                {
                    // It has its output once its calls have theirs.
                    program.answered = true;
                }
                let entry = CallEntry {
                    id: call.id.clone(),
                    kind: CallKind::of(&call.id),
                    answered: false,
                    served,
                    caller: call.caller.clone(),
                };
                self.calls.insert(call.call_id.clone(), entry);
                true
            }
            Item::FunctionCallOutput(output) => {
                let Some(call) = self.calls.get_mut(&output.call_id) else {
                    let kind = CallKind::of(&output.id);
                    self.unknown.get_or_insert_with(|| (output.call_id.clone(), kind));
                    return true;
                };
                if call.answered && call.caller.is_some() {
                    self.repeated.get_or_insert_with(|| output.call_id.clone());
                }
                if output.caller.is_some() && output.caller != call.caller {
                    self.foreign.get_or_insert_with(|| output.call_id.clone());
                }
                let repeated = call.answered && (call.served || CallKind::of(&output.id) == CallKind::Shell);
                call.answered = true;
                !repeated
            }
            Item::Program(program) => {
                let entry = CallEntry {
                    id: program.id.clone(),
                    kind: CallKind::Program,
                    answered: false,
                    served: false,
                    caller: None,
                };
                self.calls.insert(program.call_id.clone(), entry);
                true
            }
            Item::ProgramOutput(output) => {
                if let Some(program) = self.calls.get_mut(&output.call_id) {
                    program.answered = true;
                } else {
                    let unknown = || (output.call_id.clone(), CallKind::Program);
                    self.unknown.get_or_insert_with(unknown);
                }
                true
            }
            // Searches that were served here are answered in their order.
            Item::ToolSearchOutput(output) => {
                if let Some(call_id) = &output.call_id {
                    match self.calls.get_mut(call_id) {
                        Some(call) => call.answered = true,
                        None => {
                            self.unknown
                                .get_or_insert_with(|| (call_id.clone(), CallKind::Search));
                        }
                    }
                }
                true
            }
            _ => true,
        }
    }

    /// Rejects calls without an output and outputs without a call: models and their servers fail at
    /// them in ways that nobody understands. Calls that waiting code will answer have none yet.
    pub(super) fn check(self, by_code: &[String]) -> Result<(), ApiError> {
        if let Some((id, kind)) = self.unknown {
            let message = format!(
                "No tool call found for {} call output with call_id {id}; send the call before its output, \
                 or `previous_response_id`; if code made the call, it does not wait for the output any more",
                kind.words()
            );
            return Err(ApiError::invalid("input", "unknown_call_id", message));
        }
        if let Some(id) = self.repeated {
            let message = format!("the call `{id}` has two outputs; send one");
            return Err(ApiError::invalid("input", "duplicate_call_output", message));
        }
        if let Some(id) = self.foreign {
            let message = format!(
                "the output of the call `{id}` names another `caller` than the call; send the `caller` of \
                 the call, or none"
            );
            return Err(ApiError::invalid("input", "invalid_value", message));
        }
        let mut calls = self.calls.into_iter();
        match calls.find(|(id, call)| !call.answered && !by_code.contains(id)) {
            None => Ok(()),
            Some((id, CallEntry { kind, .. })) => {
                let message = format!(
                    "No tool output found for {} call {id}; send a `{}` with its `call_id`",
                    kind.words(),
                    kind.output_type()
                );
                Err(ApiError::invalid("input", "missing_call_output", message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn items(items: Value) -> Vec<Item> {
        serde_json::from_value(items).unwrap()
    }

    fn call(id: &str, call_id: &str, environment: &Value) -> Value {
        let action = json!({"commands": ["ls"], "timeout_ms": null, "max_output_length": null});
        json!({"type": "shell_call", "id": id, "status": "completed", "call_id": call_id, "action": action,
               "environment": environment})
    }

    fn output(id: &str, call_id: &str) -> Value {
        json!({"type": "shell_call_output", "id": id, "status": "completed", "call_id": call_id,
               "max_output_length": null,
               "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]})
    }

    fn ids(items: Value) -> (Vec<String>, Result<(), ApiError>) {
        let mut calls = CallPairs::default();
        let items = as_functions(self::items(items), &mut calls);
        let ids = items.iter().map(|item| item.id().to_owned()).collect();
        (ids, calls.check(&[]))
    }

    #[test]
    fn a_repeated_call_of_a_container_counts_once() {
        let hosted = json!({"type": "container_reference", "container_id": "cntr_1"});
        let call = call("sh_1", "c1", &hosted);
        let (ids, checked) = ids(json!([call, output("sho_1", "c1"), call, output("sho_2", "c1")]));
        assert_eq!(ids, ["fc_sh_1", "sho_1"]);
        assert_eq!(checked, Ok(()));
    }

    #[test]
    fn calls_that_share_a_call_id_keep_their_outputs() {
        let hosted = json!({"type": "container_reference", "container_id": "cntr_1"});
        let shell = |id: &str| call(id, "call_0", &hosted);
        let turns = json!([
            shell("sh_1"),
            output("sho_1", "call_0"),
            shell("sh_2"),
            output("sho_2", "call_0"),
        ]);
        let (told, checked) = ids(turns);
        assert_eq!(told, ["fc_sh_1", "sho_1", "fc_sh_2", "sho_2"]);
        assert_eq!(checked, Ok(()));
        let code = json!({"type": "function_call", "id": "fc_ci_1", "status": "completed",
                          "call_id": "call_0", "name": "code_interpreter", "arguments": "{}"});
        let ran = json!({"type": "function_call_output", "id": "fco_1", "status": "completed",
                         "call_id": "call_0", "output": "1"});
        let (told, checked) = ids(json!([code, ran, shell("sh_1"), output("sho_1", "call_0")]));
        assert_eq!(told, ["fc_ci_1", "fco_1", "fc_sh_1", "sho_1"]);
        assert_eq!(checked, Ok(()));
    }

    #[test]
    fn each_call_of_a_program_needs_one_output_of_its_own() {
        let program =
            json!({"type": "program", "id": "prog_1", "call_id": "c1", "code": "", "fingerprint": ""});
        let caller = |id: &str| json!({"type": "program", "caller_id": id});
        let call = json!({"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c2",
                          "name": "f", "arguments": "{}", "caller": caller("c1")});
        let output = |of: &str| {
            json!({"type": "function_call_output", "id": "fco_1", "status": "completed", "call_id": "c2",
                   "output": "1", "caller": caller(of)})
        };
        for (items, code) in [
            (json!([program]), Some("missing_call_output")),
            (json!([program, call]), Some("missing_call_output")),
            (json!([program, call, output("c1")]), None),
            (
                json!([program, call, output("c1"), output("c1")]),
                Some("duplicate_call_output"),
            ),
            (json!([program, call, output("c3")]), Some("invalid_value")),
            (json!([call, output("c1")]), None),
            (
                json!([{"type": "program_output", "id": "po_1", "call_id": "c9", "result": "",
                        "status": "completed"}]),
                Some("unknown_call_id"),
            ),
        ] {
            let checked = ids(items.clone()).1.err().and_then(|error| error.code);
            assert_eq!(checked.as_deref(), code, "{items}");
        }
    }

    #[test]
    fn a_search_of_the_client_is_answered_by_its_call_id() {
        let call = json!({"type": "tool_search_call", "id": "tsc_1", "status": "completed",
                          "execution": "client", "call_id": "c1", "arguments": {"query": "mail"}});
        let output = json!({"type": "tool_search_output", "id": "tso_1", "status": "completed",
                            "execution": "client", "call_id": "c1", "tools": []});
        assert_eq!(ids(json!([call, output])).1, Ok(()));
        let missing = ids(json!([call])).1.unwrap_err();
        let words = "No tool output found for tool search call c1; send a `tool_search_output`";
        assert!(missing.message.starts_with(words), "{missing}");
        let unknown = ids(json!([output])).1.unwrap_err();
        let words = "No tool call found for tool search call output with call_id c1";
        assert!(unknown.message.starts_with(words), "{unknown}");
        let mut served = [call, output];
        for item in &mut served {
            item["execution"] = json!("server");
            item["call_id"] = Value::Null;
        }
        assert_eq!(ids(json!(served)).1, Ok(()));
        assert_eq!(ids(json!([served[1]])).1, Ok(()));
    }

    #[test]
    fn half_a_pair_is_an_error_with_the_words_of_its_kind() {
        let local = json!({"type": "local"});
        let missing = ids(json!([call("sh_1", "c1", &local)])).1.unwrap_err();
        assert!(
            missing
                .message
                .starts_with("No tool output found for shell call c1"),
            "{missing}"
        );
        assert_eq!(missing.code.as_deref(), Some("missing_call_output"));
        let unknown = ids(json!([output("sho_1", "c1")])).1.unwrap_err();
        let words = "No tool call found for shell call output with call_id c1";
        assert!(unknown.message.starts_with(words), "{unknown}");
        assert_eq!(unknown.code.as_deref(), Some("unknown_call_id"));
        let function = json!({"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c1",
                              "name": "f", "arguments": "{}"});
        let missing = ids(json!([function])).1.unwrap_err();
        assert!(
            missing
                .message
                .starts_with("No tool output found for function call c1"),
            "{missing}"
        );
    }
}
