//! `/files/…`: the operations on files that models are offered.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};
use cellblock_interpreter::egress::inbound::SEPARATE_ORIGIN;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::arguments::{between, flag, json, query, values};
use super::chat::{Caller, OpenTerminal};
use super::problem::Problem;
use super::workspace::perform;
use crate::bounded::{BoundedName, MAX_NAME};
use crate::files::{FileRecord, RecordList};

/// Maximum number of entries of a listing.
const MAX_ENTRIES: u64 = 5000;
/// Maximum number of matches that a search can ask for.
const MAX_MATCHES: u32 = 500;
/// Maximum number of names that a search by name can ask for.
const MAX_NAMES: u32 = 100;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Directory to list; by default the working directory.
    directory: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ReadQuery {
    /// Path of the file.
    path: String,
    /// First line to return, from 1; by default the first.
    start_line: Option<u64>,
    /// Last line to return; by default the last.
    end_line: Option<u64>,
}

#[derive(Debug, Deserialize, Serialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PathQuery {
    /// Path of the file.
    pub(super) path: String,
}

impl PathQuery {
    /// Rejects a path that no file has.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let length = self.path.len();
        if length > MAX_NAME {
            return Err(Problem::invalid(format!(
                "`path` has {length} bytes, the limit is {MAX_NAME}"
            )));
        }
        Ok(())
    }
}

#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
pub(super) struct WriteRequest {
    /// Path of the file. Missing directories are created.
    path: String,
    /// Its new content.
    content: String,
}

#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
pub(super) struct ReplaceRequest {
    /// Path of the file.
    path: String,
    /// Replacements, applied in this order. If one of them fails, the file stays as it is.
    replacements: Vec<Replacement>,
}

#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[expect(clippy::struct_field_names, reason = "the fields are those of the protocol")]
pub(super) struct Replacement {
    /// Exact text to find, including whitespace.
    target: String,
    /// Text to put in its place.
    replacement: String,
    /// First line to search, from 1.
    start_line: Option<u64>,
    /// Last line to search.
    end_line: Option<u64>,
    /// Whether every occurrence is replaced; otherwise there must be exactly one.
    #[serde(default)]
    allow_multiple: bool,
}

#[derive(Debug, Deserialize, Serialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct GrepQuery {
    /// Text or regular expression (Python's) to search for.
    query: String,
    /// File or directory to search; by default the working directory.
    path: Option<String>,
    /// Whether `query` is a regular expression; by default it is.
    #[serde(default = "yes", deserialize_with = "flag")]
    #[param(required = false)]
    regex: bool,
    /// Whether case is ignored.
    #[serde(default, deserialize_with = "flag")]
    #[param(required = false)]
    case_insensitive: bool,
    /// Patterns of file names, such as `*.py`; a file has to match one of them.
    #[serde(default)]
    #[param(required = false)]
    include: Vec<String>,
    /// Whether matching lines are returned; otherwise only the files that have one.
    #[serde(default = "yes", deserialize_with = "flag")]
    #[param(required = false)]
    match_per_line: bool,
    /// Maximum number of matches, at most 500; by default 50.
    #[serde(default = "fifty")]
    #[param(required = false)]
    max_results: u32,
}

/// A kind of entry of a directory.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EntryKind {
    File,
    Directory,
    #[default]
    Any,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct GlobQuery {
    /// Pattern of names or of paths, such as `*.py`.
    pattern: String,
    /// Directory to search; by default the working directory.
    path: Option<String>,
    /// Patterns of what is left out.
    #[serde(default)]
    #[param(required = false)]
    exclude: Vec<String>,
    /// `file`, `directory` or `any`.
    #[serde(rename = "type", default)]
    #[param(required = false, inline)]
    kind: EntryKind,
    /// Maximum number of matches, at most 500; by default 50.
    #[serde(default = "fifty")]
    #[param(required = false)]
    max_results: u32,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchQuery {
    /// Part of the name.
    #[serde(default)]
    query: String,
    /// Directory to search; by default the working directory.
    path: Option<String>,
    /// Maximum number of names, at most 100; by default 20.
    #[serde(default = "twenty")]
    #[param(required = false)]
    limit: u32,
    /// `file`, `directory` or `any`.
    #[serde(rename = "type", default)]
    #[param(required = false, inline)]
    kind: EntryKind,
    /// Whether names that begin with a dot are searched.
    #[serde(default, deserialize_with = "flag")]
    #[param(required = false)]
    show_hidden: bool,
}

const fn yes() -> bool {
    true
}

const fn fifty() -> u32 {
    50
}

const fn twenty() -> u32 {
    20
}

/// List the files and directories in a directory.
#[utoipa::path(get, path = "/files/list", operation_id = "list_files", params(ListQuery),
    responses((status = 200, description = "Its entries", body = Object)))]
