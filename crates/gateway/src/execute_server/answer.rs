//! Report of a server about what it did.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::error::ExecuteServerError;

/// The most files of one call.
const FILES: usize = 64;
/// The most characters of a file's name.
const NAME: usize = 255;
/// Servers of this kind put it before what their installer said.
const NOT_INSTALLED: &str = "package installation failed:";

/// Code that was run, or could not be, by a server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteServerAnswer {
    /// Outcome.
    pub ended: ExecuteEnd,
    /// Text that it wrote to stdout.
    pub stdout: String,
    /// The same for standard error.
    pub stderr: String,
    /// Duration in milliseconds, if the server reports it.
    pub took_ms: Option<u64>,
    /// Files that it left for its caller.
    pub files: Vec<CodeFile>,
    /// Files that are left out, with the reason.
    pub skipped: Vec<String>,
}

/// Result of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecuteEnd {
    /// By itself.
    Succeeded,
    /// By an error of its own; the exit code, where there is one.
    Failed(Option<i64>),
    /// It was not run, as what it needs could not be installed.
    NotInstalled,
    /// The server ended it: its time was over, or it could not be started.
    Stopped,
}

/// A file that code made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFile {
    /// Its name, without a folder.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The answer's form. Numbers may be of any kind, and what is missing is nothing.
#[derive(Debug, Deserialize)]
struct ExecuteReply {
    status: String,
    #[serde(default)]
    stdout: Option<String>,
    #[serde(default)]
    stderr: Option<String>,
    #[serde(default)]
    exit_code: Option<f64>,
    #[serde(default)]
    execution_time_ms: Option<f64>,
    #[serde(default)]
    files_produced: Option<BTreeMap<String, String>>,
}

/// Reads an answer.
pub(super) fn read(bytes: &[u8]) -> Result<ExecuteServerAnswer, ExecuteServerError> {
    let unread = |reason: String| ExecuteServerError::Unread { reason };
    let body: ExecuteReply = serde_json::from_slice(bytes).map_err(|error| {
        unread(format!(
            "it cannot be read at line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    let stderr = body.stderr.unwrap_or_default();
    let code = body.exit_code.map(whole);
    let ended = match (body.status.as_str(), code) {
        ("success", _) => ExecuteEnd::Succeeded,
        ("error", Some(-1)) if stderr.starts_with(NOT_INSTALLED) => ExecuteEnd::NotInstalled,
        ("error", Some(-1)) | ("timeout", _) => ExecuteEnd::Stopped,
        ("error", code) => ExecuteEnd::Failed(code),
        _ => return Err(unread("its status is neither `success` nor `error`".to_owned())),
    };
    let mut executed = ExecuteServerAnswer {
        ended,
        stdout: body.stdout.unwrap_or_default(),
        stderr,
        took_ms: body.execution_time_ms.map(|took| whole(took).unsigned_abs()),
        files: Vec::new(),
        skipped: Vec::new(),
    };
    for (path, encoded) in body.files_produced.unwrap_or_default() {
        let name = name(&path);
        if executed.files.len() == FILES {
            executed
                .skipped
                .push(format!("{name}: only the first {FILES} files are kept"));
            continue;
        }
        match STANDARD.decode(encoded) {
            Ok(bytes) => executed.files.push(CodeFile { name, bytes }),
            Err(_) => executed.skipped.push(format!("{name}: its bytes cannot be read")),
        }
    }
    Ok(executed)
}

#[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
const fn whole(number: f64) -> i64 {
    number as i64
}

/// A name that leads nowhere: the last part of a path, without control characters.
fn name(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last
        .chars()
        .filter(|character| !cellblock_interpreter::text::acts(*character))
        .take(NAME)
        .collect();
    match name.as_str() {
        "" | "." | ".." => "file".to_owned(),
        _ => name,
    }
}
