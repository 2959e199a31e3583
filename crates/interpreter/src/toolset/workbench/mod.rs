//! The workbench: four tools over one session, for models that work with scripts and commands.
//!
//! `sandbox_write_file`, `sandbox_edit_file`, `sandbox_apply_patch` and `sandbox_exec` work on the sandbox
//! that the session's cells run in: they see the same files. Commands and cells take turns, in the order of
//! the requests; an interrupt of the session stops whichever runs. A rejection by a tool is a
//! result (`{"success": false, …}`) with which a model can repair its call; `Err` means that
//! Cellblock itself failed. See `docs/reference/workbench.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::error::Result;
use crate::execution::SkippedFile;
use crate::session::{Change, CommandOrder, CommandResult, EditError, EditRefused, RefusedFile, Session};
use crate::toolset::{ToolDefinition, ToolEvent, ToolResult, Toolset, ToolsetKind, Watch};

mod args;
mod exec;
mod hint;
mod outputs;
mod patch;
mod path;
mod prompt;
mod reply;
mod tools;

pub use crate::session::{ColumnType, DatasetMount, DatasetShape, DatasetSource, MountKind};
pub use args::{EditArgs, Encoding, ExecArgs, PatchArgs, WriteArgs};
pub use hint::{Hint, HintCode};
pub use reply::{
    EditResult, ExecResult, PatchChange, PatchResult, PatchedFile, Reply, WorkbenchRefusal, WriteResult,
};
pub(in crate::toolset) use tools::patch_definition;
pub use tools::{EDIT, EXEC, PATCH, WRITE};

use args::{MAX_CONTENT, MAX_TIMEOUT};
use path::{INVALID, normalise};
use prompt::DatasetSection;

/// Events that may wait for a listener; one that is slower misses the oldest.
const EVENTS: usize = 1024;

/// Options of a workbench.
#[derive(Clone, Debug)]
pub struct WorkbenchOptions {
    /// The host's folder for what commands leave in `/tmp/output`; made when there is something to
    /// put into it. Without one, files are in the artifact store alone.
    pub output_dir: Option<PathBuf>,
    /// Profile that the prompt requires of scripts.
    pub profile: Profile,
    /// The longest that a call may let a command run: 300 seconds by default. More is refused, and
    /// one that asks for nothing has no more.
    pub max_timeout: Duration,
}

impl Default for WorkbenchOptions {
    fn default() -> Self {
        Self {
            output_dir: None,
            profile: Profile::default(),
            max_timeout: MAX_TIMEOUT,
        }
    }
}

/// Profile that a prompt requires of scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Any library of the image.
    #[default]
    Default,
    /// Polars for tables; of the image's libraries also numpy, matplotlib, seaborn and scikit-learn.
    Polars,
}

/// The toolset `workbench`.
pub const KIND: ToolsetKind = ToolsetKind {
    name: "workbench",
    summary: "Run commands, write and edit files",
    about: "How to work with scripts and commands",
    prelude: &[],
    on_results: false,
    definitions: |terms| tools::definitions(terms.max_timeout),
    prompt: |terms| {
        prompt::prompt(
            terms.profile,
            terms.max_timeout,
            &DatasetSection::Promised(&terms.datasets),
        )
    },
    open: |_, session, terms| {
        let options = WorkbenchOptions {
            output_dir: terms.output_dir.clone(),
            profile: terms.profile,
            max_timeout: terms.max_timeout,
        };
        Box::pin(async move { Ok(Arc::new(Workbench::new(session, options)) as Arc<dyn Toolset>) })
    },
};

/// Four tools over one session. Clones share it.
#[derive(Clone, Debug)]
pub struct Workbench {
    shared: Arc<WorkbenchState>,
}

#[derive(Debug)]
struct WorkbenchState {
    session: Session,
    options: WorkbenchOptions,
    events: broadcast::Sender<ToolEvent>,
}

impl Workbench {
    /// Offers the tools over a session, whose sandbox is made by the first call that needs it.
    pub fn new(session: Session, options: WorkbenchOptions) -> Self {
        let (events, _) = broadcast::channel(EVENTS);
        Self {
            shared: Arc::new(WorkbenchState {
                session,
                options,
                events,
            }),
        }
    }

