//! Bodies of the Conversations API.

use std::collections::BTreeMap;

use super::fields::RequestFields as _;
use super::{items, json, top};
use crate::wire::error::ApiError;
use crate::wire::id::Ids;
use crate::wire::item::Item;

/// Maximum number of items that one request adds, as in OpenAI's API.
const MAX_ADDED: usize = 20;

/// A request to create or extend a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationRequest {
    /// Items to add.
    pub items: Vec<Item>,
    /// The client's metadata.
    pub metadata: BTreeMap<String, String>,
}

impl ConversationRequest {
    /// Parses a body, which may be empty. Items without an id get one.
    pub fn parse(body: &[u8], ids: &mut Ids) -> Result<Self, ApiError> {
        let body: &[u8] = if body.is_empty() { b"{}" } else { body };
        let body = json(body)?;
        let fields = top(&body)?;
        Ok(Self {
            items: items::list(&fields, "items", MAX_ADDED, ids)?,
            metadata: fields.notes("metadata")?,
        })
    }
}
