//! `/v1/sessions/{id}/processes`: programs beside cells. They can be used while a cell runs, so
//! requests take no turns.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::wire::ApiError;
use cellblock_interpreter::session::processes::{
    MAX_OUTPUT, MAX_WAIT, ProcessOrder, ProcessReport, ProcessSignal, TerminalSize, wait_of,
};
use serde::{Deserialize, Serialize};

use super::body;
use crate::json::Json;
use crate::listing::ListAnswer;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// A program to start.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProcessRequest {
    /// The program and its arguments; no shell reads it.
    command: Vec<String>,
    /// Environment variables, in addition to those of the sandbox.
    env: BTreeMap<String, String>,
    /// Working directory; by default `/workspace`.
    directory: Option<String>,
    /// Keep standard input open for the route `input`. Otherwise it is empty.
    stdin: bool,
    /// Size of a terminal for it, with its standard input, output and error stream; see the route `terminal`.
    terminal: Option<TerminalRequest>,
}

/// Size of a terminal in characters.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TerminalRequest {
    /// Number of rows, at most 4096.
    rows: u16,
    /// Number of columns, at most 4096.
    columns: u16,
}

/// Part of the output to read.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutputQuery {
    /// Offset of the first byte.
    offset: u64,
    /// Maximum number of bytes, at most 1048576.
    max_bytes: u64,
    /// Seconds to wait for output if there is none yet, at most 60.
    wait: f64,
}

/// Input for a process.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct InputRequest {
    /// The input, at most 1048576 bytes.
    data: String,
    /// Encoding of `data`: `text` or `base64`.
    #[schema(value_type = String, default = "text")]
    encoding: InputEncoding,
    /// Close standard input after it.
    close: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputEncoding {
    #[default]
    Text,
    Base64,
}

/// A signal to send.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalRequest {
    /// Its name, such as `SIGTERM`.
    signal: String,
}

/// Maximum wait for the end.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WaitRequest {
    /// Seconds to wait, at most 60.
    timeout: f64,
}

/// A process of a session.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ProcessAnswer {
    /// `session.process`.
    object: &'static str,
    /// ID of the session.
    session: String,
    #[serde(flatten)]
    process: ProcessReport,
}

/// Part of the output of a process.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ProcessOutputAnswer {
    /// `session.process_output`.
    object: &'static str,
    /// Text that the process wrote to stdout and stderr. Bytes that are not UTF-8 are replaced.
    text: String,
    /// Offset of the first byte.
    offset: u64,
    /// Offset from which to read on.
    next_offset: u64,
    /// Number of bytes after the requested offset that are no longer kept.
    lost: u64,
    /// Number of bytes that the process has written until now.
    total: u64,
    /// Whether the process has ended and this is the end of its output.
    eof: bool,
}

impl From<TerminalRequest> for TerminalSize {
    fn from(size: TerminalRequest) -> Self {
        Self {
            rows: size.rows,
            columns: size.columns,
        }
    }
}

impl Default for OutputQuery {
    fn default() -> Self {
        Self {
            offset: 0,
            max_bytes: 65_536,
            wait: 0.0,
        }
    }
}

impl Default for WaitRequest {
    fn default() -> Self {
        Self {
            timeout: MAX_WAIT.as_secs_f64(),
        }
    }
}

fn answer(session: &str, process: ProcessReport) -> Json<ProcessAnswer> {
    Json(ProcessAnswer {
        object: "session.process",
        session: session.to_owned(),
        process,
    })
}

/// Starts a program beside cells. It runs until it ends, or until the session is reset or ends.
#[utoipa::path(
    post, operation_id = "start_process", path = "/v1/sessions/{id}/processes", tag = "sessions",
    params(("id" = String, Path)),
    request_body = ProcessRequest,
    responses(
        (status = 201, description = "The process", body = crate::openapi::Process),
        (status = 400, description = "A field is invalid, or the session derives results",
            body = crate::openapi::Error),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
        (status = 429, description = "Too many processes are running", body = crate::openapi::Error),
        (status = 503, description = "No sandbox became available in time; see `Retry-After`",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn start(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<ProcessAnswer>), Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let request: ProcessRequest = body::json(&headers, &body)?;
    if held.toolset.on_results {
        return Err(ApiError::invalid(
            "id",
            "wrong_toolset",
            "a derivation runs code under contracts only, so it cannot start processes",
        )
        .into());
    }
    let permit = gateway.quotas.of_session(&held.id).cell(&held.owner).await?;
    let order = ProcessOrder {
        command: request.command,
        env: request.env,
        directory: request.directory,
        stdin: request.stdin,
        terminal: request.terminal.map(TerminalSize::from),
    };
    let started = held.session.processes().start(order).await?;
    permit.done(Duration::ZERO);
    Ok((StatusCode::CREATED, answer(&id, started)))
}

/// Lists the processes: those that are running, and the last 64 that have ended.
#[utoipa::path(
    get, operation_id = "list_processes", path = "/v1/sessions/{id}/processes", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The processes, in the order of their starts",
            body = crate::openapi::ProcessList),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListAnswer<ProcessAnswer>>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let listed = held.session.processes().list();
    let listed = listed.into_iter().map(|process| answer(&id, process).0);
    Ok(Json(ListAnswer::new(listed.collect())))
}

