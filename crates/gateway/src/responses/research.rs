//! Tools with which the turn of a response fetches and derives, and what is kept of that.

use std::error::Error;
use std::sync::Arc;

use cellblock_agent::tools::{ContractRule, OWN, OfferedToolset, Source, sources};
use cellblock_agent::turn::{ChartIntent, DerivationTerms, Evidence, Plan, Research, Runner};
use cellblock_agent::wire::{ApiError, Item, Response, ResponseRequest, Tool};
use cellblock_artifact::{ArtifactId, Urls};
use cellblock_interpreter::derivation::DerivationPolicy;
use cellblock_interpreter::toolset::{ToolsetKind, ToolsetTerms, patch};
use serde_json::{Value, json};

use super::commands::KIND as COMMANDS;
use super::returned;
use crate::artifacts;
use crate::quotas::ResultRoom;
use crate::records::responses;
use crate::state::{Caller, Gateway};

/// The note of a request that says whether the user wants a chart: `none`, `implicit` or `explicit`.
const CHART_INTENT: &str = "chart_intent";

/// Results of tools from before a request.
#[derive(Clone, Debug, Default)]
pub(super) enum PriorEvidence {
    #[default]
    Nothing,
    /// Stored results.
    Kept(String),
    /// Itself, of a response that is not stored and that this connection goes on from.
    Live(Evidence),
}

/// Returns the tools with which a response's turn fetches, if it has any. Calls of tools among the
/// conversation's items, as clients send them back that keep conversations themselves, become results again.
pub(super) async fn research(
    gateway: &Gateway,
    owner: &str,
    request: &ResponseRequest,
    id: &str,
    before: PriorEvidence,
    runner: &dyn Runner,
    conversation: &mut Vec<Item>,
) -> Result<Option<Research>, ApiError> {
    let mut sources = sources(&gateway.options.tools, &toolsets(gateway, id, request), request)?;
    if patches_container(gateway, request) && !sources.iter().any(|source| source.label == OWN) {
        sources.push(Source::own(offered(gateway, id, patch::KIND)));
    }
    let earlier = !matches!(before, PriorEvidence::Nothing);
    if sources.is_empty() && !earlier {
        return Ok(None);
    }
    let room = ResultRoom::new(gateway.quotas.clone(), gateway.records.clone(), owner.to_owned());
    let evidence = evidence(gateway, id, before).await.within(Arc::new(room));
    returned::take_over(gateway, owner, &sources, &evidence, conversation).await;
    let fetches = sources.iter().any(Source::fetches);
    let derives = runner.derives() && (fetches || earlier);
    Ok(Some(Research {
        sources,
        evidence,
        deriving: derives.then(|| deriving(gateway, fetches)).flatten(),
        plan: plan(request),
        chart_boost: gateway.options.turn.chart_steps,
        tokens: gateway.options.turn.max_tool_tokens,
        urls: urls(gateway),
    }))
}

/// Toolsets whose tools work where a response's code runs, so that a request may name them. Cells and
/// derivations are what `code_interpreter` does already.
fn toolsets(gateway: &Gateway, response: &str, request: &ResponseRequest) -> Vec<OfferedToolset> {
    let options = &gateway.options;
    if !runs_toolsets(gateway) {
        return Vec::new();
    }
    let kinds = options.sessions.toolsets.iter().copied();
    let kinds = kinds.filter(|kind| !kind.runs_cells() && !kind.on_results);
    let commands = |tool: &Tool| matches!(tool, Tool::Mcp(tool) if tool.server_label == COMMANDS.name);
    let commands = request.tools.iter().any(commands).then_some(COMMANDS);
    let kinds = kinds.chain(commands);
    kinds.map(|kind| offered(gateway, response, kind)).collect()
}

fn offered(gateway: &Gateway, response: &str, kind: ToolsetKind) -> OfferedToolset {
    OfferedToolset {
        kind,
        terms: ToolsetTerms {
            owner: format!("{response}_{}", kind.name),
            max_timeout: gateway.options.max_cell_timeout,
            ..ToolsetTerms::default()
        },
    }
}

/// Returns whether toolsets work where code runs.
fn runs_toolsets(gateway: &Gateway) -> bool {
    gateway.options.code_interpreter && gateway.interpreter().is_ok()
}

/// Returns whether the model can patch the files of a container. A client that patches its own files has said
/// that its model can write patches.
fn patches_container(gateway: &Gateway, request: &ResponseRequest) -> bool {
    let patches = |tool: &Tool| matches!(tool, Tool::ApplyPatch { .. });
    let has_container = |tool: &Tool| tool.container().is_some();
    runs_toolsets(gateway) && request.tools.iter().any(patches) && request.tools.iter().any(has_container)
}

