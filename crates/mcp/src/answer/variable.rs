//! A variable as an answer.

use cellblock_artifact::Store;
use cellblock_interpreter::lineage::VariableOrigin;
use cellblock_interpreter::output::{Output, OutputPage};
use cellblock_interpreter::page::PageSelection;
use cellblock_interpreter::render::{self, Block, Detail};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::CallAnswer;
use super::execution::shown;
use super::shape::ShownValue;
use crate::refusal::Refusal;
use crate::sessions::SessionEntry;

/// A variable.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShownVariable {
    /// The session's handle.
    session_id: String,
    /// Its value.
    value: ShownValue,
    /// The requested page of its rows or characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<OutputPage>,
    /// Origin of the variable, if a cell with a producer made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<VariableOrigin>,
}

/// Shows a model a variable, within so many tokens of text.
pub(crate) async fn variable(
    entry: &SessionEntry,
    store: &Store,
    (output, origin): (&Output, Option<VariableOrigin>),
    (selection, detail): (PageSelection, Detail),
    tokens: usize,
) -> Result<CallAnswer, Refusal> {
    let mut answer = CallAnswer::default();
    let mut page = None;
    if selection.is_some() {
        let read = selection.of(output, store).await?;
        answer.text(render::page(output, &read, tokens));
        page = Some(read);
    } else {
        for block in render::detailed(std::slice::from_ref(output), detail, tokens) {
            match block {
                Block::Text { text } => answer.text(text),
                Block::Image { image, .. } => answer.picture(&image),
            }
        }
    }
    let value = shown(entry, output, tokens / 2);
    for link in &value.resources {
        answer.text(link.line("output"));
        answer.link(link);
    }
    if let Some(origin) = &origin {
        answer.text(format!("[origin] {}", json!(origin)));
    }
    answer.text(format!("[session_id] {}", entry.id));
    answer.structured(&ShownVariable {
        session_id: entry.id.clone(),
        value,
        page,
        origin,
    });
    Ok(answer)
}
