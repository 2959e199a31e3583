//! Questions that a program inside the sandbox answers: what only the sandbox's own file system knows.

use std::time::Duration;

use cellblock_interpreter::Session;
use cellblock_interpreter::session::processes::{MAX_OUTPUT, ProcessOrder, ProcessSignal};
use serde_json::Value;

use super::error::Problem;

/// Answers one request, which is its argument, with one line of JSON.
const PROGRAM: &str = include_str!("tree.py");
/// Maximum time for an answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of an answer.
const MAX_ANSWER: usize = 8 << 20;

/// Asks the program. What it answers is what code of the sandbox wants to be known.
pub(super) async fn ask(session: &Session, request: &Value) -> Result<Value, Problem> {
    let command = ["python3", "-I", "-S", "-c", PROGRAM];
    let mut command = command.map(str::to_owned).to_vec();
    command.push(request.to_string());
    let order = ProcessOrder {
        command,
        ..ProcessOrder::default()
    };
    let processes = session.processes();
    let id = processes.start(order).await?.id;
    let read = tokio::time::timeout(LIMIT, output(session, &id)).await;
    let Ok(read) = read else {
        let _ = processes.signal(&id, ProcessSignal::KILL).await;
        let limit = LIMIT.as_secs();
        return Err(Problem::invalid(format!(
            "the request took longer than {limit} s in the sandbox; name fewer files"
        )));
    };
    let read = read?;
    let answer: Value = serde_json::from_slice(&read).map_err(|_| {
        let said: String = String::from_utf8_lossy(&read).chars().take(500).collect();
        Problem::internal(format!("the sandbox did not answer as expected: {said:?}"))
    })?;
    match (answer["error"].as_str(), answer["kind"].as_str()) {
        (None, _) => Ok(answer),
        (Some(error), Some("missing")) => Err(Problem::missing("FILE_NOT_FOUND", error)),
        (Some(error), _) => Err(Problem::invalid(error)),
    }
}

async fn output(session: &Session, id: &str) -> Result<Vec<u8>, Problem> {
    let mut all = Vec::new();
    let mut offset = 0;
    loop {
        let part = session.processes().output(id, offset, MAX_OUTPUT, LIMIT).await?;
        offset = part.next;
        all.extend(part.bytes);
        if all.len() > MAX_ANSWER {
            let _ = session.processes().signal(id, ProcessSignal::KILL).await;
            return Err(Problem::invalid("the answer is too large; name fewer files"));
        }
        if part.eof {
            return Ok(all);
        }
    }
}
