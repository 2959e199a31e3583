//! Stored parts of responses.

use std::collections::HashSet;
use std::time::Duration;

use cellblock_agent::provider::INTERPRETER;
use cellblock_agent::wire::{
    ApiError, ErrorKind, Failure, FunctionCall, FunctionCallOutput, FunctionOutput, Item, ItemStatus,
    Program, ProgramOutput, Response, ResponseRequest, ResponseStatus, ToolCaller, is_served_shell,
    paused_programs, served,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::run::{Job, TurnResult, word};
use super::{conversation, retrieve, stow};
use crate::files::fetch;
use crate::now;
use crate::records::responses::{self, ResponseEnd, ResponseStart};
use crate::records::{AddedItems, ConversationUpdate, ItemRow, RecordsError};
use crate::state::Gateway;
use crate::state::responses::unwritten;

/// Number of retries of an end that could not be written while its client waits, and the pause between them.
const TRIES: u32 = 2;
const PAUSE: Duration = Duration::from_millis(250);
/// Output of code that was broken off.
const STOPPED: &str = "(it was stopped, and what it gave is lost)";

/// An end of a response that is not kept.
#[derive(Debug)]
pub(super) struct UnkeptEnd {
    /// Description of the failed write, if the response is stored.
    ended: Option<ResponseEnd>,
    /// Error that its client receives.
    failure: Failure,
    /// Whether it can be written when the records can be again: there is room for it.
    fits: bool,
}

/// Checks that its owner may store what a response stores when it begins.
pub(super) fn ask_room(job: &Job) -> impl Future<Output = Result<(), ApiError>> + use<> {
    let asked: usize = job.asked.iter().map(ItemRow::bytes).sum();
    let own = if job.request.store {
        json!(job.response).to_string().len() + json!(job.request.input).to_string().len()
    } else {
        0
    };
    let (quotas, owner) = (job.gateway.quotas.clone(), job.owner.clone());
    async move {
        match asked + own {
            0 => Ok(()),
            more => quotas.store_more(&owner, more as u64).await,
        }
    }
}

/// Checks that its owner may store the end of a response with what it keeps.
async fn ask_room_for_end(gateway: &Gateway, ended: &ResponseEnd) -> Result<(), ApiError> {
    let results = gateway
        .records
        .not_kept(&ended.owner, ended.results.clone())
        .await?;
    let results: u64 = results.iter().map(|result| result.bytes).sum();
    let more = results + ended.bytes() as u64;
    gateway.quotas.store_more(&ended.owner, more).await
}

/// The error of a quota that is used up. Records that cannot be read are reported by what writes to them.
fn exceeded(room: Result<(), ApiError>) -> Option<ApiError> {
    room.err()
        .filter(|error| error.kind == ErrorKind::TooManyRequests)
}

/// Keeps a response that begins, so that it can be found, and is not lost without a word when the
/// process ends.
pub(super) async fn begun(
    gateway: &Gateway,
    owner: &str,
    request: &ResponseRequest,
    response: &Response,
) -> Result<(), ApiError> {
    let mut body = response.clone();
    let status = if response.background {
        body.status = ResponseStatus::Queued;
        "queued"
    } else {
        "in_progress"
    };
    let mut input = request.input.clone();
    // They count with the end, which keeps them, too.
    let _ = stow::stow(gateway, &response.id, &mut input).await;
    let begun = ResponseStart {
        id: response.id.clone(),
        owner: owner.to_owned(),
        holder: gateway.id.clone(),
        status,
        created_at: response.created_at,
        body: json!(body).to_string(),
        input: json!(input).to_string(),
    };
    let kept = gateway
        .records
        .with(move |connection| responses::begin(connection, &begun));
    Ok(unwritten::note(gateway, kept.await)?)
}

/// Notes that a response waits no longer.
pub(super) async fn running(gateway: &Gateway, response: &Response) {
    let (id, body) = (response.id.clone(), json!(response).to_string());
    let noted = gateway
        .records
        .with(move |connection| responses::update(connection, &id, "in_progress", &body));
    if let Err(error) = noted.await {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "note that a response runs"
        );
    }
}

