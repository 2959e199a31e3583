//! `/api/contents`: files of kernels.
//!
//! A path begins with the id of a kernel, as each kernel has a file system of its own:
//! `{kernel}/a.txt` is `/workspace/a.txt` in its sandbox. The root lists the kernels as
//! directories.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{OriginalUri, Path, State};
use axum::http::header::LOCATION;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::json_error;
use cellblock_settings::clock;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::caller::Caller;
use super::checkpoints;
use super::kernels::json_or_default;
use super::problem::Problem;
use super::state::{HeldKernel, Jupyter};
use super::wire::date;
use crate::files::{FileRecord, RecordList, operate, perform};

/// Root of a kernel's files.
const ROOT: &str = "/workspace";
/// Maximum number of entries of a listing.
const MAX_ENTRIES: u64 = 5000;
/// Fields of a file that a model is made of.
pub(super) const FIELDS: [&str; 5] = ["type", "size", "modified", "writable", "media_type"];

/// Part of a file to return.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContentsQuery {
    #[serde(rename = "type")]
    kind: Option<String>,
    format: Option<String>,
    content: Option<u8>,
}

/// A file as a client sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    format: Option<String>,
    content: Option<Value>,
    path: Option<String>,
    ext: Option<String>,
    copy_from: Option<String>,
}

/// A place among the files of a kernel.
#[derive(Debug)]
pub(super) struct KernelPath {
    held: HeldKernel,
    /// The path in answers, with the kernel's id.
    path: String,
    /// The path in the sandbox.
    pub(super) inside: String,
}

