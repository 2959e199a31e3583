//! Operations on files, which a program in the sandbox does for us (`workspace.py`).
//!
//! It runs beside cells, so that files can be looked at while one runs. What it answers is what
//! code in that sandbox could say as well: it is passed on to those whose sandbox it is, and
//! otherwise only read as far as is needed.

use std::time::Duration;

use axum::http::StatusCode;
use cellblock_interpreter::Session;
use cellblock_interpreter::session::processes::AsideProgram;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fault::DialectFault;

/// The program.
const PROGRAM: &str = include_str!("workspace.py");
/// Maximum duration of an operation.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum size of an answer; pictures have up to 10 MiB, and text up to 1 Mi characters, which
/// JSON may write with six bytes each.
const MAX_ANSWER: usize = 12 << 20;

/// Answer of the program.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OperationAnswer {
    Ok(Value),
    Error { status: u16, detail: String },
}

/// Result of an operation: its answer, and bytes if it is a picture.
#[derive(Debug)]
pub(crate) struct OperationResult {
    pub(crate) answer: Value,
    pub(crate) content: Vec<u8>,
}

/// Does an operation on files of a session, with paths as seen from a directory.
pub(crate) async fn operate(
    session: &Session,
    directory: &str,
    operation: &str,
    arguments: &impl Serialize,
) -> Result<Value, DialectFault> {
    Ok(perform(session, directory, operation, arguments).await?.answer)
}

/// Does an operation whose answer may have bytes after it.
pub(crate) async fn perform(
    session: &Session,
    directory: &str,
    operation: &str,
    arguments: &impl Serialize,
) -> Result<OperationResult, DialectFault> {
    let asked = json!({"op": operation, "cwd": directory, "arguments": arguments});
    let program = AsideProgram {
        command: ["python3", "-I", "-S", "-c", PROGRAM].map(str::to_owned).to_vec(),
        input: asked.to_string().into_bytes(),
        timeout: TIMEOUT,
        max_output: MAX_ANSWER,
    };
    let written = session.processes().aside(program).await?;
    let end = written.iter().position(|byte| *byte == b'\n');
    let (line, content) = written.split_at(end.unwrap_or(written.len()));
    match serde_json::from_slice(line) {
        Ok(OperationAnswer::Ok(answer)) => Ok(OperationResult {
            answer,
            content: content.get(1..).unwrap_or_default().to_vec(),
        }),
        Ok(OperationAnswer::Error { status, detail }) => {
            let status = StatusCode::from_u16(status)
                .ok()
                .filter(StatusCode::is_client_error);
            Err(DialectFault::new(
                status.unwrap_or(StatusCode::BAD_REQUEST),
                detail,
            ))
        }
        Err(error) => {
            tracing::warn!(%error, operation, "the program that looks after files wrote something else");
            let end = String::from_utf8_lossy(&written[written.len().saturating_sub(500)..]).into_owned();
            let detail = format!(
                "could not {operation}: the sandbox's Python failed: {}",
                end.trim()
            );
            Err(DialectFault::new(StatusCode::BAD_GATEWAY, detail))
        }
    }
}