/// Reads output of a process from an offset.
#[utoipa::path(
    get, operation_id = "read_process_output", path = "/v1/sessions/{id}/processes/{process}/output",
    tag = "sessions",
    params(("id" = String, Path), ("process" = String, Path), OutputQuery),
    responses(
        (status = 200, description = "Part of its output", body = crate::openapi::ProcessOutput),
        (status = 404, description = "There is no such session or process", body = crate::openapi::Error),
    )
)]
pub(crate) async fn output(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, process)): Path<(String, String)>,
    Query(query): Query<OutputQuery>,
) -> Result<Json<ProcessOutputAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    if !(4..=MAX_OUTPUT).contains(&query.max_bytes) {
        let message = format!("`{}` is not between 4 and {MAX_OUTPUT}", query.max_bytes);
        return Err(Problem::invalid("max_bytes", message));
    }
    let wait = patience("wait", query.wait)?;
    let processes = held.session.processes();
    let read = processes.output(&process, query.offset, query.max_bytes, wait);
    let read = read.await?;
    let (offset, lost, total, eof) = (read.offset, read.lost, read.total, read.eof);
    let (text, next_offset) = read.into_text();
    Ok(Json(ProcessOutputAnswer {
        object: "session.process_output",
        text,
        offset,
        next_offset,
        lost,
        total,
        eof,
    }))
}

/// Sends input to a process that was started with `stdin`.
#[utoipa::path(
    post, operation_id = "send_process_input", path = "/v1/sessions/{id}/processes/{process}/input",
    tag = "sessions",
    params(("id" = String, Path), ("process" = String, Path)),
    request_body = InputRequest,
    responses(
        (status = 200, description = "It is queued; the process", body = crate::openapi::Process),
        (status = 400, description = "Standard input is closed, or the process does not read it",
            body = crate::openapi::Error),
        (status = 404, description = "There is no such session or process", body = crate::openapi::Error),
    )
)]
pub(crate) async fn input(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, process)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<ProcessAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let request: InputRequest = body::json(&headers, &body)?;
    let bytes = match request.encoding {
        InputEncoding::Text => request.data.into_bytes(),
        InputEncoding::Base64 => STANDARD
            .decode(&request.data)
            .map_err(|error| Problem::invalid("data", format!("it is not base64: {error}")))?,
    };
    let processes = held.session.processes();
    processes.input(&process, &bytes, request.close).await?;
    Ok(answer(&id, processes.wait(&process, Duration::ZERO).await?))
}

/// Sends a signal to a process. `SIGKILL` also ends everything that it started.
#[utoipa::path(
    post, operation_id = "signal_process", path = "/v1/sessions/{id}/processes/{process}/signal",
    tag = "sessions",
    params(("id" = String, Path), ("process" = String, Path)),
    request_body = SignalRequest,
    responses(
        (status = 200, description = "It was sent; the process", body = crate::openapi::Process),
        (status = 400, description = "There is no such signal, or the process has ended",
            body = crate::openapi::Error),
        (status = 404, description = "There is no such session or process", body = crate::openapi::Error),
    )
)]
pub(crate) async fn signal(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, process)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<ProcessAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let request: SignalRequest = body::json(&headers, &body)?;
    let signal: ProcessSignal = request
        .signal
        .parse()
        .map_err(|message: String| Problem::invalid("signal", message))?;
    let processes = held.session.processes();
    processes.signal(&process, signal).await?;
    Ok(answer(&id, processes.wait(&process, Duration::ZERO).await?))
}

/// Waits for a process to end. If it is still running after the timeout, its `state` says so.
#[utoipa::path(
    post, operation_id = "wait_process", path = "/v1/sessions/{id}/processes/{process}/wait",
    tag = "sessions",
    params(("id" = String, Path), ("process" = String, Path)),
    request_body = WaitRequest,
    responses(
        (status = 200, description = "The process", body = crate::openapi::Process),
        (status = 404, description = "There is no such session or process", body = crate::openapi::Error),
    )
)]
pub(crate) async fn wait(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((id, process)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<ProcessAnswer>, Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let request: WaitRequest = body::json_or_default(&headers, &body)?;
    let limit = patience("timeout", request.timeout)?;
    let ended = held.session.processes().wait(&process, limit).await?;
    Ok(answer(&id, ended))
}

fn patience(param: &str, seconds: f64) -> Result<Duration, Problem> {
    let most = MAX_WAIT.as_secs();
    wait_of(seconds)
        .ok_or_else(|| Problem::invalid(param, format!("`{seconds}` is not between 0 and {most} seconds")))
}
