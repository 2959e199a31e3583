//! Finds the gateway that has something.

use cellblock_agent::wire::{ApiError, Container, Ids, Item, ResponseRequest};

use super::wanted;
use crate::records::holders::{self, HoldingGateway};
use crate::records::{Database, DatabaseError, RecordsError};
use crate::state::Gateway;

/// Characters of a gateway's id in the ids of its sessions.
const NAMED: usize = 12;

/// Location of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplicaLocation {
    /// Here, or nowhere: this gateway answers.
    Here,
    /// In another gateway that lives.
    At(HoldingGateway),
    /// It was in a gateway that has ended.
    Lost,
}

/// Returns a new id of a session. If other gateways share the records, it names this one.
pub(crate) fn mint_session(gateway: &Gateway) -> String {
    if gateway.records.is_shared() {
        Ids::random().mint(&format!("sess_{}", mark(gateway)))
    } else {
        Ids::random().mint("sess")
    }
}

/// Returns the characters by which ids name this gateway.
pub(super) fn mark(gateway: &Gateway) -> &str {
    mark_of(&gateway.id)
}

/// The same for a gateway with this id.
pub(super) fn mark_of(id: &str) -> &str {
    id.get(..NAMED).unwrap_or(id)
}

/// Returns the beginning of the id of a session's gateway.
fn named(id: &str) -> Option<&str> {
    let (start, _) = id.strip_prefix("sess_")?.split_once('_')?;
    (start.len() == NAMED).then_some(start)
}

pub(super) async fn session(
    gateway: &Gateway,
    owner: &str,
    id: &str,
) -> Result<ReplicaLocation, RecordsError> {
    let Some(start) = named(id).filter(|start| !gateway.id.starts_with(start)) else {
        return Ok(ReplicaLocation::Here);
    };
    if gateway.sessions.0.get(owner, id).is_some() {
        return Ok(ReplicaLocation::Here);
    }
    let start = start.to_owned();
    let found = gateway
        .records
        .with(move |database| holders::beginning_with(database, &start))
        .await?;
    Ok(found.map_or(ReplicaLocation::Lost, ReplicaLocation::At))
}

/// Returns where something is whose id begins with its gateway.
pub(super) async fn marked(gateway: &Gateway, id: &str) -> Result<ReplicaLocation, RecordsError> {
    let is_mark = |start: &&str| start.bytes().all(|byte| byte.is_ascii_hexdigit());
    let start = id.get(..NAMED).filter(is_mark);
    let Some(start) = start.filter(|start| !gateway.id.starts_with(start)) else {
        return Ok(ReplicaLocation::Here);
    };
    let start = start.to_owned();
    elsewhere(gateway, move |database| holders::beginning_with(database, &start)).await
}

/// Returns where an owner's sessions behind a path are. If they are nowhere yet, they are here from
/// now on, or in another gateway if this one drains. A gateway that others do not reach keeps what
/// it has to itself.
pub(super) async fn home(
    gateway: &Gateway,
    path: &str,
    owner: &str,
) -> Result<ReplicaLocation, RecordsError> {
    if gateway.options.advertise.is_none() {
        return Ok(ReplicaLocation::Here);
    }
    let other = if gateway.is_draining() {
        others(gateway).await?.into_iter().next()
    } else {
        None
    };
    let first = other.map_or_else(|| gateway.id.clone(), |other| other.id);
    let (path, owner) = (path.to_owned(), owner.to_owned());
    elsewhere(gateway, move |database| {
        holders::home(database, &path, &owner, &first)
    })
    .await
}

/// One whose gateway has ended is looked for here: its files are in the records.
pub(super) async fn container(
    gateway: &Gateway,
    owner: &str,
    id: &str,
) -> Result<ReplicaLocation, RecordsError> {
    if gateway.containers.has(owner, id) {
        return Ok(ReplicaLocation::Here);
    }
    let (owner, id) = (owner.to_owned(), id.to_owned());
    elsewhere(gateway, move |database| {
        holders::of_container(database, &owner, &id)
    })
    .await
}

