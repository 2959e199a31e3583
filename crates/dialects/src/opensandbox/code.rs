//! `POST /code`: runs a cell, and sends its output as it comes.

use std::time::Instant;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State as Given};
use axum::response::Response;
use cellblock_interpreter::execution::{Event, Execution, Outcome, UnsentOutputs, VariablesState};
use cellblock_interpreter::output::Exception;
use cellblock_interpreter::{Cell, Output};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::access::ExecdSandbox;
use super::contexts::{self, CodeScope, ContextRequest};
use super::error::Problem;
use super::events::{self, Lines, Teller};
use super::output;
use super::sandbox::{HeldSandbox, State};

/// Code to run.
#[derive(Debug, Deserialize)]
pub(super) struct CodeRequest {
    code: String,
    #[serde(default)]
    context: ContextRequest,
}

#[derive(Debug, Deserialize)]
pub(super) struct RunId {
    pub(super) id: String,
}

pub(super) async fn run(
    Given(state): Given<State>,
    ExecdSandbox { sandbox, owner }: ExecdSandbox,
    request: Result<Json<CodeRequest>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(request) = request?;
    if request.code.trim().is_empty() {
        return Err(Problem::invalid("`code` is empty"));
    }
    let context = sandbox.kept.contexts.find(&request.context)?;
    let turn = sandbox.turn().await?;
    let permit = state.host.cell(&owner).await?;
    let run = sandbox.kept.runs.begin();
    let gone = CancellationToken::new();
    let (teller, response) = events::channel(gone.clone());
    let shared = state.clone();
    state.host.tasks.spawn(async move {
        let cancel = async {
            tokio::select! {
                () = gone.cancelled() => {}
                () = run.stop.cancelled() => {}
            }
        };
        let work = async {
            teller.tell("init", json!({"text": run.id})).await;
            let started = Instant::now();
            if let Err(problem) = perform(&shared, &sandbox, &context, request.code, &teller).await {
                teller.error(problem.code, &problem.message, &[]).await;
            }
            teller.complete(started.elapsed()).await;
        };
        turn.until(cancel, work).await;
        drop((turn, permit));
    });
    Ok(response)
}

async fn perform(
    state: &State,
    sandbox: &HeldSandbox,
    context: &CodeScope,
    code: String,
    teller: &Teller,
) -> Result<(), Problem> {
    let (session, kept) = (&sandbox.session, &sandbox.kept);
    kept.contexts.activate(session, context, &kept.env).await?;
    let count = kept.contexts.count(context);
    let cell = Cell {
        collect_files: false,
        timeout: Some(state.host.max_cell_timeout),
        ..Cell::new(code).in_language(context.language)
    };
    // Other cells of the session are not the client's.
    let cell = cell.from_file(format!("<cell {count}>"), 1);
    let mut running = session.start_cell(cell).await?;
    let [mut stdout, mut stderr] = [Lines::default(), Lines::default()];
    let mut raised = None;
    let mut unsent = UnsentOutputs::default();
    while let Some(event) = running.events.recv().await {
        let Some(event) = unsent.pass(event) else { continue };
        match event {
            Event::Stdout(bytes) => teller.text("stdout", stdout.push(&bytes)).await,
            Event::Stderr(bytes) => teller.text("stderr", stderr.push(&bytes)).await,
            Event::Output(Output::Exception(exception)) => raised = Some(exception),
            Event::Output(output) => {
                // What was printed before it is before it.
                teller.text("stdout", stdout.rest()).await;
                let forms = output::forms(state.host.interpreter.store(), &output).await;
                teller.tell("result", json!({ "results": forms })).await;
            }
            // They wait for the end.
            Event::Display(_) | Event::Clear { .. } => {}
        }
    }
    let execution = running.finish().await?;
    teller.text("stdout", stdout.rest()).await;
    teller.text("stderr", stderr.rest()).await;
    for output in unsent.rest(&execution.outputs) {
        let forms = output::forms(state.host.interpreter.store(), output).await;
        teller.tell("result", json!({ "results": forms })).await;
    }
    teller
        .tell("execution_count", json!({ "execution_count": count }))
        .await;
    failure(&execution, raised.as_ref(), teller).await;
    if execution.state == VariablesState::Lost {
        contexts::begin(session, &kept.env).await?;
    }
    Ok(())
}

/// Tells how a cell failed, if it did.
async fn failure(execution: &Execution, raised: Option<&Exception>, teller: &Teller) {
    let note = execution.note.as_deref().unwrap_or_default();
    match (&execution.outcome, raised) {
        (Outcome::Completed, _) => {}
        (Outcome::Raised, Some(it)) => {
            let lines: Vec<_> = it.traceback.lines().collect();
            teller.error(&it.exception, &it.message, &lines).await;
        }
        (Outcome::Interrupted, _) => teller.error("KeyboardInterrupt", note, &[]).await,
        (Outcome::Rejected { rejections }, _) => {
            let reasons: Vec<_> = rejections.iter().map(|it| it.message.as_str()).collect();
            teller.error("Rejected", &reasons.join("\n"), &[]).await;
        }
        (Outcome::KernelLost { reason }, _) => teller.error("KernelLost", reason, &[note]).await,
        (Outcome::LimitExceeded(it), _) => {
            let what = it.which.describe();
            let text = format!("the limit for the {what} is {}; {note}", it.limit);
            teller.error("LimitExceeded", &text, &[]).await;
        }
        (Outcome::Raised, None) => teller.error("Error", note, &[]).await,
    }
}

/// Stops a run of code by the id of its event `init`.
pub(super) async fn interrupt(
    opened: ExecdSandbox,
    query: Result<Query<RunId>, QueryRejection>,
) -> Result<(), Problem> {
    let Query(RunId { id }) = query?;
    if opened.sandbox.kept.runs.interrupt(&id) {
        return Ok(());
    }
    Err(Problem::missing(
        "EXECUTION_NOT_FOUND",
        format!("run `{id}` does not exist, or it has ended"),
    ))
}
