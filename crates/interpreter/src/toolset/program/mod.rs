//! Programs in JavaScript that call functions of a client. A run ends where the program does, or where it
//! only waits for calls; then it runs again with their answers, and gets to the same place.
//!
//! ```text
//! code, answers so far ──> harness in a cell of JavaScript ──> report: text, images, end | calls to answer
//! ```

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{ToolDefinition, ToolResult, Toolset, ToolsetKind, Watch};
use crate::cell::{Cell, Language, MAX_CODE};
use crate::error::{Error, Result};
use crate::execution::{Execution, Outcome};
use crate::output::Output;
use crate::session::Session;

mod report;

pub use report::{AnsweredCall, ProgramArguments, ProgramCall, ProgramReport, ProgramState};

/// The name of the tool.
pub const PROGRAM: &str = "programmatic_tool_calling";

/// Program that runs the model's program.
const HARNESS: &str = include_str!("harness.js");

/// Part of a cell's time after which the harness stops a program and reports its output so far, in tenths.
const OWN_TENTHS: u32 = 8;

/// The toolset. No configuration names it: requests of the Responses API do.
pub const KIND: ToolsetKind = ToolsetKind {
    name: PROGRAM,
    summary: "Run programs in JavaScript that call functions of the client",
    about: "How to write programs that call functions",
    prelude: &[],
    on_results: false,
    definitions: |_| Vec::new(),
    prompt: |_| String::new(),
    open: |interpreter, session, terms| {
        let programs = Programs {
            session,
            timeout: interpreter.limits().cell_timeout.min(terms.max_timeout),
        };
        Box::pin(async { Ok(Arc::new(programs) as Arc<dyn Toolset>) })
    },
};

/// Programs over one session. Each run has a fresh context; nothing of it stays in the session.
#[derive(Debug)]
struct Programs {
    session: Session,
    timeout: Duration,
}

impl Toolset for Programs {
    fn definitions(&self) -> Vec<ToolDefinition> {
        Vec::new()
    }

    fn call<'a>(
        &'a self,
        _tool: &'a str,
        arguments: Value,
        _watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>> {
        Box::pin(async move {
            let arguments = serde_json::from_value(arguments).map_err(|error| Error::Argument {
                name: "arguments",
                missing: false,
                reason: crate::json_error::describe(&error),
            })?;
            let report = self.run(&arguments).await?;
            Ok(ToolResult::Json(json!(report)))
        })
    }

    fn prompt(&self) -> String {
        String::new()
    }
}

impl Programs {
    async fn run(&self, arguments: &ProgramArguments) -> Result<ProgramReport> {
        let own = self.timeout * OWN_TENTHS / 10;
        let input = STANDARD.encode(arguments.input(own).to_string());
        let output = format!("{}.json", crate::mint("program_"));
        let code = format!("{}(\"{input}\", \"{output}\")", HARNESS.trim_end());
        // The harness itself grows when it is written as JSON.
        if code.len() + HARNESS.len() > MAX_CODE {
            let most = (MAX_CODE - 2 * HARNESS.len()) / 4 * 3;
            return Ok(ProgramReport::failed(format!(
                "the program and the outputs of its calls have more than {most} bytes as JSON; return less \
                 from the functions"
            )));
        }
        let cell = Cell {
            echo: false,
            collect_files: false,
            ..Cell::new(code)
                .in_language(Language::Javascript)
                .from_file("<program>", 1)
                .with_timeout(self.timeout)
        };
        let execution = self.session.execute(cell).await?;
        if execution.outcome != Outcome::Completed {
            return Ok(ProgramReport::failed(self.reason(&execution)));
        }
        // The file is the program's as much as ours: it has got out of its context, if it is not there.
        let path = format!("/tmp/{output}");
        let read = self.session.read_file_within(&*path, report::MAX_BYTES).await;
        let report = match read {
            Ok(bytes) => ProgramReport::read(&bytes, &arguments.functions),
            Err(error) if error.refusal().is_some() => Err("it wrote no report".to_owned()),
            Err(error) => return Err(error),
        };
        self.session.remove_file(path).await.ok();
        Ok(report.unwrap_or_else(|why| {
            ProgramReport::failed(format!("the program has no result: {why}; change the program"))
        }))
    }

    /// Returns the reason why a run has no report.
    fn reason(&self, execution: &Execution) -> String {
        match &execution.outcome {
            Outcome::Rejected { rejections } => {
                let rejections: Vec<_> = rejections.iter().map(|it| it.message.as_str()).collect();
                format!(
                    "the program was not run: {}; programs need an image with Node.js 20 or newer, so call \
                     the functions without a program",
                    rejections.join("; ")
                )
            }
            Outcome::Interrupted => format!(
                "the program was stopped after at most {} seconds, the limit; do less in one program",
                self.timeout.as_secs_f64()
            ),
            Outcome::KernelLost { reason } => {
                format!("the program ended its sandbox: {reason}; use less memory")
            }
            Outcome::LimitExceeded(excess) => format!(
                "the program exceeded the limit of {} ({}); use less",
                excess.which.describe(),
                excess.limit
            ),
            Outcome::Completed | Outcome::Raised => {
                let shown = execution.outputs.iter().rev().find_map(|output| match output {
                    Output::Exception(raised) => Some(format!("{}: {}", raised.exception, raised.message)),
                    _ => None,
                });
                let shown = shown.unwrap_or_else(|| "JavaScript failed".to_owned());
                format!("the program could not be run: {shown}")
            }
        }
    }
}