/// Keeps what came of a response, if it is stored, and leaves it in its conversation, if it has
/// one. What cannot be kept is returned.
pub(super) async fn ended(
    gateway: &Gateway,
    owner: &str,
    previous: Option<String>,
    own: usize,
    played: &TurnResult,
    events: Option<String>,
    left: Option<ConversationUpdate>,
) -> Result<(), Box<UnkeptEnd>> {
    let response = &played.response;
    if !response.store {
        if let Some(left) = left {
            let room = gateway.quotas.store_more(owner, left.bytes() as u64).await;
            if let Some(error) = exceeded(room) {
                return Err(UnkeptEnd::without_room(None, error));
            }
            conversation::extend(gateway, owner, left).await;
        }
        return Ok(());
    }
    let goes_on_in = left.as_ref().map(|left| left.conversation.clone());
    // What is kept refers to pictures; what the client is told has them.
    let mut conversation = played.conversation.clone();
    let mut response = response.clone();
    let own = own.min(conversation.len());
    let mut results = stow::stow(gateway, &response.id, &mut conversation[own..]).await;
    results.extend(stow::stow(gateway, &response.id, &mut response.output).await);
    if let (Some(_), Some(evidence)) = (&played.remembered, &played.evidence) {
        results.extend(evidence.results());
    }
    results.sort_by(|one, other| one.sha256.cmp(&other.sha256));
    results.dedup();
    let new = &conversation[own..];
    let ended = ResponseEnd {
        id: response.id.clone(),
        owner: owner.to_owned(),
        status: word(response.status),
        body: json!(response).to_string(),
        events,
        previous,
        turn: json!(new).to_string(),
        container: played.container.clone(),
        evidence: played.remembered.clone(),
        results,
        items: placed(&response.output, &played.conversation, own),
        left,
    };
    if let Some(error) = exceeded(ask_room_for_end(gateway, &ended).await) {
        return Err(UnkeptEnd::without_room(Some(ended), error));
    }
    let kept = match save(gateway, ended.clone()).await {
        // Somebody deleted what it went on from while it was written.
        Ok(None) => {
            let earlier = stow::stow(gateway, &response.id, &mut conversation[..own]).await;
            let whole = ResponseEnd {
                previous: None,
                turn: json!(conversation).to_string(),
                items: placed(&response.output, &played.conversation, 0),
                results: ended.results.iter().cloned().chain(earlier).collect(),
                ..ended.clone()
            };
            save(gateway, whole).await
        }
        kept => kept,
    };
    let kept = unwritten::note(gateway, kept).map_err(|_| UnkeptEnd::unwritten(ended))?;
    if kept == Some(AddedItems::Deleted) {
        let_go(gateway, &response.id).await;
    }
    if let (Some(conversation), Some(added)) = (goes_on_in, kept) {
        conversation::note(&conversation, added);
    }
    Ok(())
}

impl UnkeptEnd {
    fn unwritten(ended: ResponseEnd) -> Box<Self> {
        let failure = Failure {
            code: "server_error".to_owned(),
            message: "the response could not be stored: the gateway's disk may be full; its log says why"
                .to_owned(),
        };
        Box::new(Self {
            ended: Some(ended),
            failure,
            fits: true,
        })
    }

    fn without_room(ended: Option<ResponseEnd>, error: ApiError) -> Box<Self> {
        let failure = Failure {
            code: error.code.unwrap_or_else(|| "server_error".to_owned()),
            message: format!(
                "the response could not be stored: {}; delete stored responses, conversations or files, \
                 or send `store: false`",
                error.message
            ),
        };
        Box::new(Self {
            ended,
            failure,
            fits: false,
        })
    }

    /// Makes a response one that failed because it could not be stored.
    pub(super) fn fail(&self, response: &mut Response) {
        response.status = ResponseStatus::Failed;
        response.incomplete_details = None;
        response.error = Some(self.failure.clone());
    }

    /// Keeps such a response: as it is in memory until it can be written, or without its output if
    /// there is no room for that.
    pub(super) async fn keep(self, gateway: &Gateway, response: &Response, events: Option<String>) {
        let Some(ended) = self.ended else { return };
        let ended = ResponseEnd {
            status: word(response.status),
            left: None,
            ..ended
        };
        if self.fits {
            let body = json!(response).to_string();
            return unwritten::add(
                gateway,
                ResponseEnd {
                    body,
                    events,
                    ..ended
                },
            );
        }
        let_go(gateway, &ended.id).await;
        let mut response = response.clone();
        response.output.clear();
        let empty = ResponseEnd {
            body: json!(response).to_string(),
            events: None,
            turn: "[]".to_owned(),
            evidence: None,
            results: Vec::new(),
            items: Vec::new(),
            ..ended
        };
        // What cannot be written either is said to have failed after a restart.
        let _ = unwritten::note(gateway, save(gateway, empty).await);
    }
}

