//! Running code in a container, and keeping what it made.

use std::sync::Arc;

use cellblock_agent::turn::{CallResult, ExecutionView, OutputFile, ToolsetCall, failed, tell};
use cellblock_agent::wire::{ApiError, Ids};
use cellblock_artifact::{ArtifactId, extension};
use cellblock_interpreter::execution::{ProducedFile, SkippedFile};
use cellblock_interpreter::output::ArtifactRef;
use cellblock_interpreter::render::{self, Block};
use cellblock_interpreter::toolset::shell::ShellReport;
use cellblock_interpreter::toolset::{ToolEvent, ToolResult};
use cellblock_interpreter::{Error, Execution};
use tokio_util::sync::CancellationToken;

use super::derive;
use crate::artifacts;
use crate::files::{fetch, media, path};
use crate::now_ms;
use crate::records::{ContainerFileRow, Page};
use crate::state::Gateway;
use crate::state::containers::{ContainerState, HeldContainer, Slot};

/// Tokens of text that pictures are looked for in: they cost none.
const ALL: usize = usize::MAX >> 8;

/// Runs a call, and stops it when this is dropped. What it made until then is kept all the same.
pub(super) async fn run(
    gateway: Gateway,
    held: Arc<HeldContainer>,
    call: ToolsetCall,
    slot: Option<Slot>,
) -> CallResult {
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    let tasks = gateway.tasks.clone();
    let ran = tasks
        .spawn(async move {
            // Its turn is over when it has really ended.
            let _slot = slot;
            work(&gateway, &held, call, &stop).await
        })
        .await;
    guard.disarm();
    ran.unwrap_or_else(|error| {
        tracing::error!(%error, "run code of a model");
        CallResult::refused("The code was not run: the sandbox failed, and trying again will not help.")
    })
}

async fn work(
    gateway: &Gateway,
    held: &HeldContainer,
    call: ToolsetCall,
    stop: &CancellationToken,
) -> CallResult {
    let mut state = tokio::select! {
        biased;
        () = stop.cancelled() => return CallResult::refused("The code was not run: nobody waits for it."),
        state = held.state.lock() => state,
    };
    let ran = match furnish(gateway, held, &mut state).await {
        Ok(()) => execute(gateway, held, call, stop).await,
        Err(error) => Err(error),
    };
    drop(state);
    touch(gateway, held).await;
    match ran {
        Ok(ran) => match held.lost() {
            Some(lost) => ran.after(&lost),
            None => ran,
        },
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "run code of a model");
            failed(&error)
        }
    }
}

async fn execute(
    gateway: &Gateway,
    held: &HeldContainer,
    call: ToolsetCall,
    stop: &CancellationToken,
) -> Result<CallResult, Error> {
    let interpreter = gateway.engine.interpreter();
    let interpreter = interpreter.map_err(|error| Error::Request(error.to_string()))?;
    let mut pictures = Vec::new();
    let mut watch = |event| {
        if let ToolEvent::Visualization { sha256, .. } = event {
            pictures.push(sha256);
        }
    };
    let requirements = call.requirements();
    let running = call.over(interpreter, held.session.clone(), &mut watch);
    match held.session.until(stop.cancelled(), running).await? {
        ToolResult::Cell { mut execution, .. } => Ok(keep(gateway, held, &mut execution).await),
        ToolResult::Rehearsed { code, rehearsal } => {
            // Its files and pictures are gone with the rehearsal.
            let shown = ExecutionView::default();
            let ran = tell(&rehearsal.execution, &gateway.store, &shown).await;
            Ok(ran.of_rehearsal(&code, &requirements, &rehearsal))
        }
        ToolResult::Derived(derived) => Ok(derive::tell(gateway, held, *derived).await),
        ToolResult::Commands(mut ran) => Ok(keep_commands(gateway, held, &mut ran).await),
        ToolResult::Json(result) => {
            if let Err(error) = artifacts::grant(&gateway.records, &held.owner, pictures).await {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "let a caller read the pictures of a tool"
                );
            }
            Ok(CallResult::json(&result))
        }
    }
}

/// Makes sure that there is a sandbox, with all files of users in it.
pub(super) async fn furnish(
    gateway: &Gateway,
    held: &HeldContainer,
    state: &mut ContainerState,
) -> Result<(), Error> {
    let prepared = held.session.prepare().await?;
    if state.sandbox.as_ref() != Some(&prepared.sandbox) {
        state.placed.clear();
        state.sandbox = Some(prepared.sandbox);
    }
    let failed = |error: &(dyn std::error::Error + 'static)| {
        tracing::error!(error, "put files into a container");
        Error::Request("put the user's files into the sandbox; the gateway's log says why".to_owned())
    };
    let files = gateway
        .records
        .container_files(&held.owner, &held.id, Page::all())
        .await;
    let files = files
        .map_err(|error| failed(&error))?
        .map_or_else(Vec::new, |page| page.rows);
    for file in files {
        if !(held.revived || file.source == "user") || state.placed.contains(&file.id) {
            continue;
        }
        let id = file
            .sha256
            .parse::<ArtifactId>()
            .map_err(|error| failed(&error))?;
        let bytes = gateway.store.file(id).await;
        let bytes = bytes.map_err(|error| failed(&error))?;
        held.session.put_file(path::inside(&file.path), bytes).await?;
        state.placed.insert(file.id);
    }
    Ok(())
}

/// Says that a container was used.
pub(super) async fn touch(gateway: &Gateway, held: &HeldContainer) {
    let touched = gateway.records.touch_container(&held.id, now_ms(), &gateway.id);
    if let Err(error) = touched.await {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "remember that a container was used"
        );
    }
}

