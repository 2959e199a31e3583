//! The toolset of Anthropic's code execution beside Python: commands of bash, and a text editor, in
//! the session of the turn's code.

use std::sync::Arc;

use cellblock_agent::wire::{COMMANDS, anthropic};
use cellblock_interpreter::cell::{Cell, Language};
use cellblock_interpreter::error::{Blame, Result};
use cellblock_interpreter::json_error;
use cellblock_interpreter::toolset::workbench::{EditArgs, Encoding, Workbench, WorkbenchOptions, WriteArgs};
use cellblock_interpreter::toolset::{
    BoxFuture, ToolDefinition, ToolEffect, ToolResult, Toolset, ToolsetKind, Watch,
};
use cellblock_interpreter::{Error, Session};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::path;

/// Maximum number of bytes of a file that is shown.
const MAX_SHOWN: u64 = 1 << 20;
/// The most files of a folder that are listed.
const LISTED: u32 = 200;

const PROMPT: &str = "## Commands and files\n\n\
                      `bash_code_execution` runs a command of bash in a sandbox without a network; its \
                      shell, and files, are kept from call to call. `text_editor_code_execution` shows \
                      files (`view`), writes them (`create`) and replaces text in them (`str_replace`). \
                      The sandbox has Python and the usual Unix commands. Files are in `/mnt/data`, which \
                      is another name of the current directory, `/workspace`: write a file there with a \
                      command to hand it to the user.";

/// The toolset. No configuration names it: requests of the Messages API do.
pub(super) const KIND: ToolsetKind = ToolsetKind {
    name: COMMANDS,
    summary: "Run commands of bash, and show and edit files",
    about: "How to work with commands and files",
    prelude: &[],
    on_results: false,
    definitions: |_| definitions(),
    prompt: |_| PROMPT.to_owned(),
    open: |_, session, _| Box::pin(async { Ok(Arc::new(Commands { session }) as Arc<dyn Toolset>) }),
};

/// Commands and a text editor over one session.
#[derive(Debug)]
struct Commands {
    session: Session,
}

/// Arguments of the tool that runs commands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandArguments {
    command: String,
}

/// Arguments of the text editor.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
enum Edit {
    View {
        path: String,
        view_range: Option<(u64, i64)>,
    },
    Create {
        path: String,
        file_text: String,
    },
    StrReplace {
        path: String,
        old_str: String,
        #[serde(default)]
        new_str: String,
    },
}

/// Reason that a call did nothing, in words of the API and for the model.
struct CallRefusal {
    code: &'static str,
    message: String,
}

impl CallRefusal {
    fn input(message: impl Into<String>) -> Self {
        Self {
            code: "invalid_tool_input",
            message: message.into(),
        }
    }

    /// Takes an error that the model can repair; others are ours.
    fn of(error: Error) -> Result<Self> {
        let told = |code, message: &str| Self {
            code,
            message: message.to_owned(),
        };
        match error.refusal() {
            Some(("not_found", why)) => Ok(told("file_not_found", why)),
            Some((_, why)) => Ok(Self::input(why)),
            None if error.blame() == Blame::Caller => Ok(Self::input(error.to_string())),
            None => Err(error),
        }
    }

    fn told(self) -> Value {
        json!({"success": false, "error_code": self.code, "error_message": self.message})
    }
}

impl Toolset for Commands {
    fn definitions(&self) -> Vec<ToolDefinition> {
        definitions()
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
        _watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>> {
        Box::pin(async move {
            if tool == anthropic::BASH {
                return self.run(arguments).await;
            }
            let edited = match serde_json::from_value(arguments) {
                Ok(edit) => self.edit(edit).await?,
                Err(error) => Err(CallRefusal::input(json_error::describe(&error))),
            };
            Ok(ToolResult::Json(edited.unwrap_or_else(CallRefusal::told)))
        })
    }

    fn prompt(&self) -> String {
        PROMPT.to_owned()
    }
}

impl Commands {
    async fn run(&self, arguments: Value) -> Result<ToolResult> {
        let command = match serde_json::from_value(arguments) {
            Ok(CommandArguments { command }) if command.trim().is_empty() => {
                Err(CallRefusal::input("`command` is empty; send the command to run"))
            }
            Ok(CommandArguments { command }) => Ok(command),
            Err(error) => Err(CallRefusal::input(json_error::describe(&error))),
        };
        match command {
            Ok(code) => {
                let cell = Cell::new(code.clone()).in_language(Language::Bash);
                let execution = Box::new(self.session.execute(cell).await?);
                Ok(ToolResult::Cell { code, execution })
            }
            Err(refused) => Ok(ToolResult::Json(refused.told())),
        }
    }

    async fn edit(&self, edit: Edit) -> Result<std::result::Result<Value, CallRefusal>> {
        match edit {
            Edit::View { path, view_range } => self.view(&placed(&path), view_range).await,
            Edit::Create { path, file_text } => self.create(placed(&path), file_text).await,
            Edit::StrReplace {
                path,
                old_str,
                new_str,
            } => self.replace(placed(&path), old_str, new_str).await,
        }
    }

