//! Programs of the model that call the client's functions. A program that waits for the client is not held:
//! it runs again with the answers, as its code, its calls and their outputs are in the conversation.
//!
//! ```text
//! model ──> program ──run──> calls ──> client                    (the response ends)
//!                      ▲                 │
//!                      └── the answers <─┘ next request: run again ──> calls | program_output ──> model
//! ```

use std::fmt::Write as _;

use cellblock_interpreter::render;
use cellblock_interpreter::toolset::ToolsetTerms;
use cellblock_interpreter::toolset::program::{
    AnsweredCall, KIND, PROGRAM, ProgramArguments, ProgramReport, ProgramState,
};
use cellblock_settings::clock;
use serde_json::{Value, json};

use super::builder::ResponseBuilder;
use super::call_result::CallResult;
use super::functions::CodeFunction;
use super::program_seal::ProgramStart;
use super::runner::CallSandbox;
use super::step;
use super::toolset::ToolsetCall;
use crate::arguments::ArgumentsDecoder;
use crate::wire::{
    CallKind, Function, FunctionCall, FunctionOutput, Item, ItemStatus, Program, ProgramOutput, ToolCaller,
};

/// Maximum number of tokens of a program's text in its result.
const TOKENS: usize = 10_000;

const ABOUT: &str = "Runs a program in JavaScript that calls functions of the user's application, and \
                     returns the text that it shows. Use it to make several calls, or to reduce large \
                     results to what you need. `await` works at the top level, and `Promise.all` makes \
                     calls at the same time. Show a result with `text(value)`, and an image with \
                     `image(dataUrl)`. There are no modules, timers, files, network and `console`, and \
                     nothing is kept between programs.";

/// Returns the tool as models know it, with functions that programs can call.
pub(super) fn function<'a>(functions: impl Iterator<Item = &'a CodeFunction>) -> Function {
    let mut about = ABOUT.to_owned();
    let mut functions = functions.peekable();
    if functions.peek().is_some() {
        about.push_str("\n\nFunctions, each with one object of arguments:\n");
    }
    for CodeFunction { card, .. } in functions {
        // Writing to a string cannot fail.
        let _ = write!(about, "\n- `await {}({{…}})`", path(&card.name));
        if !card.description.is_empty() {
            let _ = write!(about, ": {}", card.description);
        }
        let _ = write!(about, "\n  Arguments: {}", card.parameters);
        if let Some(returns) = &card.returns {
            let _ = write!(about, "\n  Returns: {returns}");
        }
    }
    let parameters = json!({
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The program."}},
        "required": ["code"],
        "additionalProperties": false,
    });
    Function {
        name: PROGRAM.to_owned(),
        description: Some(about),
        parameters: parameters.as_object().cloned(),
        strict: None,
        output_schema: None,
        allowed_callers: None,
        defer_loading: false,
    }
}

/// Returns the expression by which a program finds a function.
fn path(name: &str) -> String {
    let is_identifier = !name.starts_with(|c: char| c.is_ascii_digit()) && !name.contains('-');
    if is_identifier {
        format!("tools.{name}")
    } else {
        format!("tools[\"{name}\"]")
    }
}

