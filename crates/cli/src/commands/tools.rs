//! `cellblock tools`: what a model is offered, and calls of it from a shell.

use std::fmt::Write as _;
use std::io::{IsTerminal, Read};

use cellblock_image::Home;
use cellblock_interpreter::derivation::tools::RENDER_CHART;
use cellblock_interpreter::toolset::{ToolDefinition, ToolsetKind, ToolsetTerms};
use serde_json::{Value, json};

use crate::args::tools::{self, CallArgs, ToolsCommand};
use crate::cancel::Cancel;
use crate::error::{self, Error, Result};
use crate::exit_code::ExitCode;
use crate::render::json::print;
use crate::render::{FAINT, STRONG, Screen, outcome, styled};
use crate::sanitize;
use crate::session::client::{HostExchange, HostMessage, unexpected};
use crate::session::place::Places;
use crate::session::wire::{HostAnswer, HostCommand};

/// Does it, prints, and says how it ended.
pub(crate) async fn run(command: ToolsCommand) -> ExitCode {
    let done = match command {
        ToolsCommand::List { toolset, json } => {
            list(toolset, json);
            Ok(ExitCode::Success)
        }
        ToolsCommand::Call(args) => call(args).await,
    };
    done.unwrap_or_else(|error| {
        error::tell(&error);
        error.exit_code()
    })
}

/// A tool, and the name of its toolset.
type ToolEntry = (&'static str, ToolDefinition);

fn list(toolset: Option<ToolsetKind>, json: bool) {
    let tools = listed(tools::listed(), toolset);
    if json {
        let tools: Vec<_> = tools
            .into_iter()
            .map(|(toolset, tool)| {
                json!({
                    "toolset": toolset,
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.input_schema,
                    "output_schema": tool.output_schema,
                })
            })
            .collect();
        print(&json!({ "tools": tools }));
        return;
    }
    Screen::new().show(&table(&tools));
}

/// The tools for a person: two lines each, without their schemas.
fn table(tools: &[ToolEntry]) -> String {
    let widest = |text: fn(&ToolEntry) -> &str| tools.iter().map(|tool| text(tool).len()).max().unwrap_or(0);
    let (names, toolsets) = (widest(|(_, tool)| &tool.name), widest(|(toolset, _)| toolset));
    let mut text = String::new();
    for (toolset, tool) in tools {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}  {}  {}\n    {}",
            styled(STRONG, &format!("{:names$}", tool.name)),
            styled(FAINT, &format!("{toolset:toolsets$}")),
            arguments_of(&json!(tool.input_schema)),
            first_sentence(&tool.description),
        );
    }
    text + "\nArguments in brackets are optional. `cellblock tools list --json` prints the JSON Schemas \
            of arguments and results."
}

/// The names of a tool's arguments, those that it needs first and the others in brackets.
pub(super) fn arguments_of(schema: &Value) -> String {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = schema["properties"].as_object().into_iter().flatten();
    let (needed, optional): (Vec<_>, Vec<_>) = names
        .map(|(name, _)| name.as_str())
        .partition(|name| required.iter().any(|it| it == name));
    let needed = needed.into_iter().map(str::to_owned);
    let optional = optional.into_iter().map(|name| format!("[{name}]"));
    needed.chain(optional).collect::<Vec<_>>().join(" ")
}

fn first_sentence(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.split_once(". ")
        .map_or(line, |(first, _)| first)
        .trim_end_matches('.')
}

fn listed(toolsets: impl Iterator<Item = ToolsetKind>, toolset: Option<ToolsetKind>) -> Vec<ToolEntry> {
    let terms = ToolsetTerms::default();
    let wanted = toolsets.filter(|kind| toolset.is_none_or(|wanted| wanted == *kind));
    let tools = wanted.flat_map(|kind| {
        let definitions = (kind.definitions)(&terms).into_iter();
        definitions.map(move |tool| (kind.name, tool))
    });
    // The chart tool draws from a session's results, which no session of the command line records.
    tools.filter(|(_, tool)| tool.name != RENDER_CHART).collect()
}

async fn call(args: CallArgs) -> Result<ExitCode> {
    let arguments = arguments(&args.arguments)?;
    let place = Places::of(&Home::find()?)?.open(&args.session)?;
    let ask = HostCommand::Call {
        tool: args.tool,
        arguments,
        watch: args.watch,
    };
    let mut cancel = Cancel::listen()?;
    let result = cancel.unless(answered(&place, &ask)).await?;
    print(&result);
    Ok(code_of(&result))
}

/// The result of the call. What commands write meanwhile is shown on stderr, if it was asked for.
async fn answered(place: &crate::session::place::SessionPlace, ask: &HostCommand) -> Result<Value> {
    let mut asked = HostExchange::ask(place, ask).await?;
    let mut screen = Screen::new();
    loop {
        match asked.next().await? {
            HostMessage::Stdout(bytes) | HostMessage::Stderr(bytes) => screen.sandbox_stderr(&bytes),
            HostMessage::HostAnswer(HostAnswer::Visualization { path, media_type }) => {
                let path = sanitize::line(&path.to_string_lossy());
                screen.tell(&outcome::note(&format!("picture ({media_type}): {path}")));
            }
            HostMessage::HostAnswer(HostAnswer::Result { result }) => {
                // A line that was not ended is, so that what follows it stands alone.
                screen.end_cell();
                return Ok(result);
            }
            HostMessage::HostAnswer(other) => return Err(unexpected(&other)),
        }
    }
}

