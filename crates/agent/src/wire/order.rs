//! The requirements of strict clients for a stream of events, checked on its JSON, without our
//! types.

use std::collections::HashSet;

use serde_json::Value;

/// Follows a stream and rejects the first event that a strict client would reject.
#[derive(Debug, Default)]
pub(crate) struct Order {
    next: u64,
    response: Option<String>,
    begun: bool,
    items: Vec<ReportedItem>,
    ids: HashSet<String>,
    failing: bool,
    over: bool,
}

/// An item, as reported by the events.
#[derive(Debug)]
struct ReportedItem {
    id: String,
    kind: String,
    /// Texts of its parts, each with whether it is still open.
    parts: Vec<(String, String, bool)>,
    text: String,
    text_done: bool,
    /// Commands of a call of a shell, or outputs of one, each with whether it is complete.
    commands: Vec<(Value, bool)>,
    call_id: Value,
    /// Progress of a call or a list.
    reached: Option<&'static str>,
    done: Option<Value>,
}

const KEYS: [&str; 31] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];

macro_rules! demand {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}

impl Order {
    /// Follows a whole stream.
    pub(crate) fn check<'a>(events: impl IntoIterator<Item = &'a Value>) -> Result<(), String> {
        let mut order = Self::default();
        for event in events {
            order.follow(event).map_err(|why| format!("{why} in {event}"))?;
        }
        demand!(order.over, "the stream does not end");
        Ok(())
    }

    fn follow(&mut self, event: &Value) -> Result<(), String> {
        demand!(!self.over, "an event after the last");
        demand!(
            event["sequence_number"] == self.next,
            "number {} expected",
            self.next
        );
        self.next += 1;
        let kind = event["type"].as_str().unwrap_or_default();
        demand!(
            self.response.is_some() || kind == "response.created",
            "not created"
        );
        demand!(
            !self.failing || kind == "response.failed",
            "an error is followed by something"
        );
        match kind {
            "response.created" => {
                demand!(self.response.is_none(), "created twice");
                self.response = event["response"]["id"].as_str().map(str::to_owned);
                self.whole(&event["response"], "in_progress")
            }
            "response.in_progress" => {
                self.begun = true;
                self.whole(&event["response"], "in_progress")
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.over = true;
                self.whole(&event["response"], &kind["response.".len()..])?;
                let done: Option<Vec<_>> = self.items.iter().map(|item| item.done.clone()).collect();
                demand!(
                    done.map(Value::Array).as_ref() == Some(&event["response"]["output"]),
                    "other items"
                );
                Ok(())
            }
            "error" => {
                self.failing = true;
                let both = event["code"].is_string() && event["message"] == event["error"]["message"];
                demand!(both && event.get("param").is_some(), "not both forms");
                Ok(())
            }
            _ => {
                demand!(self.begun, "not in progress");
                self.follow_item(kind, event)
            }
        }
    }

    fn whole(&self, response: &Value, status: &str) -> Result<(), String> {
        for key in KEYS {
            demand!(response.get(key).is_some(), "the response lacks {key}");
        }
        demand!(
            response["id"].as_str() == self.response.as_deref(),
            "another response"
        );
        demand!(response["status"] == status, "not {status}");
        Ok(())
    }

    fn follow_item(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let index = place(event, "output_index")?;
        if kind == "response.output_item.added" {
            demand!(index == self.items.len(), "not the next item");
            let item = &event["item"];
            let kinds = ["mcp_list_tools", "mcp_approval_request", "compaction", "program"];
            let bare = kinds.iter().any(|kind| item["type"] == *kind) && item.get("status").is_none();
            // It is whole from the start.
            let ended = item["type"] == "program_output";
            demand!(
                bare || ended || item["status"] == "in_progress",
                "added with another status"
            );
            let id = item["id"].as_str().unwrap_or_default().to_owned();
            demand!(!id.is_empty() && self.ids.insert(id.clone()), "no id of its own");
            let kind = item["type"].as_str().unwrap_or_default().to_owned();
            demand!(is_beginning(&kind, item), "not as an item begins");
            let call_id = item["call_id"].clone();
            let same = |other: &ReportedItem| other.kind == kind && other.call_id == call_id;
            demand!(
                call_id.is_null() || !self.items.iter().any(same),
                "a second call with its id"
            );
            let commands = self.outputs_of(&kind, &call_id)?;
            self.items.push(ReportedItem {
                id,
                kind,
                commands,
                call_id,
                parts: Vec::new(),
                text: String::new(),
                text_done: false,
                reached: None,
                done: None,
            });
            return Ok(());
        }
        let item = self.items.get_mut(index).ok_or("no such item")?;
        demand!(item.done.is_none(), "an item after its end");
        if kind == "response.output_item.done" {
            return item.end(&event["item"]);
        }
        let has_id = !kind.starts_with("response.shell_call_command.");
        let id = event.get("item_id");
        demand!(
            id == has_id.then(|| Value::from(item.id.clone())).as_ref(),
            "another item's id"
        );
        item.grow(kind, event)
    }

    /// Returns the outputs to expect of a call of a shell, which is whole.
    fn outputs_of(&self, kind: &str, call_id: &Value) -> Result<Vec<(Value, bool)>, String> {
        if kind != "shell_call_output" {
            return Ok(Vec::new());
        }
        let call = self
            .items
            .iter()
            .find(|item| item.kind == "shell_call" && item.call_id == *call_id && item.done.is_some());
        let commands = &call.ok_or("outputs without their call")?.commands;
        let empty = || (serde_json::json!({"stdout": "", "stderr": ""}), false);
        Ok(commands.iter().map(|_| empty()).collect())
    }
}