    /// Calls a tool by its name. What it refuses, a wrong call included, is `Ok({"success": false,
    /// "error", "hint", …})`.
    pub async fn call(&self, tool: &str, args: Value) -> Result<Value> {
        let wrong = |complaint: String| {
            json(Err::<(), _>(WorkbenchRefusal::new(
                complaint,
                Hint::invalid_call(tool),
            )))
        };
        // The arguments are dropped before the call: their texts are in what was read from them.
        match tool {
            EXEC => match ExecArgs::parse(&args, self.shared.options.max_timeout) {
                Ok(parsed) => {
                    drop(args);
                    json(self.exec(parsed).await?)
                }
                Err(complaint) => wrong(complaint),
            },
            WRITE => match WriteArgs::parse(&args) {
                Ok(parsed) => {
                    drop(args);
                    json(self.write_file(parsed).await?)
                }
                Err(complaint) => wrong(complaint),
            },
            EDIT => match EditArgs::parse(&args) {
                Ok(parsed) => {
                    drop(args);
                    json(self.edit_file(parsed).await?)
                }
                Err(complaint) => wrong(complaint),
            },
            PATCH => match PatchArgs::parse(&args) {
                Ok(parsed) => {
                    drop(args);
                    json(self.apply_patch(parsed).await?)
                }
                Err(complaint) => wrong(complaint),
            },
            unknown => {
                let name: String = unknown.chars().take(60).collect();
                let refusal = WorkbenchRefusal::new(
                    format!("there is no tool {name:?}"),
                    Hint::unknown_tool(&tools::NAMES),
                );
                json(Err::<(), _>(refusal))
            }
        }
    }

    /// Runs a command, and hands over what it leaves in `/tmp/output`.
    pub async fn exec(&self, args: ExecArgs) -> Result<Reply<ExecResult>> {
        let timeout = match args.check(self.shared.options.max_timeout) {
            Ok(timeout) => timeout,
            Err(complaint) => return Ok(Err(WorkbenchRefusal::new(complaint, Hint::invalid_call(EXEC)))),
        };
        let order = CommandOrder {
            argv: args.command,
            timeout,
            requirements: args.requirements,
            env: BTreeMap::new(),
            stream_bytes: exec::STREAM_BYTES,
            for_model: true,
            files: exec::FILES,
            listener: Some(Box::new(self.shared.events.clone())),
        };
        let executed = self.shared.session.command(order).await?;
        let (files, skipped) = self.hand_over(&executed).await?;
        let longest = self.shared.options.max_timeout;
        Ok(Ok(exec::result(executed, longest, skipped, files)))
    }

    /// Creates or overwrites a file.
    pub async fn write_file(&self, args: WriteArgs) -> Result<Reply<WriteResult>> {
        let named = args.file_path.clone();
        let path = match checked(&named) {
            Ok(path) => path,
            Err(refusal) => return Ok(Err(*refusal)),
        };
        let content = match args.bytes() {
            Ok(content) => content,
            Err(complaint) => {
                return Ok(Err(WorkbenchRefusal::of_file(
                    &named,
                    complaint,
                    Hint::invalid_call(WRITE),
                )));
            }
        };
        let bytes_written = content.len() as u64;
        Ok(
            match self.shared.session.replace_file(path.clone(), content).await? {
                Ok(()) => Ok(WriteResult {
                    success: true,
                    file_path: path,
                    bytes_written,
                    hint: Hint::written(),
                }),
                Err(refused) => Err(refusal_of_file(&named, "Write failed", &refused)),
            },
        )
    }

    /// Replaces one exact piece of text in a file.
    pub async fn edit_file(&self, args: EditArgs) -> Result<Reply<EditResult>> {
        let named = args.file_path;
        let path = match checked(&named) {
            Ok(path) => path,
            Err(refusal) => return Ok(Err(*refusal)),
        };
        let change = Change {
            old: args.old_string.into_bytes(),
            new: args.new_string.into_bytes(),
            limit: MAX_CONTENT,
        };
        // What no file can satisfy needs no sandbox.
        let edited = match change.check() {
            Ok(()) => self.shared.session.edit_file(path.clone(), change).await?,
            Err(error) => Err(EditRefused::Content(error)),
        };
        Ok(match edited {
            Ok(()) => Ok(EditResult {
                success: true,
                file_path: path,
                hint: Hint::edited(),
            }),
            Err(EditRefused::File(refused)) => {
                let action = if refused.code == "not_found" {
                    "Cannot read file"
                } else {
                    "Edit failed"
                };
                Err(refusal_of_file(&named, action, &refused))
            }
            Err(EditRefused::Content(error)) => Err(refusal_of_edit(&named, error)),
        })
    }