/// One that has ended is in the records. With `unfinished`, only one that is being written is elsewhere.
pub(super) async fn response(
    gateway: &Gateway,
    owner: &str,
    id: &str,
    unfinished: bool,
) -> Result<ReplicaLocation, RecordsError> {
    let (owner, id) = (owner.to_owned(), id.to_owned());
    elsewhere(gateway, move |database| {
        holders::of_response(database, &owner, &id, unfinished)
    })
    .await
}

async fn elsewhere(
    gateway: &Gateway,
    find: impl FnOnce(&Database) -> Result<Option<HoldingGateway>, DatabaseError> + Send + 'static,
) -> Result<ReplicaLocation, RecordsError> {
    if !gateway.records.is_shared() {
        return Ok(ReplicaLocation::Here);
    }
    let found = gateway.records.with(|database| find(database)).await?;
    let other = found.filter(|holder| holder.id != gateway.id);
    Ok(other.map_or(ReplicaLocation::Here, ReplicaLocation::At))
}

/// Notes the gateway of what a request for a response names, if that is another one: the code that
/// waits for its outputs, or a container.
pub(crate) async fn request_at(
    gateway: &Gateway,
    owner: &str,
    request: &ResponseRequest,
) -> Result<(), ApiError> {
    if !wanted::can_note() {
        return Ok(());
    }
    let answers = request
        .input
        .iter()
        .any(|item| matches!(item, Item::FunctionCallOutput(_)));
    if let Some(previous) = request.previous_response_id.as_ref().filter(|_| answers)
        && let ReplicaLocation::At(holder) = response(gateway, owner, previous, false).await?
    {
        return Err(wanted::note(holder));
    }
    // Code that waits is in the container of its call.
    let waiting = || {
        request.input.iter().rev().find_map(|item| match item {
            Item::CodeInterpreterCall(call) if call.status.is_running() => Some(&call.container_id),
            _ => None,
        })
    };
    match named_container(request).or_else(waiting) {
        Some(id) => stays(gateway, owner, id).await,
        None => Ok(()),
    }
}

/// Returns the other gateways that live and can be reached. The first is another one each time.
pub(super) async fn others(gateway: &Gateway) -> Result<Vec<HoldingGateway>, RecordsError> {
    let own = gateway.id.clone();
    let mut others = gateway
        .records
        .with(move |database| holders::others(database, &own))
        .await?;
    if !others.is_empty() {
        let first = usize::from(u16::from_be_bytes(crate::random())) % others.len();
        others.rotate_left(first);
    }
    Ok(others)
}

/// Returns the container that a request names.
pub(super) fn named_container(request: &ResponseRequest) -> Option<&String> {
    request.tools.iter().find_map(|tool| match tool.container() {
        Some(Container::Id(id)) => Some(id),
        Some(Container::Auto(_)) | None => None,
    })
}

/// Notes the gateway of a container that a request will use, if that is another one.
pub(crate) async fn stays(gateway: &Gateway, owner: &str, id: &str) -> Result<(), ApiError> {
    if !wanted::can_note() {
        return Ok(());
    }
    match container(gateway, owner, id).await? {
        ReplicaLocation::At(holder) => Err(wanted::note(holder)),
        ReplicaLocation::Here | ReplicaLocation::Lost => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_of_a_session_that_names_a_gateway_leads_to_one() {
        let random = "0".repeat(40);
        assert_eq!(
            named(&format!("sess_0123456789ab_{random}")),
            Some("0123456789ab")
        );
        for id in [
            format!("sess_{random}"),
            format!("sess_short_{random}"),
            "cntr_1".to_owned(),
        ] {
            assert_eq!(named(&id), None, "{id}");
        }
    }
}
