//! Input as a model can read it: what a client sends by its id or sealed is put into words.

use std::collections::HashSet;

use cellblock_agent::wire::{
    ApiError, Compaction, ErrorKind, Item, ItemStatus, Message, Part, Role, ShellPlace,
};

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
    let answered = answered(input);
    let mut known = known(gateway, caller, input, &answered).await?.into_iter();
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
            Item::CodeInterpreterCall(_) | Item::ShellCall(_) if lacks_output(item, &answered) => {
                match known.next().flatten() {
                    Some(found) => items.extend(known_as(gateway, &found).await?),
                    None => items.push(item.clone()),
                }
            }
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

/// Returns the ids of the calls of a shell whose outputs are there.
fn answered(input: &[Item]) -> HashSet<&str> {
    let outputs = input.iter().filter_map(|item| match item {
        Item::ShellCallOutput(output) => Some(output.call_id.as_str()),
        _ => None,
    });
    outputs.collect()
}

/// Returns whether what a call came to is only in the records, if anywhere.
fn lacks_output(item: &Item, answered: &HashSet<&str>) -> bool {
    match item {
        Item::CodeInterpreterCall(call) => call.outputs.is_none(),
        // Some clients omit the environment.
        Item::ShellCall(call) => {
            call.environment != Some(ShellPlace::Local) && !answered.contains(call.call_id.as_str())
        }
        _ => false,
    }
}

/// Returns the records of items that are sent by their ids, and of code whose outputs were left out: one for
/// each, in their order.
async fn known(
    gateway: &Gateway,
    caller: &Caller,
    input: &[Item],
    answered: &HashSet<&str>,
) -> Result<Vec<Option<String>>, ApiError> {
    let asked = input.iter().filter_map(|item| match item {
        Item::ItemReference(reference) => Some(reference.id.clone()),
        item if lacks_output(item, answered) => Some(item.id().to_owned()),
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
    let Some(ConversationSummary { summary, container }) =
        seal.open(&caller.owner, &compaction.encrypted_content)
    else {
        let path = format!("input[{place}].encrypted_content");
        let message = format!("`{path}` was not made by this gateway for you, or was changed");
        return Err(ApiError::invalid(path, "invalid_encrypted_content", message));
    };
    let message = Item::Message(Message {
        id: compaction.id.clone(),
        status: ItemStatus::Completed,
        // Templates of many models refuse other roles in the middle of a conversation.
        role: Role::User,
        content: vec![Part::InputText {
            text: format!("(What was said before, in short:)\n{summary}"),
        }],
        phase: None,
    });
    Ok((message, container))
}