impl KernelPath {
    pub(super) fn find(jupyter: &Jupyter, owner: &Owner, path: &str) -> Result<Self, Problem> {
        let path = path.trim_matches('/');
        let (kernel, rest) = path.split_once('/').unwrap_or((path, ""));
        let is_plain = rest.split('/').all(|part| !matches!(part, "." | ".."));
        if !is_plain || rest.contains('\0') {
            return Err(Problem::invalid(format!("`{path}` is not a path of a file")));
        }
        let held = jupyter.kernel(owner, kernel).map_err(|_| {
            let message = format!(
                "`{kernel}` is not a kernel: paths begin with the id of one, such as `<kernel id>/a.txt`"
            );
            Problem::missing(message)
        })?;
        Ok(Self {
            held,
            path: path.to_owned(),
            inside: format!("{ROOT}/{rest}").trim_end_matches('/').to_owned(),
        })
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path of the file's checkpoint.
    pub(super) fn checkpoint(&self) -> String {
        let (folder, name) = self.inside.rsplit_once('/').unwrap_or_default();
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let dot = if extension.is_empty() { "" } else { "." };
        format!("{folder}/.ipynb_checkpoints/{stem}-checkpoint{dot}{extension}")
    }

    pub(super) async fn does<T: DeserializeOwned>(&self, operation: &str, with: Value) -> Result<T, Problem> {
        Ok(operate(&self.held.session, ROOT, operation, &with).await?)
    }

    pub(super) async fn about(&self, path: &str) -> Result<Value, Problem> {
        let found: FileRecord = self.does("content.about", json!({ "path": path })).await?;
        Ok(found.fields(&FIELDS))
    }

    /// Lists the files of the directory.
    async fn entries(&self) -> Result<Vec<FileRecord>, Problem> {
        let wanted = json!({"path": self.inside, "limit": MAX_ENTRIES});
        Ok(self.does::<RecordList>("record.entries", wanted).await?.entries)
    }

    /// The model without content.
    async fn model(&self) -> Result<Value, Problem> {
        let about = self.about(&self.inside).await?;
        Ok(model(self.name(), &self.path, &about))
    }
}

/// `GET /api/contents` and what is below it.
pub(super) async fn get(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    path: Option<Path<String>>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let asked = axum::extract::Query::<ContentsQuery>::try_from_uri(&uri);
    let asked = asked
        .map_err(|error| Problem::invalid(json_error::describe(&error.body_text())))?
        .0;
    let with_content = asked.content != Some(0);
    let path = path.map_or_else(String::new, |Path(path)| path);
    if let Some(found) = checkpoints::list(&jupyter, &owner, &path).await {
        return found.map(Json);
    }
    if path.trim_matches('/').is_empty() {
        return Ok(Json(root(&jupyter, &owner, with_content)));
    }
    let place = KernelPath::find(&jupyter, &owner, &path)?;
    let mut found = place.model().await?;
    match (asked.kind.as_deref(), found["type"] == "directory") {
        (Some("directory"), false) => return Err(Problem::invalid(format!("`{path}` is not a directory"))),
        (Some("file" | "notebook"), true) => {
            return Err(Problem::invalid(format!("`{path}` is a directory, not a file")));
        }
        (Some("file"), false) => found["type"] = "file".into(),
        _ => {}
    }
    if !with_content {
        return Ok(Json(found));
    }
    if found["type"] == "directory" {
        let entries = place.entries().await?;
        let visible = entries.iter().filter(|entry| !entry.name().starts_with('.'));
        let entry = |it: &FileRecord| {
            let path = format!("{}/{}", place.path, it.name());
            model(it.name(), &path, &it.fields(&FIELDS))
        };
        found["content"] = visible.map(entry).collect();
        found["format"] = "json".into();
        return Ok(Json(found));
    }
    let arguments = json!({ "path": place.inside });
    let (_, content): (IgnoredAny, _) =
        perform(&place.held.session, ROOT, "content.read_bytes", &arguments).await?;
    fill(&mut found, content, asked.format.as_deref())?;
    Ok(Json(found))
}

/// Puts a file's content into its model.
fn fill(model: &mut Value, content: Vec<u8>, format: Option<&str>) -> Result<(), Problem> {
    if model["type"] == "notebook" {
        let notebook: Value = serde_json::from_slice(&content)
            .map_err(|error| Problem::invalid(format!("the notebook is not JSON: {error}")))?;
        model["content"] = notebook;
        model["format"] = "json".into();
        return Ok(());
    }
    match (format, String::from_utf8(content)) {
        (Some("base64"), Ok(text)) => {
            model["content"] = STANDARD.encode(text).into();
            model["format"] = "base64".into();
        }
        (_, Ok(text)) => {
            model["content"] = text.into();
            model["format"] = "text".into();
        }
        (Some("text"), Err(_)) => {
            return Err(Problem::invalid(
                "the file is not UTF-8 text; use the format `base64`",
            ));
        }
        (_, Err(error)) => {
            model["content"] = STANDARD.encode(error.into_bytes()).into();
            model["format"] = "base64".into();
        }
    }
    Ok(())
}

/// The root, whose directories are kernels.
fn root(jupyter: &Jupyter, owner: &Owner, with_content: bool) -> Value {
    let about = |created: std::time::SystemTime| {
        let modified = clock::since_epoch(created).as_secs_f64();
        json!({"type": "directory", "modified": modified, "writable": true})
    };
    let kernels = jupyter.kernels.of(owner.name());
    let newest = kernels.last().map_or(std::time::UNIX_EPOCH, |it| it.created);
    let mut root = model("", "", &about(newest));
    root["writable"] = false.into();
    if with_content {
        root["content"] = kernels
            .iter()
            .map(|it| model(&it.id, &it.id, &about(it.created)))
            .collect();
        root["format"] = "json".into();
    }
    root
}

fn model(name: &str, path: &str, about: &Value) -> Value {
    let is_notebook = name.to_ascii_lowercase().ends_with(".ipynb");
    let kind = match about["type"].as_str() {
        Some("directory") => "directory",
        _ if is_notebook => "notebook",
        _ => "file",
    };
    let modified = date(about["modified"].as_f64().unwrap_or(0.0));
    json!({
        "name": name,
        "path": path,
        "type": kind,
        "created": modified,
        "last_modified": modified,
        "mimetype": if kind == "file" { about["media_type"].clone() } else { Value::Null },
        "size": if kind == "directory" { Value::Null } else { about["size"].clone() },
        "writable": about["writable"],
        "format": null,
        "content": null,
        "hash": null,
        "hash_algorithm": null,
    })
}

/// `PUT /api/contents/{path}`: writes a file, or makes a directory.
pub(super) async fn put(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(path): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let sent: Model = json_or_default(&body)?;
    let place = KernelPath::find(&jupyter, &owner, &path)?;
    jupyter.host.meter.uploaded(&owner, body.len() as u64).await?;
    let is_new = place.about(&place.inside).await.is_err();
    save(&place, sent).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(place.model().await?)).into_response())
}

async fn save(place: &KernelPath, sent: Model) -> Result<(), Problem> {
    if sent.kind.as_deref() == Some("directory") {
        place
            .does::<IgnoredAny>("change.make", json!({ "path": place.inside }))
            .await?;
        return Ok(());
    }
    let content = match (sent.content, sent.format.as_deref()) {
        (Some(Value::String(text)), Some("base64")) => json!({ "base64": text }),
        (Some(Value::String(text)), _) => text.into(),
        (Some(notebook @ Value::Object(_)), _) => notebook.to_string().into(),
        (None, _) => "".into(),
        (Some(_), _) => {
            return Err(Problem::invalid(
                "`content` must be a string, or a notebook as an object",
            ));
        }
    };
    let arguments = json!({"path": place.inside, "content": content});
    place.does::<IgnoredAny>("content.write", arguments).await?;
    Ok(())
}