impl ResponseBuilder<'_> {
    /// Writes the item of a program that is about to run. The error is for the model.
    pub(super) fn start_program(
        &mut self,
        call_id: &str,
        arguments: &str,
        place: &dyn CallSandbox,
    ) -> Result<Program, String> {
        let mut decoder = ArgumentsDecoder::new("code");
        // Its errors are those of the whole, too.
        let _ = decoder.push(arguments);
        let code = match step::arguments(decoder.finish())?.remove("code") {
            Some(Value::String(code)) if !code.trim().is_empty() => code,
            _ => return Err("The program was not run: send the JavaScript to run as `code`.".to_owned()),
        };
        let container = place.container().to_owned();
        let start = ProgramStart {
            started_ms: clock::unix_millis(),
            container: container.clone(),
        };
        let fingerprint = self.program_seal.seal(call_id, &code, &start);
        let program = Program {
            id: self.ids.mint(CallKind::Program.call_prefix()),
            call_id: call_id.to_owned(),
            fingerprint: fingerprint.ok_or("The program was not run: the server could not seal it.")?,
            code,
            container: Some(container),
        };
        self.draft.whole_program(program.clone());
        Ok(program)
    }

    /// Returns the run of a program that has made these calls; the error is for the model.
    pub(super) fn program(
        &self,
        program: &Program,
        made: &[(FunctionCall, Option<FunctionOutput>)],
    ) -> Result<ToolsetCall, String> {
        let start = self
            .program_seal
            .open(&program.call_id, &program.code, &program.fingerprint);
        let start = start.ok_or("the program was changed while it waited, so that it cannot continue")?;
        let answered = made.iter().map(|(call, output)| {
            let is_called =
                |known: &&CodeFunction| known.name == call.name && known.namespace == call.namespace;
            let function = self.of_code.iter().find(is_called).ok_or_else(|| {
                format!(
                    "programs cannot call `{}`, which this program has called, any more",
                    call.name
                )
            })?;
            let output = output
                .as_ref()
                .ok_or_else(|| format!("the call `{}` of the program has no output", call.call_id))?;
            Ok(AnsweredCall {
                name: function.card.name.clone(),
                arguments: call.arguments.clone(),
                output: output.text(),
            })
        });
        let arguments = ProgramArguments {
            code: program.code.clone(),
            functions: self.of_code.iter().map(|known| known.card.name.clone()).collect(),
            calls: answered.collect::<Result<_, String>>()?,
            started_ms: start.started_ms,
        };
        Ok(ToolsetCall {
            kind: KIND,
            tool: PROGRAM.to_owned(),
            arguments: json!(arguments),
            terms: ToolsetTerms {
                max_timeout: self.max_timeout,
                ..ToolsetTerms::default()
            },
            lent: Vec::new(),
        })
    }

    /// Writes the outcome of a program's run, and returns it for the conversation: its calls if it waits for
    /// them, or else its output.
    pub(super) fn end_program(&mut self, program: &Program, ran: &CallResult) -> Vec<Item> {
        let text = ran.result.text();
        // A note about a lost sandbox comes before the report, which has one line.
        let report = text.lines().last().map(serde_json::from_str::<ProgramReport>);
        let (Some(Ok(report)), false) = (report, ran.status == ItemStatus::Failed) else {
            return vec![self.fail_program(program, text)];
        };
        if report.state != ProgramState::Waits {
            return vec![self.program_output(program, report)];
        }
        let mut calls = Vec::with_capacity(report.calls.len());
        for made in report.calls {
            let Some(function) = self.of_code.iter().find(|known| known.card.name == made.name) else {
                continue;
            };
            let call = FunctionCall {
                id: self.ids.mint("fc"),
                status: ItemStatus::Completed,
                call_id: self.ids.mint("call"),
                name: function.name.clone(),
                namespace: function.namespace.clone(),
                arguments: made.arguments,
                caller: Some(ToolCaller::Program {
                    caller_id: program.call_id.clone(),
                }),
            };
            self.draft.whole_function_call(call.clone());
            calls.push(Item::FunctionCall(call));
        }
        calls
    }

    /// Writes the output of a program that could not be run.
    pub(super) fn fail_program(&mut self, program: &Program, why: impl Into<String>) -> Item {
        self.program_output(program, ProgramReport::failed(why))
    }

    fn program_output(&mut self, program: &Program, report: ProgramReport) -> Item {
        let mut lines = Vec::new();
        if !report.text.is_empty() {
            lines.push(render::stream(&report.text, TOKENS));
        }
        lines.extend(report.images.iter().map(|url| ProgramOutput::image_line(url)));
        lines.extend(report.error.map(|error| format!("[error] {error}")));
        if lines.is_empty() {
            lines.push("(no output)".to_owned());
        }
        let output = ProgramOutput {
            id: self.ids.mint(CallKind::Program.output_prefix()),
            call_id: program.call_id.clone(),
            result: lines.join("\n"),
            status: match report.state {
                ProgramState::Ended => ItemStatus::Completed,
                ProgramState::Waits | ProgramState::Failed => ItemStatus::Incomplete,
            },
        };
        self.draft.whole_program_output(output.clone());
        Item::ProgramOutput(output)
    }
}
