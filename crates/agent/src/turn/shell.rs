//! Commands of a shell in one of our containers, with their output as it comes.

use std::fmt::Write as _;
use std::time::Duration;

use cellblock_interpreter::render;
use cellblock_interpreter::text::counted;
use cellblock_interpreter::toolset::ToolsetTerms;
use cellblock_interpreter::toolset::shell::{
    self, CommandOutcome, CommandReport, SHELL, ShellArguments, ShellEvent, ShellReport, definition,
};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::builder::ResponseBuilder;
use super::call_result::CallResult;
use super::toolset::ToolsetCall;
use crate::wire::{
    CallReport, Function, FunctionOutput, ItemStatus, LocalSkill, ShellCall, ShellDelta, ShellOutput,
    ShellPlace, ShellSlot, line, numbered,
};

/// The location of files.
pub(super) const FILES: &str = "Files are in `/mnt/data`, which is another name of the current directory, \
                     `/workspace`: write a file there to hand it to the user, and link it in the answer \
                     as `[name](sandbox:/mnt/data/name)`.";

/// Maximum number of tokens of a call's outputs in the model's result.
const TOKENS: usize = 16_000;

/// Number of events that may wait. While nobody takes them, no more output of the command is read.
const EVENTS: usize = 16;

/// Progress of a call's commands.
pub(super) enum ShellMoment {
    Progress(ShellEvent),
    Ended(Box<CallResult>),
}

/// A running call, whose output is read as it comes.
struct RunningShell {
    run: Option<BoxFuture<'static, CallResult>>,
    ended: Option<CallResult>,
    events: mpsc::Receiver<ShellEvent>,
}

impl RunningShell {
    async fn next(&mut self) -> Option<ShellMoment> {
        loop {
            let Some(run) = &mut self.run else {
                // What was written comes before the end.
                let progress = self.events.try_recv().ok().map(ShellMoment::Progress);
                let ended = || self.ended.take().map(|ran| ShellMoment::Ended(Box::new(ran)));
                return progress.or_else(ended);
            };
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return Some(ShellMoment::Progress(event)),
                ran = run => {
                    self.run = None;
                    self.ended = Some(ran);
                }
            }
        }
    }
}

/// Runs a call, and returns its progress. Dropping this ends its commands.
pub(super) fn follow(
    mut call: ToolsetCall,
    run: impl FnOnce(ToolsetCall) -> BoxFuture<'static, CallResult>,
) -> impl Stream<Item = ShellMoment> + Send {
    let (listener, events) = mpsc::channel(EVENTS);
    call.terms.listener = Some(listener);
    let running = RunningShell {
        run: Some(run(call)),
        ended: None,
        events,
    };
    stream::unfold(running, |mut running| async move {
        let moment = running.next().await?;
        Some((moment, running))
    })
}

impl ToolsetCall {
    /// Creates the call that runs commands of a shell, each for at most `max_timeout`.
    pub fn commands(arguments: &ShellArguments, max_timeout: Duration) -> Self {
        Self {
            kind: shell::KIND,
            tool: SHELL.to_owned(),
            arguments: json!(arguments),
            terms: ToolsetTerms {
                max_timeout,
                ..ToolsetTerms::default()
            },
            lent: Vec::new(),
        }
    }

    /// Returns whether it runs commands of a shell.
    pub fn is_shell(&self) -> bool {
        self.kind == shell::KIND
    }
}

impl CallResult {
    /// Returns the result of commands, whose files have these paths and sizes.
    pub fn of_commands(ran: &ShellReport, files: &[(String, u64)]) -> Self {
        let texts: Vec<_> = ran.commands.iter().map(text).collect();
        let mut text = render::stream(&numbered(&texts), TOKENS);
        if !files.is_empty() {
            line(&mut text, "[files]");
            for (path, bytes) in files {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n{path} ({})", counted(*bytes, "byte"));
            }
        }
        for file in &ran.skipped_files {
            line(
                &mut text,
                &format!("[file left out] {}: {}", file.path, file.reason),
            );
        }
        Self {
            status: ItemStatus::Completed,
            outputs: Vec::new(),
            result: FunctionOutput::Text(text),
            made: Vec::new(),
            derivation: None,
            asks: None,
            report: CallReport {
                commands: ran.commands.iter().map(ShellOutput::from).collect(),
                ..CallReport::default()
            },
        }
    }
}

/// Returns the result of a command for the model.
fn text(report: &CommandReport) -> String {
    let mut text = ShellOutput::from(report).text();
    if report.left_out > 0 {
        let left_out = counted(report.left_out, "more character");
        line(
            &mut text,
            &format!("[about {left_out} of output left out at the end]"),
        );
    }
    if let CommandOutcome::TimedOut(milliseconds) = report.end {
        line(&mut text, &format!("[the timeout was {milliseconds} ms]"));
    }
    text
}

/// Reads the arguments of a call; the error is for the model.
pub(super) fn arguments(arguments: &str) -> Result<ShellArguments, String> {
    let read = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments are not JSON: {error}"))
        .and_then(|read: Value| ShellArguments::parse(&read));
    read.map_err(|problem| format!("The commands were not run: {problem}."))
}

