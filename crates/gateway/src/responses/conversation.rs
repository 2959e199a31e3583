//! Items that responses find in conversations and leave there.

use std::time::Duration;

use cellblock_agent::wire::{ApiError, ErrorKind, Item};
use serde_json::json;

use super::{kept, resolve};
use crate::now;
use crate::records::{AddedItems, ConversationRow, ConversationUpdate, ItemRow, RecordsError};
use crate::state::{Caller, Gateway};

/// Maximum number of items of a conversation: as many as a request may have as its input.
pub(crate) const MAX_ITEMS: usize = 10_000;

/// A conversation as a response goes on in it.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// Its items as the model knows them.
    pub(crate) items: Vec<Item>,
    pub(crate) container: Option<String>,
    /// Stored results of tools.
    pub(crate) evidence: Option<String>,
}

/// Returns what was said in a conversation before a request.
pub(crate) async fn before(gateway: &Gateway, owner: &str, id: &str) -> Result<Conversation, ApiError> {
    let row = find(gateway, owner, id).await?;
    let so_far = gateway.records.conversation_so_far(owner, id).await?;
    if so_far.len() >= MAX_ITEMS {
        return Err(full(id));
    }
    let mut items = Vec::new();
    for known in so_far {
        items.extend(kept::<Vec<Item>>(&known)?);
    }
    Ok(Conversation {
        items,
        container: row.container,
        evidence: row.evidence,
    })
}

/// Leaves a response that is not stored in its conversation.
pub(crate) async fn extend(gateway: &Gateway, owner: &str, left: ConversationUpdate) {
    let id = left.conversation.clone();
    match gateway.records.extend_conversation(owner, left).await {
        Ok(added) => note(&id, added),
        Err(error) => tracing::error!(
            error = &error as &dyn std::error::Error,
            conversation = id,
            "add a response to its conversation"
        ),
    }
}

/// Logs that a response could not be added to its conversation.
pub(crate) fn note(id: &str, added: AddedItems) {
    match added {
        AddedItems::Yes | AddedItems::Deleted => {}
        AddedItems::Unknown => {
            tracing::debug!(conversation = id, "a conversation was deleted while it went on");
        }
        AddedItems::Full => tracing::warn!(
            conversation = id,
            "a conversation is full; a response is not added to it"
        ),
    }
}

/// Items of a client as rows. What refers to something else is kept as what it refers to.
pub(crate) async fn known(
    gateway: &Gateway,
    caller: &Caller,
    items: &[Item],
) -> Result<Vec<ItemRow>, ApiError> {
    let mut rows = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let known = resolve(gateway, caller, std::slice::from_ref(item)).await;
        let known = known.map(|known| known.items).map_err(|error| ApiError {
            param: error
                .param
                .map(|param| param.replacen("input[0]", &format!("items[{place}]"), 1)),
            ..error
        })?;
        if matches!(item, Item::ItemReference(_)) {
            rows.extend(known.iter().map(|item| row(item, std::slice::from_ref(item))));
        } else {
            rows.push(row(item, &known));
        }
    }
    Ok(rows)
}

fn row(item: &Item, known: &[Item]) -> ItemRow {
    ItemRow {
        id: item.id().to_owned(),
        body: json!(item).to_string(),
        items: json!(known).to_string(),
    }
}

/// The container that the code of items ran in last.
pub(crate) fn container(items: &[Item]) -> Option<String> {
    items.iter().rev().find_map(|item| match item {
        Item::CodeInterpreterCall(call) => Some(call.container_id.clone()),
        Item::ShellCall(call) => call.container().map(str::to_owned),
        Item::Program(program) => program.container.clone(),
        _ => None,
    })
}

/// Deletes conversations that nobody has used for so long.
pub(crate) async fn sweep(gateway: &Gateway, retention: Duration) -> Result<(), RecordsError> {
    let before = now().saturating_sub(retention.as_secs());
    let deleted = gateway.records.sweep_conversations(before).await?;
    if deleted > 0 {
        tracing::info!(conversations = deleted, "old conversations are deleted");
    }
    Ok(())
}

/// Finds an owner's conversation.
pub(crate) async fn find(gateway: &Gateway, owner: &str, id: &str) -> Result<ConversationRow, ApiError> {
    let found = gateway.records.conversation(owner, id).await?;
    found.ok_or_else(|| unknown(id))
}

pub(crate) fn unknown(id: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some("conversation_not_found".to_owned()),
        message: format!("there is no conversation `{id}`; it may have been deleted"),
        param: Some("conversation".to_owned()),
    }
}

pub(crate) fn full(id: &str) -> ApiError {
    let message = format!(
        "conversation `{id}` would have more than {MAX_ITEMS} items, the maximum; delete some, or begin \
         another conversation"
    );
    ApiError::invalid("conversation", "conversation_full", message)
}
