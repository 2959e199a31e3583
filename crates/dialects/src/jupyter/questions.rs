//! Questions about code: how it may go on, what a name is, and whether it is complete. Python's own
//! modules answer them in the kernel.

use std::time::Duration;

use cellblock_interpreter::Output;
use cellblock_interpreter::cell::{Cell, Language};
use cellblock_interpreter::output::Scalar;
use serde_json::{Value, json};

use super::state::HeldKernel;
use super::wire::Message;
use crate::host::DialectHost;

const PROGRAM: &str = include_str!("questions.py");
/// Maximum duration of an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the content of a reply.
pub(super) async fn answer(host: &DialectHost, held: &HeldKernel, request: &Message) -> Value {
    let code = request.text("code").unwrap_or_default();
    let cursor = request.content.get("cursor_pos").and_then(Value::as_u64);
    let cursor = cursor.unwrap_or(code.chars().count() as u64);
    let detail = request
        .content
        .get("detail_level")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    match request.kind() {
        "complete_request" => {
            let found = ask(host, held, "complete", code, cursor, detail).await;
            let found =
                found.unwrap_or_else(|| json!({"matches": [], "cursor_start": cursor, "cursor_end": cursor}));
            json!({
                "status": "ok",
                "matches": found["matches"],
                "cursor_start": found["cursor_start"],
                "cursor_end": found["cursor_end"],
                "metadata": {},
            })
        }
        "inspect_request" => {
            let found = ask(host, held, "explain", code, cursor, detail).await;
            let text = found
                .as_ref()
                .filter(|it| it["found"] == true)
                .and_then(|it| it["text"].as_str());
            let data = text.map_or_else(|| json!({}), |text| json!({ "text/plain": text }));
            json!({"status": "ok", "found": text.is_some(), "data": data, "metadata": {}})
        }
        "is_complete_request" => {
            let found = ask(host, held, "finished", code, cursor, detail).await;
            found.unwrap_or_else(|| json!({"status": "unknown"}))
        }
        other => json!({
            "status": "error",
            "ename": "UnknownMessage",
            "evalue": format!("`{other}` is not served"),
            "traceback": [],
        }),
    }
}

/// Asks the kernel. `None` if its language has nobody to answer, or the answer cannot be read.
async fn ask(
    host: &DialectHost,
    held: &HeldKernel,
    question: &str,
    code: &str,
    cursor: u64,
    detail: u64,
) -> Option<Value> {
    if held.kept.spec.language != Language::Python {
        return None;
    }
    // Texts of JSON are literals of Python.
    let literal = |text: &str| Value::from(text).to_string();
    let expression = format!(
        "__import__('json').dumps((lambda names: (exec({}, names), names['answer'])[1])({{'scope': \
         globals(), 'question': {}, 'text': {}, 'cursor': {cursor}, 'detail': {detail}}}))",
        literal(PROGRAM),
        literal(question),
        literal(code),
    );
    let _turn = held.turn().await.ok()?;
    let owner = cellblock_interpreter::hosting::Owner::new(held.owner.clone());
    let _permit = host.cell(&owner).await.ok()?;
    let cell = Cell::expression(expression).with_timeout(TIMEOUT);
    let execution = held.session.execute(cell).await.ok()?;
    match execution.outputs.first() {
        Some(Output::Primitive(it)) if !it.truncated => match &it.value {
            Scalar::Text(text) => serde_json::from_str(text).ok(),
            _ => None,
        },
        _ => None,
    }
}
