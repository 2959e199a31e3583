//! A variable as an answer.

use cellblock_artifact::Store;
use cellblock_interpreter::lineage::VariableOrigin;
use cellblock_interpreter::output::{Output, TablePage};
use cellblock_interpreter::page::PageSelection;
use cellblock_interpreter::render::{self, Block};
use schemars::JsonSchema;
use serde::Serialize;

use super::CallAnswer;
use super::execution::shown;
use super::shape::ShownValue;
use crate::refusal::Refusal;
use crate::sessions::SessionEntry;

/// A variable.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShownVariable {
    /// The session's handle.
    session: String,
    /// Its value.
    value: ShownValue,
    /// The requested page of rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<TablePage>,
    /// Where it comes from, if a cell with a producer made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<VariableOrigin>,
}

/// Shows a model a variable, within so many tokens of text.
pub(crate) async fn variable(
    entry: &SessionEntry,
    store: &Store,
    (output, origin): (&Output, Option<VariableOrigin>),
    selection: PageSelection,
    tokens: usize,
) -> Result<CallAnswer, Refusal> {
    let mut answer = CallAnswer::default();
    let mut page = None;
    if selection.is_some() {
        let Output::Dataframe(table) = output else {
            return Err(Refusal::new("`rows` and `page` are for tables: leave them out"));
        };
        let read = selection.of(table, store).await?;
        answer.text(render::page(table, &read, tokens));
        page = Some(read);
    } else {
        for block in render::to_model(std::slice::from_ref(output), tokens) {
            match block {
                Block::Text { text } => answer.text(text),
                Block::Image { image, .. } => answer.picture(store, &image).await,
            }
        }
    }
    let value = shown(entry, output, tokens / 2);
    for link in &value.resources {
        answer.link(link);
    }
    answer.structured(&ShownVariable {
        session: entry.id.clone(),
        value,
        page,
        origin,
    });
    Ok(answer)
}