fn place(event: &Value, key: &str) -> Result<usize, String> {
    let place = event[key].as_u64().and_then(|place| usize::try_from(place).ok());
    place.ok_or_else(|| format!("no {key}"))
}

impl ReportedItem {
    fn grow(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let delta = event["delta"].as_str().unwrap_or_default();
        let (about, step) = kind.rsplit_once('.').ok_or("no such event")?;
        match (self.kind.as_str(), about, step) {
            ("message" | "reasoning", "response.content_part", _) => self.part(step, event),
            ("message", "response.output_text", "delta" | "done") => {
                self.spoken("output_text", "text", step, event)
            }
            ("message", "response.refusal", "delta" | "done") => {
                self.spoken("refusal", "refusal", step, event)
            }
            ("reasoning", "response.reasoning_text", "delta" | "done") => {
                self.spoken("reasoning_text", "text", step, event)
            }
            ("message", "response.output_text.annotation", "added") => {
                demand!(
                    self.parts
                        .last()
                        .is_some_and(|part| part.0 == "output_text" && part.2),
                    "no open text"
                );
                Ok(())
            }
            ("function_call", "response.function_call_arguments", _)
            | ("mcp_call", "response.mcp_call_arguments", _)
            | ("code_interpreter_call", "response.code_interpreter_call_code", _) => {
                demand!(!self.text_done, "added after the end");
                let code = about.ends_with("_code");
                demand!(
                    self.kind == "function_call" || self.reached == Some("in_progress"),
                    "code before its call"
                );
                if step == "delta" {
                    self.text.push_str(delta);
                    return Ok(());
                }
                self.text_done = true;
                demand!(
                    event[if code { "code" } else { "arguments" }] == self.text.as_str(),
                    "another whole"
                );
                Ok(())
            }
            ("custom_tool_call", "response.custom_tool_call_input", _) => {
                demand!(!self.text_done, "added after the end");
                if step == "delta" {
                    self.text.push_str(delta);
                    return Ok(());
                }
                self.text_done = true;
                demand!(event["input"] == self.text.as_str(), "another whole");
                Ok(())
            }
            ("compaction", "response.compaction", "compacting") => {
                demand!(self.reached.is_none(), "compacted twice");
                self.reached = Some("compacting");
                Ok(())
            }
            ("shell_call", "response.shell_call_command", _) => self.command(step, event),
            ("shell_call_output", "response.shell_call_output_content", _) => self.written(step, event),
            ("code_interpreter_call", "response.code_interpreter_call", _) => {
                let next = match (self.reached, step) {
                    (None, "in_progress") => "in_progress",
                    (Some("in_progress"), "interpreting") if self.text_done => "interpreting",
                    (Some("interpreting"), "completed") => "completed",
                    _ => return Err("a step out of order".to_owned()),
                };
                self.reached = Some(next);
                Ok(())
            }
            ("mcp_call", "response.mcp_call", _) | ("mcp_list_tools", "response.mcp_list_tools", _) => {
                let whole = self.text_done || self.kind == "mcp_list_tools";
                let next = match (self.reached, step) {
                    (None, "in_progress") => "in_progress",
                    (Some("in_progress"), "completed") if whole => "completed",
                    (Some("in_progress"), "failed") if whole => "failed",
                    _ => return Err("a step out of order".to_owned()),
                };
                self.reached = Some(next);
                Ok(())
            }
            _ => Err(format!("no such event for {}", self.kind)),
        }
    }