/// Releases the pictures and results of a response that keeps none.
async fn let_go(gateway: &Gateway, id: &str) {
    retrieve::forget(gateway, &[id.to_owned()]).await;
    fetch::unpin(gateway, id).await;
}

/// Returns what a response leaves in a conversation: its request, and its result. One that failed or was
/// cancelled leaves nothing, as nobody can tell how much of it the client has seen.
pub(super) fn left(
    conversation: &str,
    asked: Vec<ItemRow>,
    played: &TurnResult,
) -> Option<ConversationUpdate> {
    let response = &played.response;
    if !matches!(
        response.status,
        ResponseStatus::Completed | ResponseStatus::Incomplete
    ) {
        return None;
    }
    // Nobody can answer a call that was cut off.
    let cut = |item: &Item| matches!(item, Item::FunctionCall(call) if call.status != ItemStatus::Completed);
    let output = response
        .output
        .iter()
        .zip(known(&response.output, &played.conversation));
    // Code that goes on, and commands behind it, are recorded with the response in which they end.
    let goes_on = |item: &Item| match item {
        Item::CodeInterpreterCall(call) => call.status.is_running(),
        Item::ShellCall(call) => call.container().is_some() && ran(item, &played.conversation).is_none(),
        _ => false,
    };
    let output = output.filter(|(item, _)| !cut(item) && !goes_on(item));
    let output = output.map(|(item, (id, items))| ItemRow {
        id,
        body: json!(item).to_string(),
        items,
    });
    Some(ConversationUpdate {
        conversation: conversation.to_owned(),
        items: asked.into_iter().chain(output).collect(),
        container: played.container.clone(),
        evidence: played.remembered.clone(),
        most: conversation::MAX_ITEMS,
        now: now(),
    })
}

async fn save(gateway: &Gateway, ended: ResponseEnd) -> Result<Option<AddedItems>, RecordsError> {
    let mut tries = 0;
    loop {
        let ended = ended.clone();
        let saved = gateway
            .records
            .with(move |connection| responses::end(connection, &ended));
        match saved.await {
            Err(error) if error.may_pass() && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            saved => return saved,
        }
    }
}

/// Items of a response by their ids, each as the model knows it. Of code that is a call and what
/// came back, whether or not the client saw it.
fn known(output: &[Item], conversation: &[Item]) -> Vec<(String, String)> {
    let known = output
        .iter()
        .map(|item| (item.id().to_owned(), as_known(item, conversation).to_string()));
    known.collect()
}

/// The same for a turn whose items are kept, which begin at `own`: what has a place there is not kept again.
fn placed(output: &[Item], conversation: &[Item], own: usize) -> Vec<(String, String)> {
    let placed = output.iter().map(|item| {
        let items = match ran(item, conversation) {
            Some(places) if places.iter().all(|place| *place >= own) => {
                json!(places.map(|place| place - own))
            }
            _ => as_known(item, conversation),
        };
        (item.id().to_owned(), items.to_string())
    });
    placed.collect()
}

/// An item as the model knows it.
fn as_known(item: &Item, conversation: &[Item]) -> Value {
    match (item, ran(item, conversation)) {
        (_, Some(places)) => json!(places.map(|place| &conversation[place])),
        // The model did not make it, and only programs run again with their calls.
        (
            Item::FunctionCall(FunctionCall {
                caller: Some(caller), ..
            }),
            None,
        ) if !is_program(caller, conversation) => {
            json!([])
        }
        // The model reads its summary, which has its id.
        (Item::Compaction(compaction), None) => {
            let summary = conversation.iter().filter(|known| known.id() == compaction.id);
            json!(summary.collect::<Vec<_>>())
        }
        (item, None) => json!([item]),
    }
}

/// Returns whether the caller of a function is a program of this conversation.
fn is_program(ToolCaller::Program { caller_id }: &ToolCaller, conversation: &[Item]) -> bool {
    let is_caller = |item: &Item| matches!(item, Item::Program(program) if program.call_id == *caller_id);
    conversation.iter().any(is_caller)
}

/// The places of a call of code or of a server's tool, and of what answers it: the call's id says
/// which item tells it.
fn ran(item: &Item, conversation: &[Item]) -> Option<[usize; 2]> {
    let id = served(item.id());
    let tells = |made: &FunctionCall| match item {
        Item::CodeInterpreterCall(_) | Item::McpCall(_) | Item::ShellCall(_) => made.id == id,
        Item::ShellCallOutput(output) => is_served_shell(&made.id) && made.call_id == output.call_id,
        _ => false,
    };
    let (place, call) = conversation
        .iter()
        .enumerate()
        .find_map(|(place, item)| match item {
            Item::FunctionCall(made) if tells(made) => Some((place, made)),
            _ => None,
        })?;
    // Earlier calls may have the same id.
    let output = conversation[place..]
        .iter()
        .position(|item| matches!(item, Item::FunctionCallOutput(output) if output.call_id == call.call_id));
    Some([place, place + output?])
}

