//! A session of the interpreter as a turn's runner.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_artifact::Store;
use cellblock_interpreter::render::{self, Block};
use cellblock_interpreter::{Blame, Cell, Error, Execution, Outcome, Retry, Session};
use futures_util::future::BoxFuture;

use super::runner::{Code, Ran, Runner};
use crate::wire::{InterpreterOutput, ItemStatus, Output, Part};

/// Tokens of text that a model reads of one execution's outputs, and of each stream.
const TOKENS: usize = 4000;

/// Runs code in a session: variables and files live from call to call, and from turn to turn.
#[derive(Clone, Debug)]
pub struct SessionRunner {
    container: String,
    session: Session,
    store: Store,
}

impl SessionRunner {
    /// The session behind a container; pictures are taken from the store that its interpreter puts them in.
    pub const fn new(container: String, session: Session, store: Store) -> Self {
        Self {
            container,
            session,
            store,
        }
    }

    async fn told(&self, execution: &Execution) -> Ran {
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
                Block::Image { image, .. } => match self.store.get(image.sha256).await {
                    Ok(bytes) => {
                        let url = format!("data:{};base64,{}", image.media_type, STANDARD.encode(&bytes));
                        outputs.push(InterpreterOutput::Image { url: url.clone() });
                        let detail = "auto".to_owned();
                        let (image_url, file_id) = (Some(url), None);
                        parts.push(Part::InputImage {
                            image_url,
                            file_id,
                            detail,
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
            }
        }
        let files: Vec<_> = execution
            .files
            .iter()
            .map(|file| format!("{} ({} bytes)", file.path, file.bytes))
            .collect();
        if !files.is_empty() {
            say(&mut parts, &mut outputs, format!("[files]\n{}", files.join("\n")));
        }
        for file in &execution.skipped_files {
            say(
                &mut parts,
                &mut outputs,
                format!("[file left out] {}: {}", file.path, file.reason),
            );
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
        Ran {
            status: status(&execution.outcome),
            outputs,
            result: Output::Parts(parts),
        }
    }
}

impl Runner for SessionRunner {
    fn container(&self) -> &str {
        &self.container
    }

    fn run(&self, code: Code) -> BoxFuture<'_, Ran> {
        Box::pin(async move {
            let cell = Cell::new(code.code).with_requirements(code.requirements);
            match self.session.execute(cell).await {
                Ok(execution) => self.told(&execution).await,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "run code of a model");
                    Ran::refused(words(&error))
                }
            }
        })
    }

    fn stop(&self) {
        self.session.interrupt();
    }
}

/// An error in words for the model. What is not the caller's to repair may name the host's paths, and stays in the log.
fn words(error: &Error) -> String {
    match (error.blame(), error.retry()) {
        (Blame::Caller, _) => format!("The code was not run: {error}."),
        (_, Retry::Never) => {
            "The code was not run: the sandbox failed, and trying again will not help.".to_owned()
        }
        _ => "The code was not run: no sandbox could be had. Try again, or answer without it.".to_owned(),
    }
}

/// The item's status; Python that raises has run to its end.
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
    fn only_what_the_caller_can_repair_is_told_in_its_own_words() {
        let name = "sales".to_owned();
        let reason = "it is no table".to_owned();
        assert_eq!(
            words(&Error::Input { name, reason }),
            "The code was not run: bind input `sales`: it is no table."
        );
        let spool = Error::Spool(std::io::Error::other("/var/lib/secret is full"));
        assert_eq!(
            words(&spool),
            "The code was not run: the sandbox failed, and trying again will not help."
        );
    }

    #[test]
    fn python_that_raises_has_run_to_its_end() {
        let reason = String::new();
        assert_eq!(status(&Outcome::Raised), ItemStatus::Completed);
        assert_eq!(status(&Outcome::Interrupted), ItemStatus::Incomplete);
        assert_eq!(status(&Outcome::KernelLost { reason }), ItemStatus::Incomplete);
        let rejections = Vec::new();
        assert_eq!(status(&Outcome::Rejected { rejections }), ItemStatus::Failed);
    }
}
