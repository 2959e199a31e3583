//! Cells of Python as a toolset: `run_python`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ToolDefinition, ToolEffect, ToolEvent, ToolResult, Toolset, ToolsetKind, Watch, WriteTerms};
use crate::cell::{Cell, Language};
use crate::error::{Error, Result};
use crate::lineage;
use crate::session::Session;

/// The name of the tool.
pub const RUN_PYTHON: &str = "run_python";

/// The toolset `interpreter`.
pub const KIND: ToolsetKind = ToolsetKind {
    name: "interpreter",
    summary: "Cells of Python with variables that persist",
    about: "How to work with run_python, sessions and files",
    prelude: &[],
    on_results: false,
    definitions: |_| vec![definition()],
    prompt: |_| prompt("Python", RUN_PYTHON),
    open: |_, session, terms| {
        let python = Python {
            session,
            max_timeout: terms.max_timeout,
            writes: terms.writes.clone(),
            definition: definition(),
            prompt: prompt("Python", RUN_PYTHON),
        };
        Box::pin(async { Ok(Arc::new(python) as Arc<dyn Toolset>) })
    },
};

/// Cells of one session.
#[derive(Debug)]
pub(super) struct Python {
    pub(super) session: Session,
    pub(super) max_timeout: Duration,
    pub(super) writes: WriteTerms,
    pub(super) definition: ToolDefinition,
    pub(super) prompt: String,
}

/// Arguments of the tool, and a request to run a cell.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Arguments {
    code: Option<String>,
    requirements: Vec<String>,
    timeout: Option<f64>,
    producer: Option<String>,
    language: Language,
}

impl Toolset for Python {
    fn definitions(&self) -> Vec<ToolDefinition> {
        vec![self.definition.clone()]
    }

    fn call<'a>(
        &'a self,
        _tool: &'a str,
        arguments: Value,
        watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<ToolResult>> {
        Box::pin(async move {
            let mut cell = read(arguments, self.max_timeout)?;
            let code = cell.code.clone();
            match &self.writes {
                WriteTerms::Unasked => {}
                WriteTerms::Approved(writes) => cell.approved = Some(writes.clone()),
                WriteTerms::Rehearsed => {
                    if self.session.needs_rehearsal().await? {
                        let rehearsal = self.session.rehearse(cell).await?;
                        return Ok(ToolResult::rehearsed(code, rehearsal));
                    }
                }
            }
            let mut running = self.session.start_cell(cell).await?;
            while let Some(event) = running.events.recv().await {
                ToolEvent::of_cell(event).map(&mut *watch);
            }
            let execution = Box::new(running.finish().await?);
            Ok(ToolResult::Cell { code, execution })
        })
    }

    fn prompt(&self) -> String {
        self.prompt.clone()
    }
}

/// Reads the arguments of a tool that runs cells.
pub fn read(arguments: Value, max_timeout: Duration) -> Result<Cell> {
    let Arguments {
        code,
        requirements,
        timeout,
        producer,
        language,
    } = serde_json::from_value(arguments).map_err(|error| Error::Argument {
        name: "arguments",
        missing: false,
        reason: crate::json_error::describe(&error),
    })?;
    let cell = cell(code, timeout, requirements, max_timeout)?;
    let mut cell = cell.in_language(language);
    cell.producer = producer.map(lineage::producer).transpose()?;
    Ok(cell)
}

/// Returns the cell that a request describes.
pub fn cell(
    code: Option<String>,
    timeout: Option<f64>,
    requirements: Vec<String>,
    max_timeout: Duration,
) -> Result<Cell> {
    let wrong = |name, missing, reason| Error::Argument {
        name,
        missing,
        reason,
    };
    let code = code.ok_or_else(|| wrong("code", true, "give the code to run as `code`".to_owned()))?;
    let mut cell = Cell::new(code).with_requirements(requirements);
    if let Some(seconds) = timeout {
        let timeout = Duration::try_from_secs_f64(seconds).ok();
        let timeout = timeout.filter(|timeout| !timeout.is_zero() && *timeout <= max_timeout);
        cell.timeout = Some(timeout.ok_or_else(|| {
            let max = max_timeout.as_secs_f64();
            let reason = format!("it is {seconds}; give more than 0 and at most {max} seconds");
            wrong("timeout", false, reason)
        })?);
    }
    Ok(cell)
}

fn definition() -> ToolDefinition {
    named(
        RUN_PYTHON,
        "Runs Python in a sandbox without network. Variables and files stay for later calls. The value of \
         the last expression is shown.",
    )
}

/// Returns the prompt of a tool that runs cells.
pub(super) fn prompt(title: &str, tool: &str) -> String {
    format!(
        "## {title} ({tool})\n\n\
         `{tool}` runs a cell of Python in an isolated sandbox without network. The value of a trailing \
         expression is shown, as in a notebook. Variables and files stay for later calls."
    )
}

/// Returns a tool that runs cells.
pub(super) fn named(name: &str, description: &str) -> ToolDefinition {
    ToolDefinition::new(
        name,
        "Run Python",
        description,
        json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The code."},
                "language": {
                    "type": "string",
                    "enum": ["python", "bash", "javascript", "r"],
                    "description": "Its language: Python by default. A session keeps the state of each.",
                },
                "requirements": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Packages that it needs in addition to those of the image, such as \
                                    \"six==1.17.0\".",
                },
                "timeout": {"type": "number", "exclusiveMinimum": 0,
                    "description": "Seconds that it may run."},
                "producer": {"type": "string",
                    "description": "What the code belongs to, such as `analysis.py`: the origin of its \
                                    variables."},
            },
            "required": ["code"],
            "additionalProperties": false,
        }),
        ToolEffect::Changes,
    )
}