/// Returns whether a call runs code. A function in a namespace is the client's, whatever its name.
fn is_interpreter(call: &FunctionCall) -> bool {
    call.namespace.is_none() && call.name == INTERPRETER
}

/// Whether a call is one that was served here, rather than by the client.
fn is_ours(call: &FunctionCall) -> bool {
    is_interpreter(call) || call.id.starts_with("fc_mcp_") || is_served_shell(&call.id)
}

/// Says of code and tools that were broken off that they were: a call without an output is refused
/// by every provider. Returns the index of the turn's first item, which was `own`: what is added before it
/// is added again when the turn is read.
pub(super) fn mend(conversation: &mut Vec<Item>, mut own: usize) -> usize {
    let answered: HashSet<String> = conversation
        .iter()
        .filter_map(|item| match item {
            Item::FunctionCallOutput(output) => Some(output.call_id.clone()),
            Item::ProgramOutput(output) => Some(output.call_id.clone()),
            _ => None,
        })
        .collect();
    let waits = |(call, output): &(FunctionCall, Option<FunctionOutput>)| {
        output.is_none().then(|| call.caller.clone())
    };
    let waiting = paused_programs(conversation);
    let waiting: Vec<_> = waiting
        .iter()
        .flat_map(|paused| &paused.calls)
        .filter_map(waits)
        .collect();
    let mut place = 0;
    while place < conversation.len() {
        if let Item::Program(Program { call_id, .. }) = &conversation[place]
            && !answered.contains(call_id)
        {
            let caller_id = call_id.clone();
            if !waiting.contains(&Some(ToolCaller::Program { caller_id })) {
                let output = ProgramOutput {
                    id: format!("po_{call_id}"),
                    call_id: call_id.clone(),
                    result: STOPPED.to_owned(),
                    status: ItemStatus::Incomplete,
                };
                own += usize::from(place < own);
                place += 1;
                conversation.insert(place, Item::ProgramOutput(output));
            }
        }
        if let Item::FunctionCall(call) = &conversation[place]
            && is_ours(call)
            && !answered.contains(&call.call_id)
        {
            let call_id = call.call_id.clone();
            let output = FunctionCallOutput {
                caller: None,
                id: format!("fco_{call_id}"),
                status: ItemStatus::Incomplete,
                call_id,
                output: FunctionOutput::Text(STOPPED.to_owned()),
            };
            own += usize::from(place < own);
            place += 1;
            conversation.insert(place, Item::FunctionCallOutput(output));
        }
        place += 1;
    }
    own
}

/// The container that a response's code ran in: that of the first call, where further calls had
/// containers of their own.
pub(super) fn container(response: &Response) -> Option<String> {
    response.output.iter().find_map(|item| match item {
        Item::CodeInterpreterCall(call) => Some(call.container_id.clone()),
        Item::ShellCall(call) => call.container().map(str::to_owned),
        Item::Program(program) => program.container.clone(),
        _ => None,
    })
}

/// Reads what was kept.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, "read a kept response");
        ApiError {
            kind: ErrorKind::ServerError,
            code: Some("server_error".to_owned()),
            message: "what was kept of a response cannot be read; the gateway's log says why".to_owned(),
            param: None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_a_stopped_program_does_not_move_the_items_of_a_turn() {
        let caller = json!({"type": "program", "caller_id": "c1"});
        let items = json!([
            {"type": "program", "id": "prog_1", "call_id": "c1", "code": "", "fingerprint": ""},
            {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "c2", "name": "f",
             "arguments": "{}", "caller": caller},
            {"type": "function_call_output", "id": "fco_1", "status": "completed", "call_id": "c2",
             "output": "1", "caller": caller},
        ]);
        let mut items: Vec<Item> = serde_json::from_value(items).unwrap();
        let mut waiting = items[..2].to_vec();
        assert_eq!(mend(&mut waiting, 1), 1);
        assert_eq!(waiting.len(), 2);
        let own = mend(&mut items, 2);
        let ids: Vec<_> = items[own..].iter().map(Item::id).collect();
        assert_eq!(ids, ["fco_1"]);
        assert_eq!(items[1].id(), "po_c1");
    }
}
