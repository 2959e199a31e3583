//! Input as a model can read it: what a client sends by its id or sealed is put into words.

use std::collections::HashSet;

use cellblock_agent::turn::summary_item;
use cellblock_agent::wire::{ApiError, Compaction, ErrorKind, Item, ShellPlace};

use super::stow;
use crate::records::responses;
use crate::records::whereabouts::Lead;
use crate::state::responses::{ConversationSummary, Seal};
use crate::state::{Caller, Gateway};

/// Input as a model can read it, and what in it can lead to the container of its conversation.
pub(crate) struct ResolvedInput {
    pub(crate) items: Vec<Item>,
    pub(crate) leads: Vec<Lead>,
}

/// Replaces references, such as that to an item, with what they refer to.
pub(crate) async fn resolve(
    gateway: &Gateway,
    caller: &Caller,
    input: &[Item],
) -> Result<ResolvedInput, ApiError> {
    let shell = ShellCallIds::of(input);
    let mut known = known(gateway, caller, input, &shell).await?.into_iter();
    let mut items = Vec::with_capacity(input.len());
    let mut leads = Vec::with_capacity(input.len());
    for (place, item) in input.iter().enumerate() {
        leads.push(match item {
            Item::CodeInterpreterCall(call) => Lead::Container(call.container_id.clone()),
            Item::ShellCall(call) => match call.container() {
                Some(container) => Lead::Container(container.to_owned()),
                None => Lead::Item(call.id.clone()),
            },
            item => Lead::Item(item.id().to_owned()),
        });
        match item {
            Item::ItemReference(reference) => {
                let found = known.next().flatten().ok_or_else(|| ApiError {
                    kind: ErrorKind::NotFound,
                    code: Some("item_not_found".to_owned()),
                    message: format!(
                        "there is no item `{}`; its response was not stored, or is deleted",
                        reference.id
                    ),
                    param: Some(format!("input[{place}].id")),
                })?;
                items.extend(known_as(gateway, &found).await?);
            }
            item if shell.lacks(item) => match known.next().flatten() {
                Some(found) => items.extend(known_as(gateway, &found).await?),
                None => items.push(item.clone()),
            },
            Item::Compaction(compaction) => {
                let (item, container) = opened(gateway, caller, compaction, place).await?;
                items.push(item);
                leads.extend(container.map(Lead::Container));
            }
            item => items.push(item.clone()),
        }
    }
    Ok(ResolvedInput { items, leads })
}

/// Call ids of an input's calls of a shell, and of their outputs.
struct ShellCallIds<'a> {
    called: HashSet<&'a str>,
    answered: HashSet<&'a str>,
}

impl<'a> ShellCallIds<'a> {
    fn of(input: &'a [Item]) -> Self {
        let called = input.iter().filter_map(|item| match item {
            Item::ShellCall(call) => Some(call.call_id.as_str()),
            _ => None,
        });
        let answered = input.iter().filter_map(|item| match item {
            Item::ShellCallOutput(output) => Some(output.call_id.as_str()),
            _ => None,
        });
        Self {
            called: called.collect(),
            answered: answered.collect(),
        }
    }

    /// Returns whether the outputs of a call, or the call of outputs, are only in the records, if anywhere.
    fn lacks(&self, item: &Item) -> bool {
        match item {
            Item::CodeInterpreterCall(call) => call.outputs.is_none(),
            // Some clients omit the environment.
            Item::ShellCall(call) => {
                call.environment != Some(ShellPlace::Local) && !self.answered.contains(call.call_id.as_str())
            }
            // Some clients cut the history between the two.
            Item::ShellCallOutput(output) => !self.called.contains(output.call_id.as_str()),
            _ => false,
        }
    }
}

/// Returns the records of items that are sent by their ids, and of calls without their outputs or outputs
/// without their calls: one for each, in their order.
async fn known(
    gateway: &Gateway,
    caller: &Caller,
    input: &[Item],
    shell: &ShellCallIds<'_>,
) -> Result<Vec<Option<String>>, ApiError> {
    let asked = input.iter().filter_map(|item| match item {
        Item::ItemReference(reference) => Some(reference.id.clone()),
        item if shell.lacks(item) => Some(item.id().to_owned()),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let owner = caller.owner.clone();
    let found = gateway.records.with(move |connection| {
        let found = asked.iter().map(|id| responses::item(connection, &owner, id));
        found.collect()
    });
    Ok(found.await?)
}

async fn known_as(gateway: &Gateway, found: &str) -> Result<Vec<Item>, ApiError> {
    let mut items: Vec<Item> = super::kept(found)?;
    stow::restore(&gateway.store, &mut items).await;
    Ok(items)
}

async fn opened(
    gateway: &Gateway,
    caller: &Caller,
    compaction: &Compaction,
    place: usize,
) -> Result<(Item, Option<String>), ApiError> {
    let seal = Seal::of(gateway).await?;
    let Some(opened) = seal.open(&caller.owner, &compaction.encrypted_content) else {
        let path = format!("input[{place}].encrypted_content");
        let message = format!("`{path}` was not made by this gateway for you, or was changed");
        return Err(ApiError::invalid(path, "invalid_encrypted_content", message));
    };
    let ConversationSummary {
        summary,
        container,
        replaces,
    } = opened;
    let message = summary_item(compaction.id.clone(), &summary, replaces);
    Ok((message, container))
}
