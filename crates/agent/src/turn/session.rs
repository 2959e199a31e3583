//! A session of the interpreter as a turn's runner.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_artifact::{ArtifactId, Store};
use cellblock_interpreter::connector::fetch_log;
use cellblock_interpreter::error::{Blame, Retry};
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::render::{self, Block};
use cellblock_interpreter::text::counted;
use cellblock_interpreter::toolset::ToolResult;
use cellblock_interpreter::{Error, Execution, Interpreter, Session};
use futures_util::future::BoxFuture;

use super::call_result::{CallResult, TOKENS};
use super::derived::DerivationOutcome;
use super::ran_report::report;
use super::runner::{CallSandbox, Runner};
use super::toolset::ToolsetCall;
use crate::wire::{FunctionOutput, InterpreterOutput, ItemStatus, Part};

/// Maximum number of tokens of the calls of connectors in the model's result.
const FETCH_TOKENS: usize = 500;

/// Runs code in a session: variables and files persist between calls and between turns.
#[derive(Clone, Debug)]
pub struct SessionRunner {
    container: String,
    session: Session,
    interpreter: Interpreter,
}

impl SessionRunner {
    /// Wraps the session of a container; pictures are read from the artifact store of its
    /// interpreter.
    pub const fn new(container: String, session: Session, interpreter: Interpreter) -> Self {
        Self {
            container,
            session,
            interpreter,
        }
    }
}

impl Runner for SessionRunner {
    fn place(&self, _before: usize) -> BoxFuture<'_, Arc<dyn CallSandbox>> {
        let place: Arc<dyn CallSandbox> = Arc::new(self.clone());
        Box::pin(async move { place })
    }
}

/// Interrupts a running execution when dropped.
struct Interrupt<'a>(Option<&'a Session>);

impl Drop for Interrupt<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.interrupt();
        }
    }
}

impl CallSandbox for SessionRunner {
    fn container(&self) -> &str {
        &self.container
    }

    fn run(&self, call: ToolsetCall) -> BoxFuture<'_, CallResult> {
        Box::pin(async move {
            let mut interrupt = Interrupt(Some(&self.session));
            let (session, requirements) = (self.session.clone(), call.requirements());
            let called = call.over(&self.interpreter, session, &mut |_| {}).await;
            interrupt.0 = None;
            match called {
                Ok(ToolResult::Cell { execution, .. }) => {
                    let files = execution.files.iter();
                    let shown = ExecutionView {
                        files: files.map(|file| (file.path.clone(), file.bytes)).collect(),
                        ..ExecutionView::default()
                    };
                    tell(&execution, self.interpreter.store(), &shown).await
                }
                Ok(ToolResult::Rehearsed { code, rehearsal }) => {
                    let shown = ExecutionView::default();
                    let ran = tell(&rehearsal.execution, self.interpreter.store(), &shown).await;
                    ran.of_rehearsal(&code, &requirements, &rehearsal)
                }
                Ok(ToolResult::Derived(mut derived)) => {
                    let derivation = DerivationOutcome::of(&mut derived, TOKENS);
                    CallResult {
                        status: status(&derived.outcome),
                        derivation: Some(derivation.clone()),
                        ..CallResult::refused(derivation.told.text)
                    }
                }
                Ok(ToolResult::Commands(ran)) => {
                    let files: Vec<_> = ran
                        .files
                        .iter()
                        .map(|file| (file.path.clone(), file.bytes))
                        .collect();
                    CallResult::of_commands(&ran, &files)
                }
                Ok(ToolResult::Json(result)) => CallResult::json(&result),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "run code of a model");
                    failed(&error)
                }
            }
        })
    }
}

/// Presentation of an execution.
#[derive(Debug, Default)]
pub struct ExecutionView {
    /// Files with their sizes in bytes, as models and users know them.
    pub files: Vec<(String, u64)>,
    /// URLs of pictures that are too large to be embedded.
    pub links: HashMap<ArtifactId, String>,
}

