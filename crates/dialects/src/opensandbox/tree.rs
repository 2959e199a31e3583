//! `/files/…` and `/directories/…`, except the bytes of files.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::RawQuery;
use axum::extract::rejection::JsonRejection;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::access::ExecdSandbox;
use super::error::Problem;
use super::files::place;
use crate::files::{FileKind, FileRecord, RecordList, operate, operate_each};
use crate::instant::instant;
use crate::presented::pairs;

/// Maximum depth of a list.
const MAX_DEPTH: u32 = 32;
/// Permissions of a file that the host writes.
const USUAL: u32 = 644;
/// Maximum number of files of one answer.
const MAX_FILES: u64 = 10_000;

/// A file's new permissions.
#[derive(Debug, Deserialize)]
pub(super) struct Permission {
    /// Its decimal digits are the octal ones.
    mode: Option<u32>,
    owner: Option<String>,
    group: Option<String>,
}

impl Permission {
    /// Returns whether it differs from those that a file gets without any.
    pub(super) fn is_unusual(&self) -> bool {
        let given = |name: &Option<String>| name.as_ref().is_some_and(|it| !it.is_empty());
        self.mode.is_some_and(|mode| mode != USUAL) || given(&self.owner) || given(&self.group)
    }

    /// Returns the arguments that give a file these permissions.
    pub(super) fn arguments(&self, path: &str) -> Result<Value, Problem> {
        let octal = |mode: u32| {
            u32::from_str_radix(&mode.to_string(), 8)
                .map_err(|_| Problem::invalid(format!("invalid mode `{mode}`: must be octal, such as 644")))
        };
        let mode = self.mode.map(octal).transpose()?;
        Ok(json!({"path": path, "mode": mode, "owner": self.owner, "group": self.group}))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Rename {
    src: String,
    dest: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Replace {
    old: String,
    new: String,
}

type JsonBody<T> = Result<Json<T>, JsonRejection>;

pub(super) async fn info(opened: ExecdSandbox, RawQuery(query): RawQuery) -> Result<Json<Value>, Problem> {
    let paths = paths(query.as_deref())?;
    let calls = paths.iter().map(|path| json!({"path": place(path)})).collect();
    let found: Vec<FileRecord> = operate_each(&opened.sandbox.session, "record.find", calls).await?;
    let files = paths.into_iter().zip(found.iter().map(shown));
    Ok(Json(Value::Object(files.collect())))
}

pub(super) async fn list(opened: ExecdSandbox, RawQuery(query): RawQuery) -> Result<Json<Value>, Problem> {
    let query = query.unwrap_or_default();
    let path = one(&query, "path")?;
    let depth = match named(&query, "depth") {
        Some(text) => text
            .parse()
            .ok()
            .filter(|it| (1..=MAX_DEPTH).contains(it))
            .ok_or_else(|| {
                Problem::invalid(format!("invalid depth `{text}`: must be from 1 to {MAX_DEPTH}"))
            })?,
        None => 1,
    };
    let wanted = json!({"path": place(&path), "depth": depth, "limit": MAX_FILES});
    let found: RecordList = operate(&opened.sandbox.session, "/", "record.entries", &wanted).await?;
    if found.directory.target.is_some() {
        return Err(Problem::invalid(format!(
            "it is a symbolic link; name the directory itself: {}",
            found.directory.path
        )));
    }
    if found.total > MAX_FILES {
        let root = found.directory.path;
        return Err(Problem::invalid(format!(
            "there are more than {MAX_FILES} entries below '{root}'; list a smaller part"
        )));
    }
    Ok(Json(found.entries.iter().map(shown).collect()))
}

/// A pattern with a slash is also one of paths, in which `**/` is any directory or none.
pub(super) async fn search(opened: ExecdSandbox, RawQuery(query): RawQuery) -> Result<Json<Value>, Problem> {
    let query = query.unwrap_or_default();
    let path = one(&query, "path")?;
    let pattern = named(&query, "pattern").unwrap_or_else(|| "*".to_owned());
    let in_paths = pattern.contains('/').then(|| pattern.replace("**/", "*"));
    let wanted = json!({
        "path": place(&path), "names": [pattern.replace("**/", "")], "paths": Vec::from_iter(in_paths),
        "kind": "file", "limit": MAX_FILES,
    });
    let found: RecordList = operate(&opened.sandbox.session, "/", "search.glob", &wanted).await?;
    if found.total > MAX_FILES {
        return Err(Problem::invalid(format!(
            "more than {MAX_FILES} files match '{pattern}'; search a smaller part"
        )));
    }
    Ok(Json(found.entries.iter().map(shown).collect()))
}

pub(super) async fn permissions(
    opened: ExecdSandbox,
    request: JsonBody<BTreeMap<String, Permission>>,
) -> Result<(), Problem> {
    permit("change.permit", opened, request).await
}

pub(super) async fn make_directories(
    opened: ExecdSandbox,
    request: JsonBody<BTreeMap<String, Permission>>,
) -> Result<(), Problem> {
    permit("change.make", opened, request).await
}

async fn permit(
    operation: &str,
    opened: ExecdSandbox,
    request: JsonBody<BTreeMap<String, Permission>>,
) -> Result<(), Problem> {
    let Json(request) = request?;
    let calls = request.iter().map(|(path, it)| it.arguments(&place(path)));
    done(&opened, operation, calls.collect::<Result<_, _>>()?).await
}

pub(super) async fn rename(opened: ExecdSandbox, request: JsonBody<Vec<Rename>>) -> Result<(), Problem> {
    let Json(request) = request?;
    let paths =
        |it: &Rename| json!({"source": place(&it.src), "destination": place(&it.dest), "replace": true});
    done(&opened, "change.move", request.iter().map(paths).collect()).await
}

pub(super) async fn replace(
    opened: ExecdSandbox,
    RawQuery(query): RawQuery,
    request: JsonBody<BTreeMap<String, Replace>>,
) -> Result<Json<Value>, Problem> {
    let Json(request) = request?;
    if let Some((path, _)) = request.iter().find(|(_, it)| it.old.is_empty()) {
        return Err(Problem::invalid(format!(
            "the text to replace in '{path}' is empty"
        )));
    }
    let call = |(path, it): (&String, &Replace)| {
        let all = json!({
            "target": it.old, "replacement": it.new, "allow_multiple": true, "optional": true,
        });
        json!({"path": place(path), "replacements": [all]})
    };
    let calls = request.iter().map(call).collect();
    let answers: Vec<Value> = operate_each(&opened.sandbox.session, "content.replace", calls).await?;
    let verbose = named(&query.unwrap_or_default(), "verbose");
    if !matches!(verbose.as_deref(), Some("true" | "True" | "1")) {
        return Ok(Json(json!({})));
    }
    let counts = answers.iter().map(|it| json!({"replacedCount": it["count"]}));
    Ok(Json(Value::Object(request.into_keys().zip(counts).collect())))
}

pub(super) async fn remove_files(opened: ExecdSandbox, RawQuery(query): RawQuery) -> Result<(), Problem> {
    remove(opened, query.as_deref(), "file").await
}

pub(super) async fn remove_directories(
    opened: ExecdSandbox,
    RawQuery(query): RawQuery,
) -> Result<(), Problem> {
    remove(opened, query.as_deref(), "directory").await
}

async fn remove(opened: ExecdSandbox, query: Option<&str>, kind: &str) -> Result<(), Problem> {
    let paths = paths(query)?;
    let calls = paths
        .iter()
        .map(|path| json!({"path": place(path), "kind": kind}));
    done(&opened, "change.remove", calls.collect()).await
}

pub(super) async fn done(opened: &ExecdSandbox, operation: &str, calls: Vec<Value>) -> Result<(), Problem> {
    operate_each::<IgnoredAny>(&opened.sandbox.session, operation, calls).await?;
    Ok(())
}

/// A file in the form of the protocol, which names links.
fn shown(record: &FileRecord) -> Value {
    let kind = match record.kind {
        _ if record.target.is_some() => "symlink",
        FileKind::Directory => "directory",
        FileKind::File => "file",
        FileKind::Symlink | FileKind::Other => "other",
    };
    json!({
        "path": record.path,
        "type": kind,
        "size": record.size,
        "modified_at": instant(record.modified()),
        "created_at": instant(record.changed()),
        "owner": record.owner,
        "group": record.group,
        // The digits are the octal ones.
        "mode": format!("{:o}", record.mode).parse().unwrap_or(USUAL),
    })
}

fn paths(query: Option<&str>) -> Result<Vec<String>, Problem> {
    let pairs = pairs(query.unwrap_or_default()).into_iter();
    let paths: Vec<_> = pairs
        .filter(|(name, _)| name == "path")
        .map(|(_, path)| path)
        .collect();
    if paths.is_empty() {
        return Err(Problem::invalid("`path` is missing"));
    }
    Ok(paths)
}

pub(super) fn one(query: &str, name: &str) -> Result<String, Problem> {
    named(query, name).ok_or_else(|| Problem::invalid(format!("`{name}` is missing")))
}

pub(super) fn named(query: &str, name: &str) -> Option<String> {
    let found = pairs(query).into_iter().find(|(it, _)| it == name);
    found.map(|(_, value)| value)
}