    /// Returns a receiver of the events from here on: output of commands as it comes, and pictures. A
    /// listener that falls behind misses events.
    pub fn events(&self) -> broadcast::Receiver<ToolEvent> {
        self.shared.events.subscribe()
    }

    /// Adds a file of the host as a dataset: see [`Session::add_dataset`].
    pub async fn add_dataset(&self, name: &str, source: DatasetSource) -> Result<DatasetMount> {
        self.shared.session.add_dataset(name.to_owned(), source).await
    }

    /// The section of a system prompt that tells a model of the tools, the session's datasets, and
    /// the constraints.
    pub fn prompt(&self) -> String {
        let options = &self.shared.options;
        prompt::prompt(
            options.profile,
            options.max_timeout,
            &DatasetSection::Mounted(&self.shared.session.datasets()),
        )
    }

    /// Ends the session, and completes when its sandbox is gone.
    pub async fn close(&self) -> Result<()> {
        self.shared.session.close().await
    }

    /// Copies new files into the host's folder and tells of pictures; answers the names, and what
    /// could not be copied.
    async fn hand_over(&self, executed: &CommandResult) -> Result<(Vec<String>, Vec<SkippedFile>)> {
        let (mut names, mut skipped) = (Vec::new(), Vec::new());
        for file in &executed.outputs.files {
            let path = match &self.shared.options.output_dir {
                None => PathBuf::from(&file.name),
                Some(folder) => match outputs::place(&executed.store, folder, file).await? {
                    Ok(path) => path,
                    Err(error) => {
                        tracing::warn!(
                            name = file.name,
                            error = &error as &dyn std::error::Error,
                            "could not hand over a file"
                        );
                        skipped.push(SkippedFile {
                            path: file.path.clone(),
                            reason: format!("the host could not keep it: {}", error.kind()),
                        });
                        continue;
                    }
                },
            };
            if let Some(event) = outputs::visualization(&executed.store, file, path).await? {
                // Nobody has to listen.
                let _ = self.shared.events.send(event);
            }
            names.push(file.name.clone());
        }
        Ok((names, skipped))
    }
}

impl Toolset for Workbench {
    fn definitions(&self) -> Vec<ToolDefinition> {
        tools::definitions(self.shared.options.max_timeout)
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
        watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>> {
        Box::pin(async move {
            let mut events = self.events();
            let mut called = std::pin::pin!(self.call(tool, arguments));
            // Heard as they come: the output of a command would push out the pictures, which come last.
            let result = loop {
                tokio::select! {
                    biased;
                    event = events.recv() => if let Ok(event) = event {
                        watch(event);
                    },
                    result = &mut called => break result?,
                }
            };
            while let Ok(event) = events.try_recv() {
                watch(event);
            }
            Ok(ToolResult::Json(result))
        })
    }

    fn prompt(&self) -> String {
        self.prompt()
    }
}

fn checked(named: &str) -> std::result::Result<String, Box<WorkbenchRefusal>> {
    normalise(named).map_err(|error| {
        // However long it was.
        let shown: String = named.chars().take(256).collect();
        Box::new(WorkbenchRefusal::of_file(&shown, error, Hint::invalid_path()))
    })
}

fn refusal_of_file(named: &str, action: &str, refused: &RefusedFile) -> WorkbenchRefusal {
    match refused.code.as_str() {
        // A link, wherever it leads.
        "symlink" | "path" | "name_too_long" => {
            WorkbenchRefusal::of_file(named, INVALID, Hint::invalid_path())
        }
        _ => WorkbenchRefusal::of_file(named, format!("{action}: {}", refused.reason), Hint::refused()),
    }
}

fn refusal_of_edit(named: &str, error: EditError) -> WorkbenchRefusal {
    let hint = match &error {
        EditError::NotFound => Hint::not_found(),
        EditError::NotUnique { .. } => Hint::not_unique(),
        EditError::Empty | EditError::Same => Hint::invalid_call(EDIT),
        EditError::Binary | EditError::TooLarge { .. } => Hint::refused(),
    };
    let refusal = WorkbenchRefusal::of_file(named, error.message(), hint);
    match error {
        EditError::NotUnique { count, lines } => WorkbenchRefusal {
            occurrences: Some(count),
            lines: Some(lines),
            ..refusal
        },
        _ => refusal,
    }
}

fn json<T: Serialize>(reply: Reply<T>) -> Result<Value> {
    let value = match reply {
        Ok(result) => serde_json::to_value(result),
        Err(refusal) => serde_json::to_value(refusal),
    };
    value.map_err(|error| crate::Error::Request(format!("write the answer as JSON: {error}")))
}