/// Makes container files of what an execution made, and tells of it.
pub(super) async fn keep(gateway: &Gateway, held: &HeldContainer, execution: &mut Execution) -> CallResult {
    let fetched = execution
        .fetches
        .iter()
        .filter_map(|fetch| fetch.artifact.as_ref());
    let fetched: Vec<_> = fetched.map(|artifact| artifact.sha256.to_string()).collect();
    if !fetched.is_empty()
        && let Err(error) = artifacts::grant(&gateway.records, &held.owner, fetched).await
    {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "let a caller read what code fetched"
        );
    }
    let (mut made, files) = keep_files(gateway, held, &execution.files, &mut execution.skipped_files).await;
    let mut shown = ExecutionView {
        files,
        ..ExecutionView::default()
    };
    // Charts that are saved are shown as well, unless code closes them: once is enough.
    let saved = execution.files.iter().any(|file| media::is_picture(&file.name));
    for block in render::to_model(&execution.outputs, ALL) {
        let Block::Image { name, image } = block else {
            continue;
        };
        if saved && image.bytes <= gateway.options.containers.max_inline_image {
            continue;
        }
        match keep_picture(gateway, held, name.as_deref(), &image).await {
            Ok(kept) => {
                if image.bytes > gateway.options.containers.max_inline_image {
                    shown
                        .links
                        .insert(image.sha256, address(gateway, &kept.container, &kept.id));
                }
                made.push(kept);
            }
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "keep a picture of a container"
            ),
        }
    }
    CallResult {
        made,
        ..tell(execution, &gateway.store, &shown).await
    }
}

/// Makes container files of what commands made, and tells of it.
async fn keep_commands(gateway: &Gateway, held: &HeldContainer, ran: &mut ShellReport) -> CallResult {
    let (made, files) = keep_files(gateway, held, &ran.files, &mut ran.skipped_files).await;
    CallResult {
        made,
        ..CallResult::of_commands(ran, &files)
    }
}

/// Makes container files of new and changed files, and returns them with their paths and sizes.
async fn keep_files(
    gateway: &Gateway,
    held: &HeldContainer,
    files: &[ProducedFile],
    skipped: &mut Vec<SkippedFile>,
) -> (Vec<OutputFile>, Vec<(String, u64)>) {
    for file in &mut *skipped {
        file.path = path::shown(&file.path);
    }
    let (mut made, mut shown) = (Vec::new(), Vec::new());
    for file in files {
        match keep_file(gateway, held, file).await {
            Ok(Some(kept)) => {
                shown.push((kept.path.clone(), file.bytes));
                made.push(kept);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "keep a file of a container"
                );
                skipped.push(SkippedFile {
                    path: path::shown(&file.path),
                    reason: "it is in the sandbox, but could not be stored for the user: the server's \
                             disk may be full"
                        .to_owned(),
                });
            }
        }
    }
    (made, shown)
}

/// A picture that code showed, under a name that no file of the container has.
async fn keep_picture(
    gateway: &Gateway,
    held: &HeldContainer,
    name: Option<&str>,
    image: &ArtifactRef,
) -> Result<OutputFile, ApiError> {
    let extension = extension(&image.media_type);
    let stem = name.map(path::stem).filter(|stem| !stem.is_empty());
    let stem = stem.unwrap_or_else(|| "figure".to_owned());
    let mut path = path::shown(&format!("/workspace/{stem}.{extension}"));
    let mut number = 1_u32;
    while !gateway.records.versions_at(&held.id, &path).await?.is_empty() {
        number += 1;
        path = path::shown(&format!("/workspace/{stem}-{number}.{extension}"));
    }
    let id = Ids::random().mint("cfile");
    let sha256 = image.sha256.to_string();
    add(gateway, held, id, path, image.bytes, sha256, "assistant").await
}

/// Address of a file's content.
pub(crate) fn address(gateway: &Gateway, container: &str, file: &str) -> String {
    let before = gateway.options.containers.public_url.trim_end_matches('/');
    format!("{before}/v1/containers/{container}/files/{file}/content")
}

/// A file that code made or changed, unless it is what was there.
async fn keep_file(
    gateway: &Gateway,
    held: &HeldContainer,
    file: &ProducedFile,
) -> Result<Option<OutputFile>, ApiError> {
    let path = path::shown(&file.path);
    let versions = gateway.records.versions_at(&held.id, &path).await?;
    if versions
        .last()
        .is_some_and(|version| version.sha256 == file.sha256)
    {
        return Ok(None);
    }
    let id = Ids::random().mint("cfile");
    let kept = add(
        gateway,
        held,
        id,
        path,
        file.bytes,
        file.sha256.clone(),
        "assistant",
    )
    .await?;
    Ok(Some(kept))
}

/// Adds a file to a container's. Its bytes are in the store, and are kept there as long as the file is.
pub(super) async fn add(
    gateway: &Gateway,
    held: &HeldContainer,
    id: String,
    path: String,
    bytes: u64,
    sha256: String,
    source: &str,
) -> Result<OutputFile, ApiError> {
    let row = ContainerFileRow {
        id: id.clone(),
        container: held.id.clone(),
        owner: held.owner.clone(),
        path: path.clone(),
        bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        sha256,
        created_ms: now_ms(),
        source: source.to_owned(),
    };
    insert(gateway, row).await?;
    let container = held.id.clone();
    Ok(OutputFile { container, id, path })
}

/// Remembers a file of a container, and keeps its bytes as long.
pub(super) async fn insert(gateway: &Gateway, row: ContainerFileRow) -> Result<(), ApiError> {
    let id = row.id.clone();
    fetch::pin(gateway, &id, &row.sha256).await?;
    if let Err(error) = gateway.records.add_container_file(row).await {
        fetch::unpin(gateway, &id).await;
        return Err(error.into());
    }
    Ok(())
}