pub(super) async fn list(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let asked: ListQuery = query(&uri)?;
    let asked = json!({"path": asked.directory, "limit": MAX_ENTRIES});
    let found: RecordList = terminal.operate(&caller, "record.entries", &asked).await?;
    let fields = ["name", "type", "size", "modified", "writable"];
    let entries: Vec<_> = found.entries.iter().map(|it| it.fields(&fields)).collect();
    let FileRecord { path, writable, .. } = found.directory;
    let mut answer = json!({"dir": path, "writable": writable, "entries": entries});
    if found.total > MAX_ENTRIES {
        answer["omitted"] = (found.total - MAX_ENTRIES).into();
    }
    Ok(Json(answer))
}

/// Read a text file, or look at a picture. For text, `start_line` and `end_line` select lines. Use
/// `display_file` to show a file to the user.
#[utoipa::path(get, path = "/files/read", operation_id = "read_file", params(ReadQuery),
    responses((status = 200, description = "The text as JSON, or the bytes of a picture", body = Object)))]
pub(super) async fn read(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let asked: ReadQuery = query(&uri)?;
    for (name, line) in [("start_line", asked.start_line), ("end_line", asked.end_line)] {
        line.map(|line| between(name, line, 1, u64::MAX)).transpose()?;
    }
    let held = terminal.chat(&caller).await?;
    let (answer, content): (Value, _) = perform(&held, "content.read", &asked).await?;
    let picture = answer["media_type"]
        .as_str()
        .filter(|it| it.starts_with("image/"));
    Ok(match picture.and_then(|it| HeaderValue::from_str(it).ok()) {
        // The sandbox says what it is, and some pictures have scripts.
        Some(media_type) => (
            [
                (CONTENT_TYPE, media_type),
                (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
                (CONTENT_SECURITY_POLICY, SEPARATE_ORIGIN),
            ],
            content,
        )
            .into_response(),
        None => Json(answer).into_response(),
    })
}

/// Show a file to the user, in their own viewer. It does not return the content; use `read_file` for that.
#[utoipa::path(get, path = "/files/display", operation_id = "display_file", params(PathQuery),
    responses((status = 200, description = "Its path, and whether it exists", body = Object)))]
pub(super) async fn display(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let asked: PathQuery = query(&uri)?;
    terminal
        .operate(&caller, "content.exists", &asked)
        .await
        .map(Json)
}

/// Write a text file. Creates missing directories, and replaces a file that exists.
#[utoipa::path(post, path = "/files/write", operation_id = "write_file", request_body = WriteRequest,
    responses((status = 200, description = "Its path and size", body = Object)))]
pub(super) async fn write(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: WriteRequest = json(&body)?;
    let bytes = asked.content.len() as u64;
    terminal.host.meter.uploaded(&caller.owner, bytes).await?;
    terminal.operate(&caller, "content.write", &asked).await.map(Json)
}

/// Replace exact pieces of text in a file.
#[utoipa::path(post, path = "/files/replace", operation_id = "replace_file_content",
    request_body = ReplaceRequest, responses((status = 200, description = "Its path and size",
        body = Object)))]
pub(super) async fn replace(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: ReplaceRequest = json(&body)?;
    if asked.replacements.iter().any(|it| it.target.is_empty()) {
        return Err(Problem::invalid("`target` is empty; give the text to replace"));
    }
    let done: Value = terminal.operate(&caller, "content.replace", &asked).await?;
    Ok(Json(json!({"path": done["path"], "size": done["size"]})))
}

