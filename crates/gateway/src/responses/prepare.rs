//! Makes a request ready to be answered: its model, the conversation that it goes on from, and
//! where its code runs.

use std::sync::Arc;

use cellblock_agent::provider::Provider;
use cellblock_agent::turn::{Evidence, Turn, client_functions};
use cellblock_agent::wire::{
    ApiError, Dialect, Ids, Item, Response, ResponseRequest, Tool, Truncation, check_approvals,
};
use cellblock_interpreter::connector::{CATALOG_TOKENS, Connector, catalog};

use super::answered::{CallPairs, as_functions};
use super::research::{PriorEvidence, referenced, research};
use super::resolve::{ResolvedInput, resolve};
use super::resume::ResumedTurn;
use super::run::Job;
use super::stow;
use super::truncate::TruncatingProvider;
use super::turn_seal::TurnSeal;
use super::{container, conversation, keep, programmatic, programs, resume};
use crate::containers;
use crate::now;
use crate::quotas::QuotaRunner;
use crate::records::{ItemRow, responses};
use crate::replicas;
use crate::state::responses::WaitingTurn;
use crate::state::{Caller, Gateway};

/// Description of the functions for datasets, for models whose containers have a project.
const DATASETS: &str = "Code can share data frames with other conversations: `list_datasets()`, \
                        `publish_dataset(df, \"slug\", title=\"…\")`, `read_dataset(\"slug\")`, which \
                        describes a dataset, and `load_dataset(\"slug\")`. Before code loads a dataset \
                        that another conversation has published, call `read_dataset` in an earlier call \
                        and check what it describes.\n";

/// A conversation that a connection remembers, of a response that is not stored.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The response's id.
    pub(super) id: String,
    /// Items that the model read and said.
    pub(super) conversation: Vec<Item>,
    pub(super) container: Option<String>,
    /// Results of tools.
    pub(super) evidence: Option<Evidence>,
}

/// State from before a request.
#[derive(Debug, Default)]
pub(super) struct PriorConversation {
    items: Vec<Item>,
    pub(super) container: Option<String>,
    evidence: PriorEvidence,
    /// Whether it is in the records, so that it need not be kept again.
    stored: bool,
}

/// Prepares a request. Its errors are reported before anything runs.
pub(super) async fn prepare(
    gateway: &Gateway,
    caller: &Caller,
    request: ResponseRequest,
    dialect: Dialect,
    memory: Option<&Memory>,
) -> Result<Job, ApiError> {
    let (mut job, resumed) = look(gateway, caller, request, dialect, memory).await?;
    keep::ask_room(&job).await?;
    // Last, because an error above would lose it.
    if let Some(resumed) = resumed {
        job.turn = job.turn.resuming(resumed.take(gateway)?);
    }
    Ok(job)
}

/// Prepares a request that is not going to be run: code that waits for it goes on waiting, and is
/// returned beside.
pub(super) async fn look(
    gateway: &Gateway,
    caller: &Caller,
    request: ResponseRequest,
    dialect: Dialect,
    memory: Option<&Memory>,
) -> Result<(Job, Option<ResumedTurn>), ApiError> {
    let mut provider = gateway.models.provider(&request.model)?;
    gateway.options.refuse_tools(&request.tools)?;
    if request.truncation == Truncation::Auto {
        provider = Arc::new(TruncatingProvider::new(provider)) as Arc<dyn Provider>;
    }
    let mut resumed = resume::find(gateway, caller, &request)?;
    if resumed.is_none() {
        replicas::request_at(gateway, &caller.owner, &request).await?;
    }
    let (earlier, input) = if let Some(resumed) = &mut resumed {
        (goes_on(&mut resumed.turn, &request), resumed.others.clone())
    } else {
        let mut earlier = earlier(gateway, caller, &request, memory).await?;
        // Its code may have waited in vain for the client.
        keep::mend(&mut earlier.items, 0);
        (earlier, resume::without_calls_of_code(&request.input)?)
    };
    let ResolvedInput { items: input, leads } = resolve(gateway, caller, &input).await?;
    let leads = programs::leads(gateway, caller, &request, [&earlier.items, &input], leads).await?;
    let (container, key) = container::find(gateway, &caller.owner, &request, leads, &earlier).await?;
    if let Some(id) = container.as_deref().filter(|_| uses_container(&request)) {
        replicas::stays(gateway, &caller.owner, id).await?;
    }
    if resumed.is_none() {
        replicas::accepts(gateway, &caller.owner, &request, container.as_deref()).await?;
    }
    let asked = asked(gateway, caller, &request, resumed.as_ref()).await?;
    let mut calls = CallPairs::default();
    let mut conversation = as_functions(earlier.items, &mut calls);
    let own = if earlier.stored { conversation.len() } else { 0 };
    conversation.extend(as_functions(input, &mut calls));
    let by_code = resumed
        .as_ref()
        .map_or(&[][..], |resumed| &resumed.turn.unanswered);
    calls.check(by_code)?;
    check_approvals(&conversation)?;
    // What is not stored and has no key is come back to by its items at most.
    let brief = !request.store && key.is_none() && request.conversation.is_none();
    let runner = containers::runner(gateway, caller, &request, container.as_deref(), brief).await?;
    let runner = Arc::new(QuotaRunner::new(
        runner,
        gateway.quotas.clone(),
        caller.owner.clone(),
        gateway.options.containers.wait_timeout,
    ));
    let response = Response::new(&request, Ids::random().mint("resp"), now());
    let before = match earlier.evidence {
        PriorEvidence::Nothing => referenced(gateway, caller, &request.input).await?,
        before => before,
    };
    let lent = programmatic::lent(gateway, &caller.owner, &request).await?;
    let research = research(
        gateway,
        &caller.owner,
        &request,
        &response.id,
        before,
        &*runner,
        &mut conversation,
    )
    .await?;
    let evidence = research.as_ref().map(|research| research.evidence.clone());
    let turn = Turn::new(provider, runner)
        .steps(gateway.options.turn.max_steps)
        .until(gateway.ending.clone())
        .max_timeout(gateway.options.max_cell_timeout)
        .sealing(Arc::new(TurnSeal {
            gateway: gateway.clone(),
            owner: caller.owner.clone(),
            container: container.clone(),
        }))
        .catalog(functions(gateway, caller, &request, &lent).await?)
        .lending(lent)
        .research(research)
        .sealing_programs(programs::seal(gateway, &caller.owner, &request).await?);
    let job = Job {
        gateway: gateway.clone(),
        owner: caller.owner.clone(),
        generate: !request.prompt_cache.prewarms(),
        previous: request.previous_response_id.clone().filter(|_| earlier.stored),
        request,
        response,
        conversation,
        own,
        asked,
        container,
        key,
        evidence,
        turn,
        dialect,
    };
    Ok((job, resumed))
}

