//! Results of code, commands and edits as blocks.

use serde_json::{Value, json};

use super::{BASH, CODE, EDITOR, use_id};
use crate::wire::call_report::{CallFault, CallReport};
use crate::wire::item::{CodeInterpreterCall, McpCall};

/// Returns the result of code that has ended.
pub(super) fn of_code(call: &CodeInterpreterCall) -> Value {
    let report = call.report.as_deref();
    let content = match report.map(|report| (report, report.failure)) {
        Some((report, None)) => ran(CODE, report),
        Some((_, Some(failure))) => error(CODE, word(failure), None),
        None => error(CODE, word(CallFault::Unavailable), None),
    };
    block(CODE, &call.id, &content)
}

/// Returns the result of a command, or of the text editor.
pub(super) fn of_command(call: &McpCall) -> Value {
    let name = if call.name == BASH { BASH } else { EDITOR };
    let said = call.error.as_ref().map(crate::wire::McpError::words);
    let said = said.or_else(|| call.output.clone()).unwrap_or_default();
    // What a tool refuses, and what the text editor answers, is JSON in this API's words.
    let told: Option<Value> = serde_json::from_str(&said).ok().filter(Value::is_object);
    let refused = told.as_ref().and_then(|told| told["error_code"].as_str());
    let report = call.report.as_deref();
    let failure = report.and_then(|report| report.failure);
    let content = match (refused, failure, report) {
        (Some(code), ..) => {
            let why = told.as_ref().and_then(|told| told["error_message"].as_str());
            error(name, code, why)
        }
        (None, Some(failure), _) => error(name, word(failure), Some(&said)),
        (None, None, Some(report)) if name == BASH => ran(BASH, report),
        (None, None, _) if call.error.is_none() && told.is_some() => told.unwrap_or_default(),
        (None, None, _) => error(name, word(CallFault::Unavailable), Some(&said)),
    };
    block(name, &call.id, &content)
}

fn block(name: &str, item: &str, content: &Value) -> Value {
    json!({"type": format!("{name}_tool_result"), "tool_use_id": use_id(item), "content": content})
}

fn ran(name: &str, report: &CallReport) -> Value {
    let files = report.files.iter();
    let files: Vec<_> = files
        .map(|id| json!({"type": format!("{name}_output"), "file_id": id}))
        .collect();
    json!({
        "type": format!("{name}_result"),
        "stdout": report.stdout,
        "stderr": report.stderr,
        "return_code": report.return_code,
        "content": files,
    })
}

/// Only errors of the text editor have room for a message.
fn error(name: &str, code: &str, message: Option<&str>) -> Value {
    let mut error = json!({"type": format!("{name}_tool_result_error"), "error_code": code});
    if name == EDITOR {
        error["error_message"] = json!(message);
    }
    error
}

const fn word(failure: CallFault) -> &'static str {
    match failure {
        CallFault::InvalidInput => "invalid_tool_input",
        CallFault::Unavailable => "unavailable",
        CallFault::TimedOut => "execution_time_exceeded",
    }
}
