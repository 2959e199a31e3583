//! `POST /exec/programmatic`: code that calls tools of the client, which answers them between two requests.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State as Given;
use axum::extract::rejection::JsonRejection;
use axum::http::HeaderMap;
use cellblock_interpreter::Cell;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::connector::Redaction;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::access::Caller;
use super::conversation::room;
use super::error::Problem;
use super::exec::{InputFile, check_profile, inputs, language};
use super::names;
use super::rounds::{ClientTools, PATIENCE, Program, ProgramStep, TOOLS};
use super::run::{self, RunJob, cells};
use super::state::State;

const REQUEST: &str = "x-librechat-code-request-id";
const WORKSPACE: &str = "x-librechat-code-workspace-id";
/// Maximum number of tools.
const MAX_TOOLS: usize = 512;
/// Calls that wait until the program's task takes them.
const CALLS: usize = 16;

/// A program to run, or results for one that waits.
#[derive(Debug, Deserialize)]
pub(super) struct ProgrammaticRequest {
    continuation_token: Option<String>,
    #[serde(default)]
    tool_results: Vec<GivenResult>,
    code: Option<String>,
    #[serde(default)]
    tools: Vec<ToolSpec>,
    #[serde(alias = "language")]
    lang: Option<String>,
    #[serde(default)]
    files: Option<Vec<InputFile>>,
    runtime_session_hint: Option<String>,
    /// In milliseconds.
    timeout: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct ToolSpec {
    name: String,
}

#[derive(Debug, Deserialize)]
struct GivenResult {
    call_id: String,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    is_error: bool,
    error_message: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CancelRequest {
    request_id: String,
}

pub(super) async fn step(
    Given(state): Given<State>,
    caller: Caller,
    headers: HeaderMap,
    request: Result<Json<ProgrammaticRequest>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(step) = request?;
    check_profile(&headers)?;
    if headers.contains_key(WORKSPACE) {
        return Err(Problem::unsupported(
            "stateful_workspace_unsupported",
            "this server has no attached workspaces; files of a conversation are in `/mnt/data`",
        ));
    }
    let owner = caller.owner.name().to_owned();
    let program = match step.continuation_token {
        Some(token) => {
            let mut program = state.rounds.take(&owner, &token)?;
            deliver(&mut program, step.tool_results);
            program
        }
        None => start(&state, caller, step).await?,
    };
    let request = headers.get(REQUEST).and_then(|it| it.to_str().ok());
    let Some(request) = request else {
        return follow(&state, program).await;
    };
    let named = state.rounds.begin(&owner, request);
    tokio::select! {
        followed = follow(&state, program) => followed,
        // The program is dropped with this, which stops it.
        () = named.over.cancelled() => Err(Problem::invalid("the request was canceled")),
    }
}

/// Cancels a request that runs, by the id in its header.
pub(super) async fn cancel(
    Given(state): Given<State>,
    caller: Caller,
    request: Result<Json<CancelRequest>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(CancelRequest { request_id }) = request?;
    let canceled = state.rounds.cancel(caller.owner.name(), &request_id);
    Ok(Json(json!({ "cancelled": canceled })))
}

/// Waits for what a program does next, and says it.
async fn follow(state: &State, mut program: Program) -> Result<Json<Value>, Problem> {
    match program.next().await {
        ProgramStep::Calls(calls) => {
            let token = names::id();
            state.rounds.wait(&token, program)?;
            let (shared, late) = (state.clone(), token.clone());
            state.host.tasks.spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(PATIENCE) => {}
                    () = shared.host.stopping.cancelled() => {}
                }
                shared.rounds.give_up(&late);
            });
            Ok(Json(json!({
                "status": "tool_call_required",
                "continuation_token": token,
                "tool_calls": calls,
            })))
        }
        ProgramStep::Done(Ok(mut answer)) => {
            answer["status"] = json!("completed");
            Ok(Json(answer))
        }
        ProgramStep::Done(Err(problem)) => Err(problem),
    }
}

