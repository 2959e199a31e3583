//! The input of a request: a text, or items with settings between them.

use serde_json::Value;

use super::fields::{Fields, RequestFields as _};
use super::items::{self, MAX_ITEMS};
use crate::wire::content::Part;
use crate::wire::error::ApiError;
use crate::wire::id::Ids;
use crate::wire::item::{Item, ItemStatus, Message, Role};
use crate::wire::response::TextFormat;

/// Items of a request, and settings that stand between them.
#[derive(Debug, Default)]
pub(super) struct RequestInput {
    /// The items.
    pub(super) items: Vec<Item>,
    /// Whether the last item asks for a compaction.
    pub(super) compacts: bool,
    /// Reasoning effort of the last update that has one.
    pub(super) effort: Option<String>,
    /// Format of the answer of the last update that has one.
    pub(super) format: Option<TextFormat>,
}

impl RequestInput {
    /// Parses `input`.
    pub(super) fn of(fields: &Fields<'_>, ids: &mut Ids) -> Result<Self, ApiError> {
        match fields.get("input") {
            None => Err(fields.missing("input")),
            Some(Value::String(text)) => Ok(Self {
                items: vec![Item::Message(Message {
                    id: ids.mint("msg"),
                    status: ItemStatus::Completed,
                    role: Role::User,
                    content: vec![Part::InputText { text: text.clone() }],
                    phase: None,
                })],
                ..Self::default()
            }),
            Some(Value::Array(_)) => Self::list(fields, ids),
            Some(_) => Err(fields.wrong("input", "a string or an array of items")),
        }
    }

    fn list(fields: &Fields<'_>, ids: &mut Ids) -> Result<Self, ApiError> {
        items::bounded(fields, "input", MAX_ITEMS)?;
        let mut input = Self::default();
        let mut left = fields.list("input")?.len();
        fields.each("input", |fields| {
            left -= 1;
            match fields.text("type")?.as_deref() {
                Some("compaction_trigger") if left == 0 => input.compacts = true,
                Some("configuration_update") => input.update(fields)?,
                _ => input.items.push(items::item(fields, ids)?),
            }
            Ok(())
        })?;
        Ok(input)
    }

    /// Parses `configuration_update`. All model calls of a request come after its input, so that only
    /// the last update counts.
    fn update(&mut self, fields: &Fields<'_>) -> Result<(), ApiError> {
        if let Some(reasoning) = fields.fields("reasoning")? {
            let effort = reasoning.text("effort")?;
            self.effort = effort.or_else(|| self.effort.take());
        }
        if let Some(text) = fields.fields("text")? {
            self.format = Some(super::format(&text.required_fields("format")?, None)?);
        }
        Ok(())
    }
}