/// Returns an execution's outputs for a client and for a model.
pub async fn tell(execution: &Execution, store: &Store, shown: &ExecutionView) -> CallResult {
    let mut parts = Vec::new();
    let mut outputs = Vec::new();
    let (stdout, stderr) = (&execution.stdout.text, &execution.stderr.text);
    if !stdout.is_empty() {
        say(&mut parts, &mut outputs, render::stream(stdout, TOKENS));
    }
    if !stderr.is_empty() {
        let shown = render::stream(stderr, TOKENS);
        say(&mut parts, &mut outputs, format!("[stderr]\n{shown}"));
    }
    for block in render::to_model(&execution.outputs, TOKENS) {
        match block {
            Block::Text { text } => say(&mut parts, &mut outputs, text),
            Block::Image { image, .. } => match (shown.links.get(&image.sha256), store.get(image.sha256)) {
                (Some(url), _) => {
                    outputs.push(InterpreterOutput::Image { url: url.clone() });
                    let text = format!(
                        "(a picture of {} bytes, which the user sees and which is too large for you)",
                        image.bytes
                    );
                    parts.push(Part::InputText { text });
                }
                (None, bytes) => match bytes.await {
                    Ok(bytes) => {
                        let url = format!("data:{};base64,{}", image.media_type, STANDARD.encode(&bytes));
                        outputs.push(InterpreterOutput::Image { url: url.clone() });
                        parts.push(Part::InputImage {
                            image_url: Some(url),
                            file_id: None,
                            detail: "auto".to_owned(),
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "read a picture of an execution");
                        say(
                            &mut parts,
                            &mut outputs,
                            "(a picture could not be read)".to_owned(),
                        );
                    }
                },
            },
        }
    }
    let fetched = fetch_log(&execution.fetches, execution.fetches_dropped, FETCH_TOKENS);
    if !fetched.is_empty() {
        // Only for the model: clients read the calls in `/v1/sessions`.
        parts.push(Part::InputText { text: fetched });
    }
    let files: Vec<_> = shown
        .files
        .iter()
        .map(|(path, bytes)| format!("{path} ({})", counted(*bytes, "byte")))
        .collect();
    if !files.is_empty() {
        say(&mut parts, &mut outputs, format!("[files]\n{}", files.join("\n")));
    }
    for file in &execution.skipped_files {
        let text = format!("[file left out] {}: {}", file.path, file.reason);
        say(&mut parts, &mut outputs, text);
    }
    if let Some(note) = &execution.note {
        say(&mut parts, &mut outputs, note.clone());
    }
    if let Outcome::Rejected { rejections } = &execution.outcome {
        for rejection in rejections {
            say(&mut parts, &mut outputs, rejection.message.clone());
        }
    }
    if parts.is_empty() {
        parts.push(Part::InputText {
            text: "(no output)".to_owned(),
        });
    }
    // Only for the model: clients read the item's status.
    parts.push(Part::InputText {
        text: format!("[exit code] {}", execution.outcome.exit_code()),
    });
    CallResult {
        status: status(&execution.outcome),
        outputs,
        result: FunctionOutput::Parts(parts),
        made: Vec::new(),
        derivation: None,
        report: report(execution),
        asks: None,
    }
}

/// Returns the result of code whose execution failed here, rather than in Python.
pub fn failed(error: &Error) -> CallResult {
    CallResult::refused(words(error))
}

/// Returns an error in words for the model. Errors that the caller cannot repair may contain paths
/// of the host, and are only logged.
fn words(error: &Error) -> String {
    if error.is_disk_full() {
        return "The code was not run: the server's disk is full. Trying again will not help until there \
                is space on it; tell the user."
            .to_owned();
    }
    match (error.blame(), error.retry()) {
        (Blame::Caller, _) => match error {
            Error::Input { name, reason } => {
                format!("The code was not run: the input `{name}` could not be bound: {reason}.")
            }
            error => format!("The code was not run: {error}."),
        },
        (_, Retry::Never) => {
            "The code was not run: the sandbox failed, and trying again will not help.".to_owned()
        }
        _ => "The code was not run: no sandbox was available. Try again, or answer without it.".to_owned(),
    }
}

/// Returns the item's status; Python that raises has completed.
const fn status(outcome: &Outcome) -> ItemStatus {
    match outcome {
        Outcome::Completed | Outcome::Raised => ItemStatus::Completed,
        Outcome::Interrupted | Outcome::KernelLost { .. } | Outcome::LimitExceeded(_) => {
            ItemStatus::Incomplete
        }
        Outcome::Rejected { .. } => ItemStatus::Failed,
    }
}

fn say(parts: &mut Vec<Part>, outputs: &mut Vec<InterpreterOutput>, text: String) {
    outputs.push(InterpreterOutput::Logs { logs: text.clone() });
    parts.push(Part::InputText { text });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repairable_errors_are_reported_in_their_own_words() {
        let name = "sales".to_owned();
        let reason = "it is not a table".to_owned();
        assert_eq!(
            words(&Error::Input { name, reason }),
            "The code was not run: the input `sales` could not be bound: it is not a table."
        );
        let clients = Error::Clients {
            image: "/var/lib/secret".to_owned(),
            found: String::new(),
        };
        assert_eq!(
            words(&clients),
            "The code was not run: the sandbox failed, and trying again will not help."
        );
    }

    #[test]
    fn a_full_disk_is_reported_without_paths_of_the_host() {
        let full = std::io::Error::new(std::io::ErrorKind::StorageFull, "/var/lib/secret is full");
        let ran = failed(&Error::Spool(full));
        assert_eq!(ran.status, ItemStatus::Failed);
        let FunctionOutput::Text(text) = ran.result else {
            panic!("one text: {:?}", ran.result)
        };
        assert!(
            text.starts_with("The code was not run: the server's disk is full."),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn python_that_raises_has_completed() {
        let reason = String::new();
        assert_eq!(status(&Outcome::Raised), ItemStatus::Completed);
        assert_eq!(status(&Outcome::Interrupted), ItemStatus::Incomplete);
        assert_eq!(status(&Outcome::KernelLost { reason }), ItemStatus::Incomplete);
        let rejections = Vec::new();
        assert_eq!(status(&Outcome::Rejected { rejections }), ItemStatus::Failed);
    }
}