/// Hands results to the calls that wait for them. A call without one has failed.
fn deliver(program: &mut Program, results: Vec<GivenResult>) {
    let mut given: HashMap<_, _> = results.into_iter().map(|it| (it.call_id.clone(), it)).collect();
    for (id, answer) in program.pending.drain() {
        let result = match given.remove(&id) {
            Some(it) if it.is_error => Err(it
                .error_message
                .unwrap_or_else(|| "the tool failed without a message".to_owned())),
            Some(it) => Ok(it.result),
            None => Err("the user's application sent no result of this call".to_owned()),
        };
        // Code may have stopped waiting.
        let _ = answer.send(result);
    }
}

/// Starts a program in a task of its own, which waits with it for its client.
async fn start(state: &State, caller: Caller, step: ProgrammaticRequest) -> Result<Program, Problem> {
    let code = step.code.ok_or_else(|| {
        Problem::invalid("`code` is missing; send it, or the `continuation_token` of a program that waits")
    })?;
    let language = step
        .lang
        .as_deref()
        .map(language)
        .transpose()?
        .unwrap_or_default();
    if language != Language::Python && !step.tools.is_empty() {
        return Err(Problem::unsupported(
            "unsupported_capability",
            format!("code in {} cannot call tools; use Python", language.name()),
        ));
    }
    let (names, bind) = functions(&step.tools)?;
    let inputs = inputs(state, &caller, step.files)?;
    let timeout = run::timeout(state, step.timeout)?;
    let room = room(state, &caller, step.runtime_session_hint.as_deref()).await?;
    let (sender, calls) = mpsc::channel(CALLS);
    let tools = ClientTools {
        names,
        calls: sender,
        redaction: Redaction::default(),
    };
    let mut all = cells(language, code, &[]);
    if !bind.is_empty() {
        let bind = Cell {
            echo: false,
            collect_files: false,
            ..Cell::new(bind)
        };
        all.insert(0, bind);
    }
    let over = CancellationToken::new();
    let guard = over.clone().drop_guard();
    let (answer, done) = oneshot::channel();
    let owner = caller.owner.name().to_owned();
    let state = state.clone();
    state.host.tasks.clone().spawn(async move {
        let job = RunJob {
            state: &state,
            caller: &caller,
            room: &room,
            inputs: &inputs,
            timeout,
        };
        let work = async {
            let started = Instant::now();
            let before = job.prepare().await?;
            room.held.session.lend(vec![Arc::new(tools)]).await?;
            let execution = job.execute(all).await;
            // Nobody is there to answer calls of later code.
            room.held.session.lend(Vec::new()).await?;
            job.answer(&before, execution?, started.elapsed()).await
        };
        let result = job.alone(over.cancelled(), work).await;
        room.leave(&state).await;
        // Nobody may wait any more.
        let _ = answer.send(result);
    });
    Ok(Program {
        owner,
        pending: HashMap::new(),
        calls,
        done,
        count: 0,
        _stop: guard,
    })
}

/// The tools' names by those of their cards, and code that binds each to the name that the client's
/// code uses.
fn functions(tools: &[ToolSpec]) -> Result<(Vec<(String, String)>, String), Problem> {
    if tools.len() > MAX_TOOLS {
        let count = tools.len();
        return Err(Problem::invalid(format!(
            "`tools` has {count} tools, the limit is {MAX_TOOLS}"
        )));
    }
    let mut taken = HashSet::new();
    let (mut named, mut code) = (Vec::new(), String::new());
    for (number, tool) in tools.iter().enumerate() {
        let function = names::function(&tool.name);
        if function.is_empty() || !taken.insert(function.clone()) {
            return Err(Problem::invalid(format!(
                "`tools`: `{}` has no name of its own in code; rename it",
                tool.name
            )));
        }
        let card = format!("tool_{number}");
        // Writing to a string does not fail.
        let _ = writeln!(code, "{function} = {TOOLS}[{card:?}].aio");
        named.push((card, tool.name.clone()));
    }
    Ok((named, code))
}