/// `POST /api/contents/{path}`: a new file in a directory, empty or a copy.
pub(super) async fn post(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(path): Path<String>,
    OriginalUri(uri): OriginalUri,
    body: Bytes,
) -> Result<Response, Problem> {
    if let Some(done) = checkpoints::save_or_restore(&jupyter, &owner, &path).await {
        return done;
    }
    let sent: Model = json_or_default(&body)?;
    let folder = KernelPath::find(&jupyter, &owner, &path)?;
    let entries = folder.entries().await?;
    let taken: Vec<&str> = entries.iter().map(FileRecord::name).collect();
    let source = sent
        .copy_from
        .as_deref()
        .map(|from| KernelPath::find(&jupyter, &owner, from))
        .transpose()?;
    let (stem, extension) = match (&source, sent.kind.as_deref()) {
        (Some(source), _) => {
            let (stem, extension) = source.name().rsplit_once('.').unwrap_or((source.name(), ""));
            let dot = if extension.is_empty() { "" } else { "." };
            (format!("{stem}-Copy"), format!("{dot}{extension}"))
        }
        (None, Some("notebook")) => ("Untitled".to_owned(), ".ipynb".to_owned()),
        (None, Some("directory")) => ("Untitled Folder ".to_owned(), String::new()),
        (None, _) => (
            "untitled".to_owned(),
            sent.ext.clone().unwrap_or_else(|| ".txt".to_owned()),
        ),
    };
    let mut number = u32::from(source.is_some());
    let (name, place) = loop {
        let name = match number {
            0 => format!("{}{extension}", stem.trim_end()),
            _ => format!("{stem}{number}{extension}"),
        };
        number += 1;
        if taken.contains(&name.as_str()) {
            continue;
        }
        let place = KernelPath::find(&jupyter, &owner, &format!("{}/{name}", folder.path))?;
        // The listing has a maximum, so it need not have every name that is taken.
        let found = place.about(&place.inside).await;
        match found {
            Err(problem) if problem.is_no_file() => break (name, place),
            found => drop(found?),
        }
    };
    match source {
        Some(source) => {
            if source.held.id != place.held.id {
                return Err(Problem::invalid(
                    "a file cannot be copied from one kernel to another",
                ));
            }
            let copy = json!({"source": source.inside, "destination": place.inside});
            place.does::<IgnoredAny>("change.copy", copy).await?;
        }
        None if sent.kind.as_deref() == Some("notebook") => {
            let empty = json!({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
            let notebook = Model {
                content: Some(empty),
                ..Model::default()
            };
            save(&place, notebook).await?;
        }
        None => {
            save(
                &place,
                Model {
                    content: None,
                    ..sent
                },
            )
            .await?;
        }
    }
    let location = format!("{}/{name}", uri.path().trim_end_matches('/'));
    let location = location.replace(' ', "%20");
    Ok((
        StatusCode::CREATED,
        [(LOCATION, location)],
        Json(place.model().await?),
    )
        .into_response())
}

/// `PATCH /api/contents/{path}`: renames.
pub(super) async fn patch(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(path): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let sent: Model = json_or_default(&body)?;
    let from = KernelPath::find(&jupyter, &owner, &path)?;
    let to = sent
        .path
        .ok_or_else(|| Problem::invalid("`path` is missing: the new path"))?;
    let to = KernelPath::find(&jupyter, &owner, &to)?;
    if from.held.id != to.held.id {
        return Err(Problem::invalid(
            "a file cannot be moved from one kernel to another",
        ));
    }
    let paths = json!({"source": from.inside, "destination": to.inside});
    to.does::<IgnoredAny>("change.move", paths).await?;
    Ok(Json(to.model().await?))
}

/// `DELETE /api/contents/{path}`.
pub(super) async fn delete(
    State(jupyter): State<Jupyter>,
    Caller(owner): Caller,
    Path(path): Path<String>,
) -> Result<StatusCode, Problem> {
    if let Some(done) = checkpoints::forget(&jupyter, &owner, &path).await {
        return done;
    }
    let place = KernelPath::find(&jupyter, &owner, &path)?;
    if place.inside == ROOT {
        return Err(Problem::invalid(
            "the directory of a kernel goes with the kernel; use `DELETE /api/kernels/{id}`",
        ));
    }
    let arguments = json!({ "path": place.inside });
    place.does::<IgnoredAny>("change.remove", arguments).await?;
    Ok(StatusCode::NO_CONTENT)
}