/// Returns the request's input as its conversation is to have it, if it has one.
async fn asked(
    gateway: &Gateway,
    caller: &Caller,
    request: &ResponseRequest,
    resumed: Option<&ResumedTurn>,
) -> Result<Vec<ItemRow>, ApiError> {
    match (&request.conversation, resumed) {
        (Some(_), Some(resumed)) => {
            let mut rows = conversation::known(gateway, caller, &resumed.others).await?;
            rows.extend(resumed.rows(&request.input));
            Ok(rows)
        }
        (Some(_), None) => conversation::known(gateway, caller, &request.input).await,
        (None, _) => Ok(Vec::new()),
    }
}

fn uses_container(request: &ResponseRequest) -> bool {
    cellblock_agent::wire::container(&request.tools).is_some()
}

fn runs_code(request: &ResponseRequest) -> bool {
    request.tools.iter().any(Tool::is_interpreter)
}

/// Returns the state from before a request that answers calls of code.
fn goes_on(turn: &mut WaitingTurn, request: &ResponseRequest) -> PriorConversation {
    PriorConversation {
        items: std::mem::take(&mut turn.items),
        container: turn.container.take(),
        evidence: turn
            .evidence
            .take()
            .map_or(PriorEvidence::Nothing, PriorEvidence::Live),
        stored: turn.stored && request.previous_response_id.is_some(),
    }
}

async fn earlier(
    gateway: &Gateway,
    caller: &Caller,
    request: &ResponseRequest,
    memory: Option<&Memory>,
) -> Result<PriorConversation, ApiError> {
    if let Some(id) = &request.conversation {
        let found = conversation::before(gateway, &caller.owner, id).await?;
        return Ok(PriorConversation {
            items: found.items,
            container: found.container,
            evidence: found.evidence.map_or(PriorEvidence::Nothing, PriorEvidence::Kept),
            stored: false,
        });
    }
    let Some(id) = request.previous_response_id.clone() else {
        return Ok(PriorConversation::default());
    };
    if let Some(memory) = memory.filter(|memory| memory.id == id) {
        return Ok(PriorConversation {
            items: memory.conversation.clone(),
            container: memory.container.clone(),
            evidence: memory
                .evidence
                .clone()
                .map_or(PriorEvidence::Nothing, PriorEvidence::Live),
            stored: false,
        });
    }
    let (owner, wanted) = (caller.owner.clone(), id.clone());
    let found = gateway
        .records
        .with(move |connection| responses::conversation(connection, &owner, &wanted))
        .await?;
    let invalid = |code: &str, message| ApiError::invalid("previous_response_id", code, message);
    let Some(found) = found else {
        let message = format!("there is no response `{id}`; it was not stored, or is deleted");
        return Err(invalid("previous_response_not_found", message));
    };
    if gateway.responses.unwritten.find(&caller.owner, &id).is_some() {
        let message = format!("the response `{id}` failed: its end could not be stored");
        return Err(invalid("previous_response_not_found", message));
    }
    if matches!(found.status.as_str(), "queued" | "in_progress") {
        let message = format!("the response `{id}` is still being written; wait for its end");
        return Err(invalid("previous_response_not_completed", message));
    }
    if found.turns.is_empty() {
        let message = format!("the response `{id}` failed before it had a conversation to go on from");
        return Err(invalid("previous_response_not_found", message));
    }
    let mut items: Vec<Item> = Vec::new();
    for turn in &found.turns {
        items.extend(super::kept::<Vec<Item>>(turn)?);
    }
    stow::restore(&gateway.store, &mut items).await;
    Ok(PriorConversation {
        items,
        container: found.container,
        evidence: found.evidence.map_or(PriorEvidence::Nothing, PriorEvidence::Kept),
        stored: true,
    })
}

/// The functions that the request's code can call, for the model. Code at another server can call none.
async fn functions(
    gateway: &Gateway,
    caller: &Caller,
    request: &ResponseRequest,
    lent: &[Arc<dyn Connector>],
) -> Result<String, ApiError> {
    if gateway.interpreter().is_err() || !runs_code(request) {
        return Ok(String::new());
    }
    let mut connectors = gateway.connectors(&caller.owner).await?;
    connectors.retain(|own| lent.iter().all(|it| it.name() != own.name()));
    connectors.extend_from_slice(lent);
    connectors.extend(client_functions(&request.tools));
    let mut text = catalog(&connectors, CATALOG_TOKENS).await;
    if gateway.options.containers.project.is_some() {
        text += DATASETS;
    }
    Ok(text)
}