    fn command(&mut self, step: &str, event: &Value) -> Result<(), String> {
        let index = place(event, "command_index")?;
        if step == "added" {
            demand!(
                index == self.commands.len() && self.commands.iter().all(|command| command.1),
                "not the next command"
            );
            demand!(event["command"] == "", "not as a command begins");
            self.commands.push((Value::from(""), false));
            return Ok(());
        }
        let (command, done) = self.commands.get_mut(index).ok_or("no such command")?;
        demand!(!*done, "a command after its end");
        if step == "delta" {
            let delta = event["delta"].as_str().ok_or("no delta")?;
            *command = Value::from(format!("{}{delta}", command.as_str().unwrap_or_default()));
            return Ok(());
        }
        *done = true;
        demand!(event["command"] == *command, "another whole");
        Ok(())
    }

    fn written(&mut self, step: &str, event: &Value) -> Result<(), String> {
        let index = place(event, "command_index")?;
        let (output, done) = self.commands.get_mut(index).ok_or("no such command")?;
        demand!(!*done, "an output after its end");
        if step == "delta" {
            for stream in ["stdout", "stderr"] {
                let before = output[stream].as_str().unwrap_or_default();
                let delta = event["delta"][stream].as_str().unwrap_or_default();
                output[stream] = Value::from(format!("{before}{delta}"));
            }
            return Ok(());
        }
        *done = true;
        let whole = event["output"].as_array().map_or(&[][..], Vec::as_slice);
        demand!(whole.len() == 1, "not one output");
        let outcome = &whole[0]["outcome"];
        let exited = outcome["type"] == "exit" && outcome["exit_code"].is_i64();
        demand!(exited || outcome["type"] == "timeout", "no outcome");
        for stream in ["stdout", "stderr"] {
            let told = output[stream].as_str().unwrap_or_default();
            let said = whole[0][stream].as_str().ok_or("no stream")?;
            demand!(said.starts_with(told), "another {stream}");
        }
        *output = whole[0].clone();
        Ok(())
    }

    fn part(&mut self, step: &str, event: &Value) -> Result<(), String> {
        let index = place(event, "content_index")?;
        let kind = event["part"]["type"].as_str().unwrap_or_default();
        let key = if kind == "refusal" { "refusal" } else { "text" };
        if step == "added" {
            demand!(index == self.parts.len(), "not the next part");
            demand!(self.parts.iter().all(|part| !part.2), "a part is open");
            demand!(event["part"][key] == "", "not as a part begins");
            self.parts.push((kind.to_owned(), String::new(), true));
            self.text_done = false;
            return Ok(());
        }
        let part = self.parts.get_mut(index).ok_or("no such part")?;
        demand!(self.text_done && part.2 && part.0 == kind, "the part is not open");
        demand!(event["part"][key] == part.1.as_str(), "another whole");
        part.2 = false;
        Ok(())
    }

    fn spoken(&mut self, kind: &str, key: &str, step: &str, event: &Value) -> Result<(), String> {
        let index = place(event, "content_index")?;
        let part = self.parts.get_mut(index).ok_or("text before its part")?;
        demand!(
            part.2 && part.0 == kind && !self.text_done,
            "the part is not open"
        );
        if step == "delta" {
            part.1.push_str(event["delta"].as_str().ok_or("no delta")?);
            return Ok(());
        }
        self.text_done = true;
        demand!(event[key] == part.1.as_str(), "another whole");
        Ok(())
    }