    async fn view(
        &self,
        path: &str,
        range: Option<(u64, i64)>,
    ) -> Result<std::result::Result<Value, CallRefusal>> {
        let text = match self.read(path).await? {
            Ok(text) => text,
            Err(refused) => return Ok(self.list(path).await.ok_or(refused)),
        };
        let lines: Vec<_> = text.lines().collect();
        let total = lines.len();
        let (start, end) = match range {
            None => (1, total),
            Some((start, end)) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                let end = usize::try_from(end).unwrap_or(total).min(total);
                if start == 0 || start > end {
                    let message = format!(
                        "`view_range` is not a range of the file's {total} lines; the first is 1, and -1 \
                         means the last"
                    );
                    return Ok(Err(CallRefusal::input(message)));
                }
                (start, end)
            }
        };
        let shown = &lines[start - 1..end];
        Ok(Ok(json!({
            "type": "text_editor_code_execution_view_result",
            "file_type": "text",
            "content": shown.join("\n"),
            "num_lines": shown.len(),
            "start_line": start,
            "total_lines": total,
        })))
    }

    /// Lists a folder, if there is one at the path that has files.
    async fn list(&self, path: &str) -> Option<Value> {
        let listing = self.session.list_files(path, LISTED).await.ok()?;
        let files: Vec<_> = listing.files.iter().map(|file| path::shown(&file.path)).collect();
        (!files.is_empty()).then(|| {
            json!({
                "type": "text_editor_code_execution_view_result",
                "file_type": "text",
                "content": files.join("\n"),
                "num_lines": files.len(),
                "start_line": 1,
                "total_lines": listing.total,
            })
        })
    }

    async fn create(&self, path: String, content: String) -> Result<std::result::Result<Value, CallRefusal>> {
        let is_file_update = self.session.open_file(path.clone()).await.is_ok();
        let workbench = self.workbench();
        let written = workbench.write_file(WriteArgs {
            file_path: path,
            content,
            encoding: Encoding::Text,
            reasoning_trace: None,
        });
        Ok(match written.await? {
            Ok(_) => Ok(
                json!({"type": "text_editor_code_execution_create_result", "is_file_update": is_file_update}),
            ),
            Err(refusal) => Err(CallRefusal::input(refusal.error)),
        })
    }

    async fn replace(
        &self,
        path: String,
        old: String,
        new: String,
    ) -> Result<std::result::Result<Value, CallRefusal>> {
        let before = match self.read(&path).await? {
            Ok(before) => before,
            Err(refused) => return Ok(Err(refused)),
        };
        let (removed, added) = (lines(&old), lines(&new));
        let start = before
            .find(&old)
            .map_or(1, |at| before[..at].matches('\n').count() + 1);
        let workbench = self.workbench();
        let edited = workbench.edit_file(EditArgs {
            file_path: path,
            old_string: old,
            new_string: new,
            reasoning_trace: None,
        });
        Ok(match edited.await? {
            Ok(_) => {
                let minus = removed.iter().map(|line| format!("-{line}"));
                let plus = added.iter().map(|line| format!("+{line}"));
                Ok(json!({
                    "type": "text_editor_code_execution_str_replace_result",
                    "old_start": start,
                    "old_lines": removed.len(),
                    "new_start": start,
                    "new_lines": added.len(),
                    "lines": minus.chain(plus).collect::<Vec<_>>(),
                }))
            }
            Err(refusal) => Err(CallRefusal::input(format!(
                "{}: {}",
                refusal.error, refusal.hint.message
            ))),
        })
    }

    async fn read(&self, path: &str) -> Result<std::result::Result<String, CallRefusal>> {
        let bytes = match self.session.read_file_within(path, MAX_SHOWN).await {
            Ok(bytes) => bytes,
            Err(error) => return CallRefusal::of(error).map(Err),
        };
        Ok(String::from_utf8(bytes)
            .map_err(|_| CallRefusal::input(format!("`{}` is not text in UTF-8", path::shown(path)))))
    }

    fn workbench(&self) -> Workbench {
        Workbench::new(self.session.clone(), WorkbenchOptions::default())
    }
}

/// Returns a path in the sandbox; others are relative to where code runs.
fn placed(path: &str) -> String {
    if path.starts_with('/') {
        path::inside(path)
    } else {
        format!("/workspace/{path}")
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn definitions() -> Vec<ToolDefinition> {
    vec![
        ToolDefinition::new(
            anthropic::BASH,
            "Run a command",
            "Runs a command of bash in the sandbox, and returns what it prints and its exit code. The \
             shell is kept from call to call. New and changed files in /mnt/data are handed to the user.",
            json!({
                "type": "object",
                "properties": {"command": {"type": "string", "description": "The command to run."}},
                "required": ["command"],
                "additionalProperties": false,
            }),
            ToolEffect::Changes,
        ),
        ToolDefinition::new(
            anthropic::EDITOR,
            "Show and edit files",
            "Shows a file or a folder (`view`), writes a file (`create`, with `file_text`), or replaces \
             an exact piece of text that is in a file once (`str_replace`, with `old_str` and `new_str`).",
            json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "enum": ["view", "create", "str_replace"]},
                    "path": {"type": "string", "description": "The file, such as /mnt/data/report.md."},
                    "file_text": {"type": "string", "description": "With `create`: the whole content."},
                    "old_str": {"type": "string",
                        "description": "With `str_replace`: the exact text to replace."},
                    "new_str": {"type": "string",
                        "description": "With `str_replace`: the text to put in its place."},
                    "view_range": {
                        "type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2,
                        "description": "With `view`: the first and the last line, from 1; -1 means the end.",
                    },
                },
                "required": ["command", "path"],
                "additionalProperties": false,
            }),
            ToolEffect::Changes,
        ),
    ]
}
