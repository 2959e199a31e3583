//! `POST /execute`: runs a cell, and answers with a line of JSON for each thing that happens.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::execution::{Event, Outcome, UnsentOutputs, VariablesState};
use cellblock_interpreter::output::Output;
use cellblock_interpreter::{Cell, Error, Execution};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::{PortTarget, RequestSandbox};
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::contexts::{Scope, hidden};
use super::environment;
use super::line::Line;
use super::result;
use crate::decoder::TextDecoder;

/// Silence after which a line is sent all the same.
const BEAT: Duration = Duration::from_secs(5);
/// Lines that wait for the client; beyond that the cell waits.
const LINES: usize = 64;
/// Maximum time for which a client may not read. Then its cell is interrupted.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecuteRequest {
    code: String,
    #[serde(default)]
    context_id: Option<String>,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    env_vars: Option<BTreeMap<String, String>>,
}

/// A run of a cell for a client.
#[derive(Debug)]
struct CellRun {
    e2b: E2b,
    held: HeldSandbox,
    context: Scope,
    envs: BTreeMap<String, String>,
    client: LineSender,
}

/// Sends lines to a client.
#[derive(Debug)]
struct LineSender {
    lines: mpsc::Sender<Line>,
    gone: CancellationToken,
}

pub(super) async fn execute(
    State(e2b): State<E2b>,
    RequestSandbox(held): RequestSandbox,
    _: PortTarget,
    body: Bytes,
) -> Answer<Response> {
    let request: ExecuteRequest = read(&body)?;
    let contexts = &held.kept.contexts;
    let context = match (&request.context_id, &request.language) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid(
                "Only one of context_id or language can be provided",
            ));
        }
        (Some(id), None) => contexts.find(id)?,
        (None, language) => contexts.of(language.as_deref().unwrap_or_default())?,
    };
    let envs = request.env_vars.unwrap_or_default();
    environment::check(context.language, &envs)?;
    let turn = held.turn().await?;
    let permit = e2b.host.cell(&held.kept.owner).await?;
    let (lines, waiting) = mpsc::channel(LINES);
    let gone = CancellationToken::new();
    let tasks = e2b.host.tasks.clone();
    let resident = Arc::clone(&held);
    let run = CellRun {
        client: LineSender {
            lines,
            gone: gone.clone(),
        },
        e2b,
        held,
        context,
        envs,
    };
    let guard = gone.clone().drop_guard();
    tasks.spawn(async move {
        let stopped = {
            let over = run.context.over.clone();
            async move {
                tokio::select! {
                    () = gone.cancelled() => {}
                    () = over.cancelled() => {}
                }
            }
        };
        turn.until(stopped, run.cell(request.code)).await;
        run.tidy().await;
        // The next run may begin before the client has read the last line.
        drop((turn, permit));
        run.client.send(Line::EndOfExecution).await;
    });
    let lines = stream::unfold(
        (waiting, guard, resident),
        |(mut waiting, guard, resident)| async {
            let line = tokio::select! {
                biased;
                // A client takes a connection that breaks off for the end of its sandbox, if that has ended.
                () = resident.closed() => {
                    let killed = io::Error::other("the sandbox was killed");
                    return Some((Err(killed), (waiting, guard, resident)));
                }
                line = tokio::time::timeout(BEAT, waiting.recv()) => match line {
                    Ok(line) => line?,
                    Err(_) => Line::Keepalive,
                },
            };
            let mut json = serde_json::to_vec(&line).unwrap_or_default();
            json.push(b'\n');
            Some((Ok(Bytes::from(json)), (waiting, guard, resident)))
        },
    );
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(lines)).into_response())
}

impl LineSender {
    /// Sends a line. A client that does not read it in time counts as gone.
    async fn send(&self, line: Line) {
        if self.lines.send_timeout(line, PATIENCE).await.is_err() {
            self.gone.cancel();
        }
    }

    async fn stdout(&self, text: String) {
        if !text.is_empty() {
            self.send(Line::stdout(text)).await;
        }
    }

    async fn stderr(&self, text: String) {
        if !text.is_empty() {
            self.send(Line::stderr(text)).await;
        }
    }
}

