//! `run_python`, an operation of our own: a kernel per chat whose variables stay, with typed results.

use std::collections::HashSet;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::ArtifactRef;
use cellblock_interpreter::render::{self, Block};
use cellblock_interpreter::toolset::python::cell;
use cellblock_interpreter::{Execution, Output, Session};
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::json;
use super::chat::{Caller, HOME, OpenTerminal};
use super::notebooks;
use super::problem::Problem;
use crate::attended::attended;

/// Directory for pictures that a cell shows.
const PICTURES: &str = "/workspace/outputs";
/// Tokens of text for what a cell displays, and for each of its streams.
const TOKENS: usize = 4000;
/// Maximum number of pictures of a cell that are saved.
const MAX_PICTURES: usize = 20;
/// Maximum size of a picture that is saved.
const MAX_PICTURE: u64 = 16 << 20;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(super) struct PythonRequest {
    /// Python code. The value of its last expression is shown, as in a notebook.
    code: String,
    /// Packages that it needs in addition to those of the image, such as `six==1.17.0`.
    #[serde(default)]
    requirements: Vec<String>,
    /// Seconds that it may run.
    timeout: Option<f64>,
}

/// Run Python in a kernel whose variables stay from call to call, as in a notebook. Shows tables,
/// charts and errors with the line of the code. Prefer this to running `python` with `run_command`.
/// Pictures are saved as files in `/workspace/outputs`: look at one with `read_file`, and show it
/// to the user with `display_file`.
#[utoipa::path(post, path = "/python", operation_id = "run_python", request_body = PythonRequest,
    responses((status = 200, description = "What the code wrote and showed", body = Object)))]
pub(super) async fn run(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: PythonRequest = json(&body)?;
    let longest = terminal.host.max_cell_timeout;
    let cell = cell(Some(asked.code), asked.timeout, asked.requirements, longest)?;
    let held = terminal.chat(&caller).await?;
    let turn = held.turn().await?;
    let (host, session) = (terminal.host.clone(), held.session.clone());
    let shared = held.kept.notebooks.share_the_kernel();
    let work = async move {
        let permit = host.cell(&caller.owner).await?;
        if shared {
            notebooks::enter(&session, "", HOME).await?;
        }
        let execution = session.execute(cell).await?;
        drop(permit);
        Ok::<_, Problem>(answer(&session, host.interpreter.store(), execution).await)
    };
    let done = attended(&terminal.host, turn, work).await;
    let stopped = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
    Ok(Json(done.ok_or_else(stopped)??))
}

async fn answer(session: &Session, store: &Store, execution: Execution) -> Value {
    let images = save(session, store, &execution).await;
    let error = match execution.outputs.last() {
        Some(Output::Exception(raised)) => {
            Some(json!({"type": raised.exception, "message": raised.message, "line": raised.line}))
        }
        _ => None,
    };
    let blocks = render::to_model(&execution.outputs, TOKENS).into_iter();
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } => Some(text),
        Block::Image { .. } => None,
    });
    let mut answer = json!({"outcome": execution.outcome.name()});
    let shown = [
        ("stdout", render::stream(&execution.stdout.text, TOKENS)),
        ("stderr", render::stream(&execution.stderr.text, TOKENS)),
        ("output", texts.collect()),
    ];
    for (name, text) in shown {
        if !text.is_empty() {
            answer[name] = text.into();
        }
    }
    if let Some(error) = error {
        answer["error"] = error;
    }
    if !images.is_empty() {
        answer["images"] = images.into();
    }
    let files: Vec<_> = execution.files.iter().map(|file| &file.path).collect();
    if !files.is_empty() {
        answer["files"] = json!(files);
    }
    if let Outcome::Rejected { rejections } = &execution.outcome {
        answer["rejections"] = json!(rejections);
    }
    if let Outcome::LimitExceeded(exceeded) = &execution.outcome {
        answer["limit"] = json!(exceeded);
    }
    if let Some(note) = execution.note {
        answer["note"] = note.into();
    }
    answer["duration_ms"] = json!(milliseconds(execution.duration));
    answer
}

/// Saves pictures as files, and returns their names and paths.
async fn save(session: &Session, store: &Store, execution: &Execution) -> Vec<Value> {
    let mut saved = Vec::new();
    let mut taken = HashSet::new();
    let pictures = execution.outputs.iter().filter_map(picture);
    for (number, (name, extension, picture)) in pictures.take(MAX_PICTURES).enumerate() {
        let unnamed = || format!("cell-{}-{}", execution.cell, number + 1);
        let plain = name.map(plain).filter(|name| !name.is_empty());
        let mut stem = plain.unwrap_or_else(unnamed);
        if !taken.insert(stem.clone()) {
            stem = unnamed();
        }
        let path = format!("{PICTURES}/{stem}.{extension}");
        let name = name.unwrap_or(&stem);
        match keep(session, store, picture, &path).await {
            Ok(()) => saved.push(json!({"name": name, "path": path})),
            Err(reason) => saved.push(json!({"name": name, "path": null, "note": reason})),
        }
    }
    saved
}

async fn keep(session: &Session, store: &Store, picture: &ArtifactRef, path: &str) -> Result<(), String> {
    if picture.bytes > MAX_PICTURE {
        let bytes = picture.bytes;
        return Err(format!(
            "it has {bytes} bytes, and pictures are saved up to {MAX_PICTURE}"
        ));
    }
    let bytes = store.get(picture.sha256).await.map_err(|error| {
        tracing::warn!(%error, "a picture of a cell could not be read");
        "it could not be read back".to_owned()
    })?;
    let written = session.write_file(path, bytes.to_vec()).await;
    written.map_err(|error| format!("it could not be saved: {error}"))
}

/// Returns an output's picture with its name and its file's extension.
fn picture(output: &Output) -> Option<(Option<&str>, &'static str, &ArtifactRef)> {
    let (name, picture) = match output {
        Output::Figure(it) => (it.name.as_deref(), it.image.as_ref()?),
        Output::Image(it) => (it.name.as_deref(), it.image.as_ref()?),
        Output::Chart(it) => (it.title.as_deref(), it.image.as_ref()?),
        _ => return None,
    };
    let extension = match picture.media_type.as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        _ => return None,
    };
    Some((name, extension, picture))
}

/// Returns a name as a file can have it.
fn plain(name: &str) -> String {
    let kept = name.chars().map(|it| match it {
        it if it.is_alphanumeric() || "-_.".contains(it) => it,
        _ => '-',
    });
    let kept: String = kept.take(60).collect();
    kept.trim_matches(['-', '.']).to_owned()
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}
