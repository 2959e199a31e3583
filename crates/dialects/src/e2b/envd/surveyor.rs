//! A program in the sandbox that knows its directories. It is started by the first question, and
//! again if code has ended it.

use std::time::Duration;

use cellblock_interpreter::Error;
use cellblock_interpreter::session::processes::{MAX_OUTPUT, ProcessOrder, Processes};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::super::sandbox::HeldSandbox;
use super::connect::{Fault, RpcResult};

/// The program.
const PROGRAM: &str = include_str!("surveyor.py");
/// Maximum time for an answer. A tree that takes longer to walk is too large to be answered.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of an answer. The program's own are shorter; these are what code can make of it.
const MOST: usize = 1 << 20;
/// Pause after an answer without output, which comes early if too many requests wait.
const PAUSE: Duration = Duration::from_millis(5);

/// The program of a sandbox. Questions take turns.
#[derive(Debug, Default)]
pub(super) struct Surveyor(Mutex<Option<SurveyorProgram>>);

#[derive(Debug)]
struct SurveyorProgram {
    /// Its id among the session's processes.
    id: String,
    /// Number of bytes of its output that have been read.
    read: u64,
    /// Number of the last question.
    last: u64,
}

impl Surveyor {
    /// Asks a question.
    pub(super) async fn ask(&self, held: &HeldSandbox, question: &Value) -> RpcResult<Value> {
        let processes = held.session.processes();
        let mut program = self.0.lock().await;
        if let Some(running) = &mut *program {
            match running.ask(processes, question.clone()).await {
                Ok(answer) => return read(answer),
                Err(SurveyFailure::Late) => {
                    // Its answer would be taken for that of the next question.
                    running.end(processes).await;
                    *program = None;
                    return Err(late());
                }
                Err(SurveyFailure::Gone(_)) => *program = None,
            }
        }
        let running = program.insert(SurveyorProgram::start(processes).await?);
        match running.ask(processes, question.clone()).await {
            Ok(answer) => read(answer),
            Err(ended) => {
                running.end(processes).await;
                *program = None;
                match ended {
                    SurveyFailure::Late => Err(late()),
                    SurveyFailure::Gone(reason) => Err(Fault::new("internal", reason)),
                }
            }
        }
    }
}

/// Reason that there is no answer.
enum SurveyFailure {
    Late,
    Gone(String),
}

impl From<Error> for SurveyFailure {
    fn from(error: Error) -> Self {
        Self::Gone(error.to_string())
    }
}

impl SurveyorProgram {
    async fn start(processes: Processes<'_>) -> RpcResult<Self> {
        let order = ProcessOrder {
            command: ["python3", "-I", "-S", "-c", PROGRAM].map(str::to_owned).to_vec(),
            stdin: true,
            directory: Some("/".to_owned()),
            ..ProcessOrder::default()
        };
        let started = processes.start(order).await?;
        Ok(Self {
            id: started.id,
            read: 0,
            last: 0,
        })
    }

    async fn ask(&mut self, processes: Processes<'_>, mut question: Value) -> Result<Value, SurveyFailure> {
        self.last += 1;
        question["number"] = json!(self.last);
        let line = format!("{question}\n");
        processes.input(&self.id, line.as_bytes(), false).await?;
        let until = Instant::now() + PATIENCE;
        let mut line = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(SurveyFailure::Late);
            }
            let part = processes.output(&self.id, self.read, MAX_OUTPUT, left);
            let part = timeout(PATIENCE, part).await.map_err(|_| SurveyFailure::Late)??;
            self.read = part.next;
            if part.lost > 0 {
                return Err(SurveyFailure::Gone(
                    "an answer of the sandbox was lost".to_owned(),
                ));
            }
            if part.bytes.is_empty() {
                if part.eof {
                    let report = processes.wait(&self.id, Duration::ZERO).await?;
                    let end = report.state_in_words();
                    let text = String::from_utf8_lossy(&line);
                    return Err(SurveyFailure::Gone(format!(
                        "the sandbox's surveyor {end}: {}",
                        text.trim()
                    )));
                }
                tokio::time::sleep(PAUSE).await;
            }
            line.extend(part.bytes);
            if line.len() > MOST {
                return Err(SurveyFailure::Gone(
                    "an answer of the sandbox is too long".to_owned(),
                ));
            }
            if line.last() == Some(&b'\n') {
                let answer: Value = serde_json::from_slice(&line)
                    .map_err(|_| SurveyFailure::Gone("an answer of the sandbox is not JSON".to_owned()))?;
                if answer["number"] == json!(self.last) {
                    return Ok(answer);
                }
                return Err(SurveyFailure::Gone(
                    "an answer of the sandbox is for another question".to_owned(),
                ));
            }
        }
    }

    async fn end(&self, processes: Processes<'_>) {
        use cellblock_interpreter::session::processes::ProcessSignal;

        // It may have ended.
        let _ = processes.signal(&self.id, ProcessSignal::KILL).await;
    }
}

fn late() -> Fault {
    Fault::new("deadline_exceeded", "the sandbox did not answer in time")
}

/// Codes that an answer may have.
const CODES: [&str; 5] = [
    "not_found",
    "already_exists",
    "invalid_argument",
    "permission_denied",
    "internal",
];

fn read(mut answer: Value) -> RpcResult<Value> {
    if let Some(done) = answer.get_mut("done") {
        return Ok(done.take());
    }
    let text = |at: usize| answer["error"][at].as_str().unwrap_or("failed").to_owned();
    let said = text(0);
    let code = CODES.into_iter().find(|code| *code == said).unwrap_or("internal");
    Err(Fault::new(code, text(1)))
}
