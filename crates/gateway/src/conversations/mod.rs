//! The Conversations API: conversations that are kept here, item by item.
//!
//! `/v1/responses` goes on in one that its request names ([`before`]), and leaves its input and its output there ([`extend`]).

mod items;
mod keep;
mod routes;

pub(crate) use keep::{before, extend, known, sweep};
pub(crate) use routes::routes;

use cellblock_agent::wire::{ApiError, ErrorKind};

use crate::records::ConversationRow;
use crate::state::Gateway;

/// Maximum number of items of a conversation: as many as a request may have as its input.
const MAX_ITEMS: usize = 10_000;

async fn find(gateway: &Gateway, owner: &str, id: &str) -> Result<ConversationRow, ApiError> {
    let found = gateway.records.conversation(owner, id).await?;
    found.ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some("conversation_not_found".to_owned()),
        message: format!("there is no conversation `{id}`; it may have been deleted"),
        param: Some("conversation".to_owned()),
    }
}

fn full(id: &str) -> ApiError {
    let message = format!(
        "conversation `{id}` would have more than {MAX_ITEMS} items, the maximum; delete some, or begin another conversation"
    );
    ApiError::invalid("conversation", "conversation_full", message)
}