    fn end(&mut self, item: &Value) -> Result<(), String> {
        demand!(item["id"] == self.id && item["type"] == self.kind, "another item");
        let status = item["status"].as_str().unwrap_or_default();
        let legal = matches!(
            (self.kind.as_str(), status),
            (_, "completed" | "incomplete")
                | ("code_interpreter_call" | "mcp_call", "failed")
                // Code that waits for its client ends in another response.
                | ("code_interpreter_call", "in_progress" | "interpreting")
                | ("mcp_list_tools" | "mcp_approval_request" | "compaction" | "program", "")
        );
        demand!(legal, "not a final status");
        demand!(self.parts.iter().all(|part| !part.2), "a part is open");
        match self.kind.as_str() {
            "function_call" => demand!(
                self.text_done && item["arguments"] == self.text,
                "arguments without an event"
            ),
            "code_interpreter_call" => {
                demand!(
                    self.text_done && item["code"] == self.text,
                    "code without an event"
                );
                demand!(item.get("outputs").is_some(), "outputs are not null but missing");
                demand!(
                    (status == "completed") == (self.reached == Some("completed")),
                    "{status} without an event"
                );
            }
            "shell_call" | "shell_call_output" => {
                let said = if self.kind == "shell_call" {
                    &item["action"]["commands"]
                } else {
                    &item["output"]
                };
                let told: Vec<_> = self.commands.iter().map(|(command, _)| command.clone()).collect();
                let whole = self.commands.iter().all(|(_, done)| *done);
                demand!(
                    !told.is_empty() && item["call_id"] == self.call_id,
                    "not a whole call"
                );
                // Commands that were broken off have no event of their end.
                demand!(
                    whole && *said == Value::Array(told) || status == "incomplete",
                    "commands without an event"
                );
            }
            "compaction" => demand!(
                self.reached == Some("compacting") && item["encrypted_content"] != "",
                "a compaction without an event"
            ),
            "local_shell_call" | "tool_search_call" => {
                demand!(item["call_id"] == self.call_id, "another call");
            }
            "tool_search_output" => demand!(
                item["call_id"] == self.call_id && item["tools"].is_array(),
                "no tools"
            ),
            "custom_tool_call" => demand!(
                self.text_done && item["input"] == self.text && item["call_id"] == self.call_id,
                "a text without an event"
            ),
            "apply_patch_call" => demand!(
                item["call_id"] == self.call_id && item["operation"]["diff"] != "",
                "a call without its change"
            ),
            "mcp_list_tools" => {
                let failed = item["error"].is_string() && item["tools"] == serde_json::json!([]);
                let end = if failed { "failed" } else { "completed" };
                demand!(self.reached == Some(end), "{end} without an event");
                demand!(failed || item.get("error").is_none(), "an error that is null");
            }
            "mcp_call" => self.end_of_tool(item, status)?,
            _ => {
                let parts = item["content"].as_array().map_or(&[][..], Vec::as_slice);
                let told = self.parts.iter().map(|part| part.1.as_str());
                let said = parts.iter().map(|part| {
                    part["text"]
                        .as_str()
                        .or(part["refusal"].as_str())
                        .unwrap_or_default()
                });
                demand!(told.eq(said), "other parts");
            }
        }
        self.done = Some(item.clone());
        Ok(())
    }

    fn end_of_tool(&self, item: &Value, status: &str) -> Result<(), String> {
        demand!(
            self.text_done && item["arguments"] == self.text,
            "arguments without an event"
        );
        let (output, error) = (item["output"].is_string(), item["error"]["type"].is_string());
        let end = if status == "completed" {
            "completed"
        } else {
            "failed"
        };
        demand!(self.reached == Some(end), "{end} without an event");
        let holds = match status {
            "completed" => output && !error,
            "failed" => error && !output,
            _ => !output && !error,
        };
        demand!(holds, "{status}, and another outcome");
        Ok(())
    }
}

/// Returns whether an item is as one of its kind begins.
fn is_beginning(kind: &str, item: &Value) -> bool {
    match kind {
        "message" => item["content"] == serde_json::json!([]),
        "function_call" => item["arguments"] == "" && item["name"].is_string() && item["call_id"].is_string(),
        "reasoning" => item["summary"] == serde_json::json!([]),
        "code_interpreter_call" => {
            item["code"] == ""
                && item["container_id"].is_string()
                && item.get("outputs") == Some(&Value::Null)
        }
        "shell_call" => {
            item["action"]["commands"] == serde_json::json!([])
                && item["action"].get("timeout_ms").is_some()
                && item["action"].get("max_output_length").is_some()
                && item["environment"]["type"].is_string()
        }
        "local_shell_call" => item["action"]["command"].is_array(),
        "compaction" => item["encrypted_content"] == "",
        "tool_search_call" => {
            item["arguments"].is_object() && item.get("call_id").is_some() && item["execution"].is_string()
        }
        "tool_search_output" => {
            item["tools"] == serde_json::json!([])
                && item.get("call_id").is_some()
                && item["execution"].is_string()
        }
        "custom_tool_call" => item["input"] == "" && item["name"].is_string(),
        "apply_patch_call" => {
            let operation = &item["operation"];
            operation["path"].is_string() && (operation["diff"] == "" || operation["type"] == "delete_file")
        }
        "shell_call_output" => {
            item["output"] == serde_json::json!([]) && item.get("max_output_length").is_some()
        }
        "program" => item["code"].is_string() && item["fingerprint"].is_string(),
        "program_output" => item["result"].is_string() && item["status"] != "in_progress",
        "mcp_list_tools" => {
            item["tools"] == serde_json::json!([])
                && item["server_label"].is_string()
                && item.get("error").is_none()
        }
        "mcp_approval_request" => {
            let keys = ["server_label", "name", "arguments"];
            keys.iter().all(|key| item[key].is_string())
        }
        "mcp_call" => {
            let null = |key: &str| item.get(key) == Some(&Value::Null);
            item["arguments"] == ""
                && item["name"].is_string()
                && item["server_label"].is_string()
                && null("output")
                && null("error")
        }
        _ => false,
    }
}