/// Returns the tool for a model whose commands run in one of our containers.
pub(super) fn hosted(files: &str, network: Option<&str>, max_timeout: Duration) -> Function {
    let mut function = Function::from(definition(max_timeout));
    let about = function.description.unwrap_or_default();
    let network = network.map_or_else(String::new, |note| format!("{note} "));
    function.description = Some(format!("{about} {network}{FILES}{files}"));
    function
}

/// Returns the tool for a model whose commands run on the client's computer.
pub(super) fn local() -> Function {
    let mut function = Function::from(definition(Duration::from_hours(1)));
    function.description = Some(
        "Runs commands of a shell on the user's computer and returns the output and the exit code of each. \
         The user may have to approve them. Commands cannot ask questions."
            .to_owned(),
    );
    function
}

/// Returns the section of a prompt about the skills on the client's computer.
pub(super) fn skills(skills: &[LocalSkill]) -> Option<String> {
    if skills.is_empty() {
        return None;
    }
    let mut section = format!(
        "## Skills\n\nThese folders on the user's computer have instructions for certain tasks. Before you \
         do such a task, read the folder's `SKILL.md` with `{SHELL}`.\n"
    );
    for skill in skills {
        // Writing to a string cannot fail.
        let _ = write!(
            section,
            "\n- `{}` in `{}`: {}",
            skill.name, skill.path, skill.description
        );
    }
    Some(section)
}

impl ResponseBuilder<'_> {
    /// Writes the item of a call that is about to run in a container.
    pub(super) fn shell_call(
        &mut self,
        id: String,
        call_id: &str,
        container: &str,
        arguments: ShellArguments,
    ) -> ShellCall {
        let call = ShellCall {
            id,
            status: ItemStatus::Completed,
            call_id: call_id.to_owned(),
            action: arguments.into(),
            environment: Some(ShellPlace::ContainerReference {
                container_id: container.to_owned(),
            }),
        };
        self.draft.whole_shell_call(call.clone());
        call
    }

    /// Sends the progress of a command.
    pub(super) fn shell_progress(&mut self, slot: &mut ShellSlot, event: ShellEvent) {
        use cellblock_interpreter::session::processes::ProcessStream;

        match event {
            ShellEvent::Wrote {
                command,
                stream,
                text,
            } => {
                let delta = match stream {
                    ProcessStream::Stdout => ShellDelta {
                        stdout: Some(text),
                        stderr: None,
                    },
                    ProcessStream::Stderr => ShellDelta {
                        stdout: None,
                        stderr: Some(text),
                    },
                };
                self.draft.shell_wrote(slot, command, delta);
            }
            ShellEvent::Ended { command, report } => {
                let output = ShellOutput::from(&report);
                self.draft.end_shell_command(slot, command, output);
            }
        }
    }

    /// Ends the outputs of a call, and returns the result for the model.
    pub(super) fn end_shell(&mut self, slot: ShellSlot, ran: CallResult) -> FunctionOutput {
        let why = ran.result.text();
        self.draft.end_shell(slot, &ran.report.commands, &why);
        self.keep(ran.made, ran.derivation);
        ran.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_reads_what_was_cut_and_how_long_a_command_ran() {
        let report = CommandReport {
            stdout: "abc".to_owned(),
            stderr: String::new(),
            left_out: 2,
            end: CommandOutcome::TimedOut(1500),
        };
        assert_eq!(
            text(&report),
            "abc\n[timed out]\n[about 2 more characters of output left out at the end]\n\
             [the timeout was 1500 ms]"
        );
    }

    #[test]
    fn arguments_that_cannot_be_run_are_explained() {
        let wrong = arguments("{\"commands\": []}").unwrap_err();
        assert!(
            wrong.starts_with("The commands were not run: `commands`"),
            "{wrong}"
        );
        assert!(arguments("{").unwrap_err().contains("not JSON"));
        assert_eq!(arguments("{\"commands\": [\"ls\"]}").unwrap().commands, ["ls"]);
    }

    #[tokio::test]
    async fn what_was_written_comes_before_the_end() {
        use futures_util::StreamExt as _;

        let wrote = |text: &str| ShellEvent::Wrote {
            command: 0,
            stream: cellblock_interpreter::session::processes::ProcessStream::Stdout,
            text: text.to_owned(),
        };
        let arguments = arguments("{\"commands\": [\"ls\"]}").unwrap();
        let call = ToolsetCall::commands(&arguments, Duration::from_secs(1));
        let moments = follow(call, |call| {
            Box::pin(async move {
                let listener = call.terms.listener.unwrap();
                listener.send(wrote("a")).await.unwrap();
                tokio::task::yield_now().await;
                listener.send(wrote("b")).await.unwrap();
                CallResult::refused("end")
            })
        });
        let told: Vec<_> = moments
            .map(|moment| match moment {
                ShellMoment::Progress(ShellEvent::Wrote { text, .. }) => text,
                ShellMoment::Progress(ShellEvent::Ended { .. }) => "ended".to_owned(),
                ShellMoment::Ended(ran) => ran.result.text(),
            })
            .collect()
            .await;
        assert_eq!(told, ["a", "b", "end"]);
    }
}
