//! `POST /exec`: runs code to its end.

use axum::Json;
use axum::extract::State as Given;
use axum::extract::rejection::JsonRejection;
use axum::http::HeaderMap;
use cellblock_interpreter::cell::Language;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::access::{Caller, Resource};
use super::conversation::room;
use super::error::Problem;
use super::run::{RunJob, cells, input_files};
use super::state::State;
use crate::bounded::BoundedDescription;

/// Maximum number of input files.
const MAX_INPUTS: usize = 1000;
const PROFILE: &str = "x-codeapi-expected-profile";

/// Code to run.
#[derive(Debug, Deserialize)]
pub(super) struct ExecRequest {
    lang: String,
    code: String,
    #[serde(default)]
    args: Option<BoundedDescription<Vec<String>>>,
    #[serde(default)]
    files: Option<Vec<InputFile>>,
    runtime_session_hint: Option<String>,
    /// In milliseconds.
    timeout: Option<f64>,
}

/// A stored file that code finds in its working directory.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct InputFile {
    pub(super) id: String,
    pub(super) storage_session_id: String,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) resource_id: Option<String>,
    #[serde(flatten)]
    resource: InputResource,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct InputResource {
    kind: Option<String>,
    version: Option<Value>,
}

impl InputFile {
    /// Whose file it is.
    pub(super) fn resource(&self) -> Resource {
        let version = self.resource.version.as_ref().and_then(|version| match version {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        Resource {
            kind: self.resource.kind.clone(),
            id: self.resource_id.clone(),
            version,
        }
    }
}

pub(super) async fn exec(
    Given(state): Given<State>,
    caller: Caller,
    headers: HeaderMap,
    request: Result<Json<ExecRequest>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(request) = request?;
    check_profile(&headers)?;
    let language = language(&request.lang)?;
    let inputs = inputs(&state, &caller, request.files)?;
    let cells = cells(
        language,
        request.code,
        &request.args.unwrap_or_default().into_inner(),
    );
    let timeout = super::run::timeout(&state, request.timeout)?;
    let room = room(&state, &caller, request.runtime_session_hint.as_deref()).await?;
    let gone = CancellationToken::new();
    // Canceled when this future is dropped, as it is when the client is gone.
    let _waits = gone.clone().drop_guard();
    let (sender, answered) = oneshot::channel();
    let tasks = state.host.tasks.clone();
    tasks.spawn(async move {
        let job = RunJob {
            state: &state,
            caller: &caller,
            room: &room,
            inputs: &inputs,
            timeout,
        };
        let result = job.alone(gone.cancelled(), job.run(cells)).await;
        room.leave(&state).await;
        // Nobody may wait any more.
        let _ = sender.send(result);
    });
    let answer = answered.await;
    let answer = answer.map_err(|error| Problem::server("finish the run", &error))??;
    Ok(Json(answer))
}

/// Finds the input files, of which the last with a name is the one that code sees.
pub(super) fn inputs(
    state: &State,
    caller: &Caller,
    files: Option<Vec<InputFile>>,
) -> Result<Vec<super::run::Input>, Problem> {
    let files = files.unwrap_or_default();
    if files.len() > MAX_INPUTS {
        let count = files.len();
        return Err(Problem::invalid(format!(
            "`files` has {count} files, the limit is {MAX_INPUTS}"
        )));
    }
    input_files(state, caller, &files)
}

/// A deployment may have several servers; this one has sandboxes with and without a conversation.
pub(super) fn check_profile(headers: &HeaderMap) -> Result<(), Problem> {
    let expected = headers.get(PROFILE).and_then(|it| it.to_str().ok());
    match expected {
        None | Some("default" | "stateful") => Ok(()),
        Some(other) => {
            let shown: String = other.chars().take(64).collect();
            Err(Problem::unsupported(
                "execution_profile_mismatch",
                format!("this server has the profiles `default` and `stateful`, not {shown:?}"),
            ))
        }
    }
}

/// Reads the name of a language.
pub(super) fn language(name: &str) -> Result<Language, Problem> {
    match name {
        "py" | "python" => Ok(Language::Python),
        "bash" => Ok(Language::Bash),
        "js" => Ok(Language::Javascript),
        "r" => Ok(Language::R),
        _ => {
            let shown: String = name.chars().take(32).collect();
            Err(Problem::invalid(format!(
                "language {shown:?} is not supported; use `py`, `bash`, `js`, or `r` if the image has it"
            )))
        }
    }
}
