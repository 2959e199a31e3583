//! Programs in JavaScript that call the client's functions: their items, and the model's view of them.
//!
//! ```text
//! program ──> function_call (caller: the program) ──> function_call_output ──> ... ──> program_output
//! ```
//!
//! The model knows a program and its output as a function call; it does not read the calls of the program.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::call_kind::{self, CallKind};
use super::content::Part;
use super::item::{FunctionCall, FunctionCallOutput, FunctionOutput, Item, ItemStatus, ToolCaller};

/// Beginning and end of a line of a result that is an image.
const IMAGE: (&str, &str) = ("![image](", ")");

/// A program that the model runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// `prog_…`.
    pub id: String,
    /// Id that its output and its calls refer to.
    pub call_id: String,
    /// The code.
    pub code: String,
    /// Sealed start of the program, which a client sends back unchanged.
    pub fingerprint: String,
    /// Id of its container; not part of the Responses API.
    #[serde(skip)]
    pub container: Option<String>,
}

/// Result of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramOutput {
    /// `po_…`.
    pub id: String,
    /// Id of the program's call.
    pub call_id: String,
    /// Text that it showed, with its images as lines of Markdown, and its error.
    pub result: String,
    /// `completed`, or `incomplete` if it did not come to its end.
    pub status: ItemStatus,
}

/// A program that waits for outputs of its calls, with the calls in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct PausedProgram {
    /// The program.
    pub program: Program,
    /// Each of its calls, with its output.
    pub calls: Vec<(FunctionCall, Option<FunctionOutput>)>,
}

impl Program {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCall {
        FunctionCall {
            id: call_kind::served(&self.id),
            status: ItemStatus::Completed,
            call_id: self.call_id,
            name: CallKind::Program.function().to_owned(),
            namespace: None,
            arguments: json!({"code": self.code}).to_string(),
            caller: None,
        }
    }
}

impl ProgramOutput {
    /// Returns it as the model knows it.
    pub(super) fn into_function(self) -> FunctionCallOutput {
        FunctionCallOutput {
            id: self.id,
            status: ItemStatus::Completed,
            call_id: self.call_id,
            output: shown(self.result),
            caller: None,
        }
    }

    /// Returns the line of a result that shows an image.
    pub fn image_line(url: &str) -> String {
        format!("{}{url}{}", IMAGE.0, IMAGE.1)
    }
}

/// Returns a result as text, or as parts if it has images.
fn shown(result: String) -> FunctionOutput {
    let url = |line: &str| {
        let url = line.strip_prefix(IMAGE.0)?.strip_suffix(IMAGE.1)?;
        url.starts_with("data:image/").then(|| url.to_owned())
    };
    if result.lines().all(|line| url(line).is_none()) {
        return FunctionOutput::Text(result);
    }
    let mut parts = Vec::new();
    for line in result.split_inclusive('\n') {
        match (url(line.trim_end()), parts.last_mut()) {
            (Some(url), _) => parts.push(Part::InputImage {
                image_url: Some(url),
                file_id: None,
                detail: "auto".to_owned(),
            }),
            (None, Some(Part::InputText { text })) => text.push_str(line),
            (None, _) => parts.push(Part::InputText {
                text: line.to_owned(),
            }),
        }
    }
    FunctionOutput::Parts(parts)
}

/// Returns a conversation as the model knows it: programs are calls of a function, and their own calls are
/// left out.
pub fn without_programs(items: Vec<Item>) -> Vec<Item> {
    let nested = items.iter().filter_map(|item| match item {
        Item::FunctionCall(call) if call.caller.is_some() => Some(call.call_id.clone()),
        _ => None,
    });
    let nested: HashSet<String> = nested.collect();
    let is_known = |item: &Item| match item {
        Item::FunctionCall(call) => call.caller.is_none(),
        Item::FunctionCallOutput(output) => !nested.contains(&output.call_id),
        _ => true,
    };
    let known = items.into_iter().filter(is_known);
    known
        .map(|item| match item {
            Item::Program(_) | Item::ProgramOutput(_) => item.into_function(),
            other => other,
        })
        .collect()
}