impl CellRun {
    /// Runs the cell in its context.
    async fn cell(&self, code: String) {
        let execution_count = self.context.next();
        self.client
            .send(Line::NumberOfExecutions { execution_count })
            .await;
        if let Err(error) = self.try_cell(code).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "run a cell for E2B");
            let over = Line::error("UnexpectedEndOfExecution", error.to_string());
            self.client.send(over).await;
        }
    }

    async fn try_cell(&self, code: String) -> Result<(), Error> {
        self.enter().await?;
        if !self.envs.is_empty() {
            let envs = self
                .envs
                .iter()
                .map(|(name, value)| (name.as_str(), Some(value.as_str())));
            self.hidden(environment::set(self.context.language, envs)).await?;
        }
        let cell = Cell {
            collect_files: false,
            timeout: Some(self.e2b.host.max_cell_timeout),
            ..Cell::new(code).in_language(self.context.language)
        };
        let mut running = self.held.session.start_cell(cell).await?;
        let mut streams = [TextDecoder::default(), TextDecoder::default()];
        let mut last = None;
        let mut has_error = false;
        let mut unsent = UnsentOutputs::default();
        while let Some(event) = running.events.recv().await {
            let Some(event) = unsent.pass(event) else { continue };
            match event {
                Event::Stdout(bytes) => self.client.stdout(streams[0].push(&bytes)).await,
                Event::Stderr(bytes) => self.client.stderr(streams[1].push(&bytes)).await,
                Event::Output(output) => {
                    let is_error = matches!(output, Output::Exception(_));
                    has_error |= is_error;
                    if self.context.language == Language::Python || is_error {
                        self.show(output, false).await;
                    } else if let Some(before) = last.replace(output) {
                        self.show(before, false).await;
                    }
                }
                // They wait for the end.
                Event::Display(_) | Event::Clear { .. } => {}
            }
        }
        let [stdout, stderr] = &mut streams;
        self.client.stdout(stdout.rest()).await;
        self.client.stderr(stderr.rest()).await;
        let execution = running.finish().await?;
        for output in unsent.rest(&execution.outputs) {
            self.show(output.clone(), false).await;
        }
        if let Some(value) = last {
            // The kernel does not say which value of another language is that of the last expression.
            self.show(value, !has_error).await;
        }
        self.end(execution, has_error).await;
        Ok(())
    }

    async fn show(&self, output: Output, is_main: bool) {
        let is_error = matches!(output, Output::Exception(_));
        let line = if is_error && self.context.over.is_cancelled() {
            Line::error("ContextRestarting", "Context was restarted")
        } else {
            result::line(self.e2b.host.interpreter.store(), output, is_main).await
        };
        self.client.send(line).await;
    }

    /// Tells of an end without an exception, and of what else became of the kernel.
    async fn end(&self, execution: Execution, has_error: bool) {
        if execution.state == VariablesState::Lost {
            self.held.kept.contexts.forget_use();
        }
        let error = match &execution.outcome {
            _ if has_error => None,
            Outcome::Completed | Outcome::Raised => None,
            _ if self.context.over.is_cancelled() => {
                Some(Line::error("ContextRestarting", "Context was restarted"))
            }
            Outcome::Interrupted => Some(Line::error("KeyboardInterrupt", "the cell was interrupted")),
            Outcome::KernelLost { reason } => Some(Line::error("UnexpectedEndOfExecution", reason.clone())),
            Outcome::LimitExceeded(exceeded) => Some(Line::error(
                "LimitExceeded",
                format!("{}, limit {}", exceeded.which.describe(), exceeded.limit),
            )),
            Outcome::Rejected { rejections } => {
                let reasons: Vec<_> = rejections.iter().map(|it| it.message.as_str()).collect();
                Some(Line::error("Rejected", reasons.join("\n")))
            }
        };
        if let Some(error) = error {
            self.client.send(error).await;
        }
        if let Some(note) = execution.note {
            self.client.stderr(format!("{note}\n")).await;
        }
    }

    /// Makes the context the one in use.
    async fn enter(&self) -> Result<(), Error> {
        let context = &self.context;
        let contexts = &self.held.kept.contexts;
        if contexts.switch(context.language, &context.name) {
            let arguments = json!([context.language.name(), context.name, context.directory]);
            self.hidden(hidden(format!(
                "__import__('cellblock_kernel.e2b.session', fromlist=['enter']).enter(*{arguments})"
            )))
            .await?;
        }
        if !contexts.used(&context.id)
            && let Some(cell) = environment::directory(context.language, &context.directory)
        {
            self.hidden(cell).await?;
        }
        Ok(())
    }

    /// Sets environment variables back that were for this run alone.
    async fn tidy(&self) {
        if self.envs.is_empty() {
            return;
        }
        let usual = &self.held.kept.envs;
        let envs = self
            .envs
            .keys()
            .map(|name| (name.as_str(), usual.get(name).map(String::as_str)));
        if let Err(error) = self.hidden(environment::set(self.context.language, envs)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "set environment variables back"
            );
        }
    }

    /// Runs a cell of ours, of which the client sees errors only.
    async fn hidden(&self, cell: Cell) -> Result<(), Error> {
        let execution = self.held.session.execute(cell).await?;
        self.client.stderr(execution.stderr.text).await;
        Ok(())
    }
}