/// Returns the results of tools from before a request that refers to items by their ids: what the response of
/// the last one remembers. Items of conversations that do not continue each other may show one alias for two
/// results; then nothing is remembered, and what is needed is fetched again.
pub(super) async fn referenced(
    gateway: &Gateway,
    caller: &Caller,
    input: &[Item],
) -> Result<PriorEvidence, ApiError> {
    let ids = input.iter().filter_map(|item| match item {
        Item::ItemReference(reference) => Some(reference.id.clone()),
        _ => None,
    });
    let ids: Vec<_> = ids.collect();
    if ids.is_empty() {
        return Ok(PriorEvidence::Nothing);
    }
    let owner = caller.owner.clone();
    let found = gateway.records.with(move |connection| {
        let found = ids.iter().map(|id| responses::evidence(connection, &owner, id));
        found.collect::<Result<Vec<_>, _>>()
    });
    let mut kept: Vec<String> = found.await?.into_iter().flatten().collect();
    kept.dedup();
    let Some(last) = kept.pop() else {
        return Ok(PriorEvidence::Nothing);
    };
    if kept.iter().all(|earlier| Evidence::goes_on(&last, earlier)) {
        Ok(PriorEvidence::Kept(last))
    } else {
        Ok(PriorEvidence::Nothing)
    }
}

/// Results so far. What cannot be read again is fetched again: the conversation still shows its outline.
async fn evidence(gateway: &Gateway, id: &str, before: PriorEvidence) -> Evidence {
    match before {
        PriorEvidence::Nothing => {}
        PriorEvidence::Live(evidence) => return evidence,
        PriorEvidence::Kept(kept) => match Evidence::load(gateway.store.clone(), id, &kept).await {
            Ok(evidence) => return evidence,
            Err(error) => tracing::warn!(
                error = &error as &dyn Error,
                response = id,
                "results of earlier turns cannot be read again"
            ),
        },
    }
    Evidence::new(gateway.store.clone(), id)
}

/// Returns the way in which code derives. In a turn that fetches nothing it need not: what earlier turns
/// fetched is there for code that declares it.
fn deriving(gateway: &Gateway, fetches: bool) -> Option<DerivationTerms> {
    let options = &gateway.options.turn;
    let required = match options.contract {
        ContractRule::Required => fetches,
        ContractRule::Optional => false,
        ContractRule::Off => return None,
    };
    let interpreter = gateway.interpreter().ok()?;
    Some(DerivationTerms {
        required,
        policy: DerivationPolicy {
            max_attempts: options.max_attempts,
            low_coverage: options.low_coverage,
            cell_timeout: interpreter.limits().cell_timeout,
            urls: urls(gateway),
            ..DerivationPolicy::default()
        },
        interpreter: Arc::clone(interpreter),
    })
}

fn plan(request: &ResponseRequest) -> Plan {
    let intent = request.metadata.get(CHART_INTENT);
    // Notes are the client's own: one that says something else is not about this.
    let chart_intent: ChartIntent = intent
        .and_then(|intent| serde_json::from_value(json!(intent)).ok())
        .unwrap_or_default();
    Plan { chart_intent }
}

/// Returns the addresses of artifacts.
fn urls(gateway: &Gateway) -> Urls {
    let before = gateway.options.containers.public_url.trim_end_matches('/');
    Urls::below(format!("{before}/v1/artifacts")).unwrap_or_default()
}

/// Lets the owner read what was fetched and derived, and keeps it as long as the response. Gives
/// what the next turn needs.
pub(super) async fn keep(
    gateway: &Gateway,
    owner: &str,
    evidence: &Evidence,
    response: &Response,
) -> Option<String> {
    let mut all: Vec<_> = evidence
        .aliases()
        .entries()
        .iter()
        .map(|entry| entry.sha256.to_string())
        .collect();
    let mut made = Vec::new();
    if let Some(report) = &response.cellblock {
        made.extend(report.dataset.iter().map(|dataset| dataset.sha256));
        let artifacts = report
            .artifacts
            .iter()
            .flat_map(|artifact| [&artifact["sha256"], &artifact["picture"]["sha256"]])
            .filter_map(Value::as_str);
        made.extend(artifacts.filter_map(|sha256| sha256.parse::<ArtifactId>().ok()));
    }
    all.extend(made.iter().map(ToString::to_string));
    if let Err(error) = artifacts::grant(&gateway.records, owner, all).await {
        tracing::error!(
            error = &error as &dyn Error,
            "let a caller read what was fetched for them"
        );
    }
    if !response.store {
        return None;
    }
    if let Err(error) = gateway.store.pin(&response.id, made).await {
        tracing::error!(error = &error as &dyn Error, "keep what was derived");
    }
    let saved = evidence.save().await;
    saved
        .inspect_err(|error| tracing::error!(error = error as &dyn Error, "keep what was fetched"))
        .ok()
        .flatten()
}