/// Returns the programs in a conversation that have no output and that have made calls.
pub fn paused_programs(items: &[Item]) -> Vec<PausedProgram> {
    let mut open: Vec<PausedProgram> = Vec::new();
    for item in items {
        match item {
            Item::Program(program) => open.push(PausedProgram {
                program: program.clone(),
                calls: Vec::new(),
            }),
            Item::ProgramOutput(output) => open.retain(|paused| paused.program.call_id != output.call_id),
            Item::FunctionCall(call) => {
                let Some(ToolCaller::Program { caller_id }) = &call.caller else {
                    continue;
                };
                let is_caller = |paused: &&mut PausedProgram| paused.program.call_id == *caller_id;
                if let Some(paused) = open.iter_mut().rev().find(is_caller) {
                    paused.calls.push((call.clone(), None));
                }
            }
            Item::FunctionCallOutput(output) => {
                let calls = open.iter_mut().flat_map(|paused| &mut paused.calls);
                let mut waiting = calls.filter(|(call, _)| call.call_id == output.call_id);
                if let Some((_, answer @ None)) = waiting.next() {
                    *answer = Some(output.output.clone());
                }
            }
            _ => {}
        }
    }
    open.retain(|paused| !paused.calls.is_empty());
    open
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn items(items: Value) -> Vec<Item> {
        serde_json::from_value(items).unwrap()
    }

    fn conversation() -> Value {
        let caller = json!({"type": "program", "caller_id": "call_j"});
        let call = |id: &str, call_id: &str| {
            json!({"type": "function_call", "id": id, "status": "completed", "call_id": call_id,
                   "name": "price", "arguments": "{}", "caller": caller})
        };
        json!([
            {"type": "program", "id": "prog_1", "call_id": "call_j", "code": "text(1)", "fingerprint": "f"},
            call("fc_1", "call_k"),
            call("fc_2", "call_l"),
            {"type": "function_call_output", "id": "fco_1", "status": "completed", "call_id": "call_l",
             "output": "2", "caller": caller},
        ])
    }

    #[test]
    fn a_program_is_paused_until_it_has_an_output() {
        let mut all = conversation();
        let [paused] = &paused_programs(&items(all.clone()))[..] else {
            panic!("one program");
        };
        let answers: Vec<_> = paused
            .calls
            .iter()
            .map(|(call, output)| (&*call.call_id, output))
            .collect();
        let answer = Some(FunctionOutput::Text("2".to_owned()));
        assert_eq!(answers, [("call_k", &None), ("call_l", &answer)]);
        let output = json!({"type": "program_output", "id": "po_1", "call_id": "call_j", "result": "5",
                            "status": "completed"});
        all.as_array_mut().unwrap().push(output);
        assert!(paused_programs(&items(all.clone())).is_empty());
        assert_eq!(
            json!(without_programs(items(all))),
            json!([
                {"type": "function_call", "id": "fc_prog_1", "status": "completed", "call_id": "call_j",
                 "name": "programmatic_tool_calling", "arguments": "{\"code\":\"text(1)\"}"},
                {"type": "function_call_output", "id": "po_1", "status": "completed", "call_id": "call_j",
                 "output": "5"},
            ])
        );
    }

    #[test]
    fn a_program_without_calls_does_not_wait() {
        let first = &conversation()[0];
        assert!(paused_programs(&items(json!([first]))).is_empty());
    }

    #[test]
    fn a_model_sees_the_images_of_a_result() {
        let line = ProgramOutput::image_line("data:image/png;base64,AAAA");
        let FunctionOutput::Parts(parts) = shown(format!("a\nb\n{line}\nc")) else {
            panic!("parts");
        };
        assert_eq!(
            json!(parts),
            json!([
                {"type": "input_text", "text": "a\nb\n"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "file_id": null,
                 "detail": "auto"},
                {"type": "input_text", "text": "c"},
            ])
        );
        let other = "![image](https://example.com/a.png)".to_owned();
        assert_eq!(shown(other.clone()), FunctionOutput::Text(other));
    }
}
