//! Calls and their outputs in a conversation: each belongs to the other.

use std::collections::HashMap;

use cellblock_agent::wire::{ApiError, CallKind, Item, is_served_shell};

/// Puts the items of a conversation into the form that models know, and drops what clients repeat:
/// outputs of commands that the records have, too.
pub(super) fn as_functions(items: Vec<Item>, calls: &mut CallPairs) -> Vec<Item> {
    let items = items.into_iter().map(Item::into_function);
    items.filter(|item| calls.add(item)).collect()
}

/// The calls of a conversation, in the order of its items.
#[derive(Debug, Default)]
pub(super) struct CallPairs {
    /// The calls by their call ids.
    calls: HashMap<String, CallEntry>,
    /// The first output without a call.
    unknown: Option<(String, CallKind)>,
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
                let entry = CallEntry {
                    id: call.id.clone(),
                    kind: CallKind::of(&call.id),
                    answered: false,
                    served,
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
                let repeated = call.answered && (call.served || CallKind::of(&output.id) == CallKind::Shell);
                call.answered = true;
                !repeated
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
