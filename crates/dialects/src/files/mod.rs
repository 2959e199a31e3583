//! Operations on files of a sandbox, which a program in it performs (`python/serve.py`).
//!
//! ```text
//! dialect ── operate("search.grep", …) ──> python3 -c serve.py ──> file system of the sandbox
//! ```
//!
//! Links and names are only resolved there. The program runs while a cell does, once for each request.
//! Its answer is an allegation, because code in the sandbox can give the same: callers pass it to the
//! owner of the sandbox, or read it as a record.

mod record;

use std::time::Duration;

use axum::http::StatusCode;
use cellblock_interpreter::Session;
use cellblock_interpreter::session::processes::AsideProgram;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fault::{DialectFault, DialectFaultKind};

pub(crate) use record::{FileKind, FileRecord, RecordList};

/// The program, which loads the modules of an operation.
const PROGRAM: &str = include_str!("../../python/serve.py");
/// Maximum duration of an operation, unless another is set.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum size of an answer; pictures have up to 10 MiB, and text up to 1 Mi characters, which
/// JSON may write with six bytes each.
const MAX_ANSWER: usize = 12 << 20;

macro_rules! modules {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("../../python/", $name, ".py")))),*] };
}

/// Modules of the program: the one that all others import, then those that operations are in.
const MODULES: [(&str, &str); 7] = modules!(
    "record", "change", "content", "measure", "search", "template", "watch"
);

/// Answer of the program to one call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileAnswer<T> {
    Ok(T),
    Error(FileRefusal),
}

/// Rejection of an operation: the name of the error number, such as `ENOENT`, with the reason.
#[derive(Debug, Deserialize)]
struct FileRefusal {
    code: String,
    reason: String,
    /// Path that the reason is about, unless the reason names it.
    path: Option<String>,
}

impl From<FileRefusal> for DialectFault {
    fn from(FileRefusal { code, reason, path }: FileRefusal) -> Self {
        let status = match &*code {
            "ENOENT" => StatusCode::NOT_FOUND,
            "EEXIST" => StatusCode::CONFLICT,
            "EACCES" | "EPERM" => StatusCode::FORBIDDEN,
            "EFBIG" => StatusCode::PAYLOAD_TOO_LARGE,
            "EILSEQ" => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "EDOM" => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_REQUEST,
        };
        let path = path.map(|path| format!(": {path}")).unwrap_or_default();
        let mut fault = Self::new(status, format!("{reason}{path}"));
        if status == StatusCode::NOT_FOUND {
            fault.kind = DialectFaultKind::NoFile;
        }
        fault
    }
}

/// Use of resources by a sandbox, as its programs see it.
#[derive(Debug, Deserialize)]
pub(crate) struct ResourceUsage {
    /// Time of the measurement, in seconds since 1970.
    pub(crate) ts: u64,
    pub(crate) cpu_count: u32,
    /// Percentage of one processor.
    pub(crate) cpu_used_pct: f64,
    pub(crate) mem_used: u64,
    pub(crate) disk_used: u64,
    pub(crate) disk_total: u64,
}

/// Measures a sandbox for a moment.
pub(crate) async fn measure(session: &Session) -> Result<ResourceUsage, DialectFault> {
    operate(session, "/workspace", "measure.usage", &json!({})).await
}

/// Performs an operation on files of a session, with paths as seen from a directory.
pub(crate) async fn operate<T: DeserializeOwned>(
    session: &Session,
    directory: &str,
    operation: &str,
    arguments: &impl Serialize,
) -> Result<T, DialectFault> {
    Ok(perform(session, directory, operation, arguments).await?.0)
}

/// Performs an operation that may take longer than others.
pub(crate) async fn operate_within<T: DeserializeOwned>(
    session: &Session,
    directory: &str,
    operation: &str,
    arguments: &impl Serialize,
    limit: Duration,
) -> Result<T, DialectFault> {
    let written = run(session, directory, operation, vec![json!(arguments)], limit).await?;
    Ok(split(operation, &written)?.0)
}