/// Search the content of files. Returns the matching lines with their files and line numbers.
#[utoipa::path(get, path = "/files/grep", operation_id = "grep_search", params(GrepQuery),
    responses((status = 200, description = "The matches", body = Object)))]
pub(super) async fn grep(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let mut asked: GrepQuery = query(&without(&uri, "include")?)?;
    asked.include = values(&uri, "include");
    between("max_results", asked.max_results, 1, MAX_MATCHES)?;
    terminal.operate(&caller, "search.grep", &asked).await.map(Json)
}

/// Find files and directories by a pattern of their names.
#[utoipa::path(get, path = "/files/glob", operation_id = "glob_search", params(GlobQuery),
    responses((status = 200, description = "The matches", body = Object)))]
pub(super) async fn glob(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let mut asked: GlobQuery = query(&without(&uri, "exclude")?)?;
    asked.exclude = values(&uri, "exclude");
    between("max_results", asked.max_results, 1, MAX_MATCHES)?;
    let patterns = [&asked.pattern];
    let wanted = json!({
        "names": patterns, "paths": patterns, "exclude": asked.exclude, "path": asked.path,
        "kind": asked.kind, "limit": asked.max_results,
    });
    let found: RecordList = terminal.operate(&caller, "search.glob", &wanted).await?;
    let top = &found.directory.path;
    let below = |record: &FileRecord| {
        let mut entry = record.fields(&["type", "size", "modified"]);
        let path = record.path.strip_prefix(top.as_str()).unwrap_or(&record.path);
        entry["path"] = path.trim_start_matches('/').into();
        entry
    };
    let matches: Vec<_> = found.entries.iter().map(below).collect();
    let truncated = found.total > u64::from(asked.max_results);
    Ok(Json(
        json!({"pattern": asked.pattern, "path": top, "matches": matches, "truncated": truncated}),
    ))
}

/// Find files and directories by a part of their names, the best match first.
#[utoipa::path(get, path = "/files/search", operation_id = "search_files", params(SearchQuery),
    responses((status = 200, description = "The matches", body = Object)))]
pub(super) async fn search(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let asked: SearchQuery = query(&uri)?;
    between("limit", asked.limit, 1, MAX_NAMES)?;
    let wanted = json!({
        "query": asked.query, "path": asked.path, "limit": asked.limit, "kind": asked.kind,
        "show_hidden": asked.show_hidden,
    });
    let found: RecordList = terminal.operate(&caller, "search.names", &wanted).await?;
    let fields = ["path", "name", "type", "size", "modified"];
    let results: Vec<_> = found.entries.iter().map(|it| it.fields(&fields)).collect();
    Ok(Json(json!({ "results": results })))
}

/// `GET /files/cwd`.
pub(super) async fn cwd(State(terminal): State<OpenTerminal>, caller: Caller) -> Json<Value> {
    // Asked before each turn of a chat: that alone makes no sandbox.
    let held = terminal.existing(&caller);
    let cwd = held.map_or_else(|| super::chat::HOME.to_owned(), |held| held.kept.cwd());
    Json(json!({"cwd": cwd, "home": super::chat::HOME}))
}

/// `POST /files/cwd`.
pub(super) async fn set_cwd(
    State(terminal): State<OpenTerminal>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let asked: PathQuery = json(&body)?;
    let held = terminal.chat(&caller).await?;
    asked.check()?;
    let wanted = json!({"path": asked.path, "limit": 0});
    let (found, _): (RecordList, _) = perform(&held, "record.entries", &wanted).await?;
    let answer = json!({"cwd": found.directory.path});
    let cwd = BoundedName::new(found.directory.path);
    held.kept
        .set_cwd(cwd.map_err(|error| Problem::invalid(format!("the directory is {error}")))?);
    Ok(Json(answer))
}

/// The address without a parameter that may be repeated, which is read by itself.
fn without(uri: &Uri, name: &str) -> Result<Uri, Problem> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let rest = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs.filter(|(key, _)| key != name))
        .finish();
    let text = format!("{}?{rest}", uri.path());
    text.parse()
        .map_err(|_| Problem::invalid("the query is not a query"))
}
