//! `/files/…` and `/directories/…`, except the bytes of files.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::Json;
use axum::extract::RawQuery;
use axum::extract::rejection::JsonRejection;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::ExecdSandbox;
use super::error::Problem;
use super::files::place;
use super::program::ask;

/// Maximum depth of a list.
const MAX_DEPTH: u32 = 32;

/// A file's new permissions.
#[derive(Debug, Deserialize)]
pub(super) struct Permission {
    mode: Option<u32>,
    owner: Option<String>,
    group: Option<String>,
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
    let paths: Vec<_> = paths(query.as_deref())?
        .into_iter()
        .map(|path| (path.clone(), place(&path)))
        .collect();
    let request = json!({"do": "info", "paths": paths});
    Ok(files(ask(&opened.sandbox.session, &request).await?))
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
    let request = json!({"do": "list", "path": place(&path), "depth": depth});
    Ok(files(ask(&opened.sandbox.session, &request).await?))
}

pub(super) async fn search(opened: ExecdSandbox, RawQuery(query): RawQuery) -> Result<Json<Value>, Problem> {
    let query = query.unwrap_or_default();
    let path = one(&query, "path")?;
    let pattern = named(&query, "pattern").unwrap_or_else(|| "*".to_owned());
    let request = json!({"do": "search", "path": place(&path), "pattern": pattern});
    Ok(files(ask(&opened.sandbox.session, &request).await?))
}

pub(super) async fn permissions(
    opened: ExecdSandbox,
    request: JsonBody<BTreeMap<String, Permission>>,
) -> Result<(), Problem> {
    permit("permit", opened, request).await
}

pub(super) async fn make_directories(
    opened: ExecdSandbox,
    request: JsonBody<BTreeMap<String, Permission>>,
) -> Result<(), Problem> {
    permit("make", opened, request).await
}

async fn permit(
    what: &str,
    opened: ExecdSandbox,
    request: JsonBody<BTreeMap<String, Permission>>,
) -> Result<(), Problem> {
    let Json(request) = request?;
    let files: serde_json::Map<_, _> = request
        .into_iter()
        .map(|(path, it)| {
            let wanted = json!({"mode": it.mode, "owner": it.owner, "group": it.group});
            (place(&path), wanted)
        })
        .collect();
    done(opened, json!({"do": what, "files": files})).await
}

pub(super) async fn rename(opened: ExecdSandbox, request: JsonBody<Vec<Rename>>) -> Result<(), Problem> {
    let Json(request) = request?;
    let files: Vec<_> = request
        .iter()
        .map(|it| [place(&it.src), place(&it.dest)])
        .collect();
    done(opened, json!({"do": "rename", "files": files})).await
}

pub(super) async fn replace(
    opened: ExecdSandbox,
    RawQuery(query): RawQuery,
    request: JsonBody<BTreeMap<String, Replace>>,
) -> Result<Json<Value>, Problem> {
    let Json(request) = request?;
    let files: Vec<_> = request
        .iter()
        .map(|(path, it)| [path.clone(), place(path), it.old.clone(), it.new.clone()])
        .collect();
    let request = json!({"do": "replace", "files": files});
    let mut answer = ask(&opened.sandbox.session, &request).await?;
    let verbose = named(&query.unwrap_or_default(), "verbose");
    Ok(Json(match verbose.as_deref() {
        Some("true" | "True" | "1") => answer["files"].take(),
        _ => json!({}),
    }))
}

pub(super) async fn remove_files(opened: ExecdSandbox, RawQuery(query): RawQuery) -> Result<(), Problem> {
    remove(opened, query.as_deref(), false).await
}

pub(super) async fn remove_directories(
    opened: ExecdSandbox,
    RawQuery(query): RawQuery,
) -> Result<(), Problem> {
    remove(opened, query.as_deref(), true).await
}

async fn remove(opened: ExecdSandbox, query: Option<&str>, directories: bool) -> Result<(), Problem> {
    let paths: Vec<_> = paths(query)?.iter().map(|path| place(path)).collect();
    done(
        opened,
        json!({"do": "remove", "paths": paths, "directories": directories}),
    )
    .await
}

async fn done(opened: ExecdSandbox, request: Value) -> Result<(), Problem> {
    ask(&opened.sandbox.session, &request).await.map(drop)
}

fn files(mut answer: Value) -> Json<Value> {
    Json(answer["files"].take())
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

/// Returns the parameters of a query, in which a name may come more than once.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        let decoded: Cow<'_, str> = percent_decode_str(&text).decode_utf8_lossy();
        decoded.into_owned()
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}