/// Performs an operation whose answer may have bytes after it.
pub(crate) async fn perform<T: DeserializeOwned>(
    session: &Session,
    directory: &str,
    operation: &str,
    arguments: &impl Serialize,
) -> Result<(T, Vec<u8>), DialectFault> {
    let written = run(session, directory, operation, vec![json!(arguments)], TIMEOUT).await?;
    let (answer, content) = split(operation, &written)?;
    Ok((answer, content.to_vec()))
}

/// Performs an operation with several arguments, one after another, until one fails.
pub(crate) async fn operate_each<T: DeserializeOwned>(
    session: &Session,
    operation: &str,
    calls: Vec<Value>,
) -> Result<Vec<T>, DialectFault> {
    let number = calls.len();
    let written = run(session, "/", operation, calls, TIMEOUT).await?;
    let mut rest = written.as_slice();
    let next = |_| {
        let (answer, after) = split(operation, rest)?;
        rest = after;
        Ok(answer)
    };
    (0..number).map(next).collect()
}

/// Runs the program, and returns what it wrote.
async fn run(
    session: &Session,
    directory: &str,
    operation: &str,
    calls: Vec<Value>,
    timeout: Duration,
) -> Result<Vec<u8>, DialectFault> {
    let needed = operation.split('.').next().unwrap_or_default();
    let modules = MODULES.into_iter().enumerate();
    let modules = modules.filter(|(index, (name, _))| *index == 0 || *name == needed);
    let modules = modules.flat_map(|(_, (name, source))| [name, source]);
    let command = ["python3", "-I", "-S", "-c", PROGRAM, operation].into_iter();
    let lines = calls.into_iter().flat_map(|mut call| {
        call["cwd"] = directory.into();
        [call.to_string(), "\n".to_owned()]
    });
    let program = AsideProgram {
        command: command.chain(modules).map(str::to_owned).collect(),
        input: lines.collect::<String>().into_bytes(),
        timeout,
        max_output: MAX_ANSWER,
    };
    Ok(session.processes().aside(program).await?)
}

/// Reads the first answer, and returns the bytes after it.
fn split<'a, T: DeserializeOwned>(operation: &str, written: &'a [u8]) -> Result<(T, &'a [u8]), DialectFault> {
    let end = written.iter().position(|byte| *byte == b'\n');
    let (line, rest) = written.split_at(end.unwrap_or(written.len()));
    match serde_json::from_slice(line) {
        Ok(FileAnswer::Ok(answer)) => Ok((answer, rest.get(1..).unwrap_or_default())),
        Ok(FileAnswer::Error(refusal)) => Err(refusal.into()),
        Err(error) => {
            tracing::warn!(%error, operation, "the program for files wrote an unexpected answer");
            let end = String::from_utf8_lossy(&written[written.len().saturating_sub(500)..]).into_owned();
            let detail = format!(
                "could not {operation}: the sandbox's Python failed: {}",
                end.trim()
            );
            Err(DialectFault::new(StatusCode::BAD_GATEWAY, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_one_after_another_until_one_is_an_error() {
        let written =
            b"{\"ok\": 1}\n{\"error\": {\"code\": \"ENOENT\", \"reason\": \"r\", \"path\": \"/p\"}}\n";
        let (first, rest) = split::<u32>("a.b", written).unwrap();
        assert_eq!(first, 1);
        let missing = split::<u32>("a.b", rest).unwrap_err();
        assert_eq!(
            (missing.status, &*missing.message),
            (StatusCode::NOT_FOUND, "r: /p")
        );
        let broken = split::<u32>("a.b", b"Traceback").unwrap_err();
        assert_eq!(broken.status, StatusCode::BAD_GATEWAY);
        let (_, content) = split::<Value>("a.b", b"{\"ok\": {}}\na\nb").unwrap();
        assert_eq!(content, b"a\nb");
    }
}