/// Returns the exit code for a result, for scripts.
fn code_of(result: &Value) -> ExitCode {
    if result["success"] == false {
        return ExitCode::Refused;
    }
    if result["timed_out"] == true {
        return ExitCode::Interrupted;
    }
    match result.get("exit_code").and_then(Value::as_i64) {
        None | Some(0) => ExitCode::Success,
        Some(_) => ExitCode::Raised,
    }
}

fn arguments(given: &str) -> Result<Value> {
    let (text, origin) = match given.strip_prefix('@') {
        Some(path) => {
            let read = std::fs::read_to_string(path).map_err(Error::user_file("read", path))?;
            (read, format!("`{path}`"))
        }
        None if given == "-" => {
            let mut read = String::new();
            let stdin = std::io::stdin();
            if stdin.is_terminal() {
                Screen::new().tell(&outcome::note(
                    "reading the arguments from the terminal; Ctrl-D ends them",
                ));
            }
            stdin
                .lock()
                .read_to_string(&mut read)
                .map_err(Error::user_file("read", "<stdin>"))?;
            (read, "stdin".to_owned())
        }
        None => (given.to_owned(), "`--args`".to_owned()),
    };
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        Error::Refused(format!(
            "{origin} is not JSON: {error}; write an object such as {{\"command\": [\"ls\"]}}"
        ))
    })?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Error::Refused(format!(
            "{origin} is JSON but no object; write one such as {{\"command\": [\"ls\"]}}"
        )))
    }
}

#[cfg(test)]
#[path = "../../../mcp/tests/it/greeter.rs"]
mod greeter;

#[cfg(test)]
mod tests {
    use cellblock_interpreter::{derivation, workbench};

    use super::*;

    #[test]
    fn a_result_has_the_code_that_the_help_says() {
        for (result, code) in [
            (json!({"success": true}), 0),
            (json!({"exit_code": 0, "timed_out": false}), 0),
            (json!({"exit_code": 3, "timed_out": false}), 1),
            (json!({"exit_code": 124, "timed_out": false}), 1),
            (json!({"exit_code": 124, "timed_out": true}), 124),
            (json!({"success": false, "error": "no"}), 2),
        ] {
            assert_eq!(code_of(&result) as u8, code, "{result}");
        }
    }

    #[test]
    fn arguments_are_an_object() {
        assert_eq!(arguments("{\"a\": 1}").unwrap(), json!({"a": 1}));
        let told = |given: &str| arguments(given).unwrap_err().to_string();
        assert_eq!(
            told("[1]"),
            "`--args` is JSON but no object; write one such as {\"command\": [\"ls\"]}"
        );
        assert!(
            told("{command}").starts_with("`--args` is not JSON: key must be a string at line 1 column 2; ")
        );
        assert_eq!(told("@/nonexistent/args.json"), "read `/nonexistent/args.json`");
    }

    #[test]
    fn every_toolset_is_listed_alone_and_with_the_others() {
        let kinds = || tools::listed().chain([greeter::KIND]);
        let names = |toolset| -> Vec<_> {
            listed(kinds(), toolset)
                .into_iter()
                .map(|(_, tool)| tool.name)
                .collect()
        };
        let workbench = [
            "sandbox_exec",
            "sandbox_write_file",
            "sandbox_edit_file",
            "sandbox_apply_patch",
        ];
        let derivation = ["code_interpreter"];
        assert_eq!(names(Some(workbench::KIND)), workbench);
        assert_eq!(names(Some(derivation::KIND)), derivation);
        assert_eq!(names(Some(greeter::KIND)), ["greet"]);
        assert_eq!(names(None), [&workbench[..], &derivation, &["greet"]].concat());
    }

    #[test]
    fn a_person_reads_two_short_lines_about_each_tool_and_no_schema() {
        let tools = listed(tools::listed(), None);
        let shown = anstream::adapter::strip_str(&table(&tools)).to_string();
        assert_eq!(shown.lines().count(), 2 * tools.len() + 2, "{shown}");
        assert!(!shown.contains('{'), "{shown}");
        for (_, tool) in &tools {
            assert!(shown.contains(&tool.name), "{} in {shown}", tool.name);
        }
        for line in shown.lines() {
            assert!(line.chars().count() <= 200, "{line}");
        }
        let schema = json!({"properties": {"b": {}, "a": {}, "c": {}}, "required": ["a", "c"]});
        assert_eq!(arguments_of(&schema), "a c [b]");
        assert_eq!(first_sentence("Runs it. And more.\nAnd more."), "Runs it");
    }
}
