//! `run_python` and `run_cell`: a cell in a session.

use std::time::Duration;

use cellblock_interpreter::Cell;
use cellblock_interpreter::cell::Language;
use cellblock_interpreter::toolset::{ToolDefinition, ToolsetKind, notebook, object, python};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, schema};
use crate::answer::RanCell;
use crate::options::Options;
use crate::refusal::Refusal;

/// Characters of code.
const LONGEST_CODE: usize = 1_000_000;
/// Packages of one call.
const MOST_PACKAGES: usize = 50;

const DESCRIPTION: &str = "Runs Python in an isolated sandbox without network, and answers what it \
                           printed and showed: tables, charts as pictures, files, an exception with its \
                           line. pandas, numpy, scipy, matplotlib, statsmodels, polars, scikit-learn and \
                           others are there. Variables and files stay for later calls with the same \
                           `session_id`, which the answer gives.";

/// Continues the description if code can call functions. Which ones depends on who asks.
const FUNCTIONS: &str = "Code can call functions of the host, which return Python values and raise typed \
                         errors such as `cellblock.RateLimitError`. `connectors` lists them, \
                         `help(FUNCTION)` explains one. Combine calls in one cell and print only what you \
                         need: results that are not printed do not enter your context.";

/// Code to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCell {
    /// The code. The value of a trailing expression of Python or JavaScript is shown, as in a notebook.
    pub(super) code: String,
    /// Its language: `python` by default, `bash`, `javascript` or `r`. A session keeps the state of each.
    #[serde(default)]
    pub(super) language: Language,
    /// The session's handle; without one a new session is made, and the answer tells its handle.
    #[serde(default)]
    pub(super) session_id: Option<String>,
    /// Seconds after which the code is interrupted.
    #[serde(default)]
    pub(super) timeout_seconds: Option<f64>,
    /// Packages of PyPI that the code needs in addition to the installed libraries, such as
    /// `["lifelines>=0.30"]`. They are installed for this and all later calls of the session.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub(super) requirements: Vec<String>,
    /// Producer of the code, such as `notebooks/analysis.py`. Variables that it binds or changes have it as
    /// their origin; code without a producer is scratch work.
    #[serde(default)]
    pub(super) producer: Option<String>,
}

/// Adds sessions and the server's limits to the toolset's tool.
pub(super) fn in_session(kind: ToolsetKind, tool: ToolDefinition, options: &Options) -> ToolDefinition {
    let mut input = schema::read::<NewCell>();
    bound_timeout(&mut input, options);
    let mut tool = ToolDefinition {
        description: description(kind, options),
        input_schema: object(input),
        ..tool
    };
    if calls_functions(kind, options)
        && let Some(hints) = &mut tool.annotations
    {
        hints["openWorldHint"] = true.into();
    }
    tool.returns(schema::written::<RanCell>())
}

/// Describes the server's limits of the argument `timeout_seconds`.
pub(super) fn bound_timeout(input: &mut Value, options: &Options) {
    let (usual, most) = (
        options.cell_timeout.as_secs_f64(),
        options.max_cell_timeout.as_secs_f64(),
    );
    let timeout = &mut input["properties"]["timeout_seconds"];
    timeout["description"] = json!(format!(
        "Seconds after which the code is interrupted: {usual} by default, {most} at most."
    ));
    timeout["default"] = json!(usual);
    timeout["exclusiveMinimum"] = json!(0);
    timeout["maximum"] = json!(most);
}

fn calls_functions(kind: ToolsetKind, options: &Options) -> bool {
    kind == notebook::KIND && !options.connectors.is_empty()
}

fn description(kind: ToolsetKind, options: &Options) -> String {
    if !calls_functions(kind, options) {
        return DESCRIPTION.to_owned();
    }
    format!("{DESCRIPTION} {FUNCTIONS}")
}

/// The session's handle, and the arguments as the toolset reads them.
pub(super) fn arguments(call: &mut Call, options: &Options) -> Result<(Option<String>, Value), Refusal> {
    let arguments: NewCell = call.read()?;
    check(&arguments, options)?;
    let toolsets = json!({
        "code": arguments.code,
        "requirements": arguments.requirements,
        "timeout": arguments.timeout_seconds,
        "producer": arguments.producer,
        "language": arguments.language,
    });
    Ok((arguments.session_id, toolsets))
}

impl NewCell {
    /// Returns it as a cell, within the server's limits.
    pub(super) fn check(self, options: &Options) -> Result<Cell, Refusal> {
        check(&self, options)?;
        let timeout = self.timeout_seconds;
        let cell = python::cell(
            Some(self.code),
            timeout,
            self.requirements,
            options.max_cell_timeout,
        )?;
        Ok(cell)
    }
}

fn check(arguments: &NewCell, options: &Options) -> Result<(), Refusal> {
    if arguments.code.trim().is_empty() {
        return Err(Refusal::new("`code` is empty: give the Python code to run"));
    }
    let length = arguments.code.chars().count();
    if length > LONGEST_CODE {
        return Err(Refusal::new(format!(
            "`code` has {length} characters, the limit is {LONGEST_CODE}: put data into a file with \
             `upload_file`, and read it there"
        )));
    }
    if arguments.requirements.len() > MOST_PACKAGES {
        return Err(Refusal::new(format!(
            "`requirements` has {} packages, the limit is {MOST_PACKAGES}",
            arguments.requirements.len()
        )));
    }
    let most = options.max_cell_timeout;
    if let Some(seconds) = arguments.timeout_seconds {
        let timeout = Duration::try_from_secs_f64(seconds).ok();
        if timeout.is_none_or(|it| it.is_zero() || it > most) {
            return Err(Refusal::new(format!(
                "`timeout_seconds` is {seconds}: give more than 0 and at most {}",
                most.as_secs_f64()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: &str, timeout_seconds: Option<f64>) -> Result<(), String> {
        let arguments = NewCell {
            code: code.into(),
            session_id: None,
            timeout_seconds,
            requirements: Vec::new(),
            producer: None,
            language: Language::Python,
        };
        check(&arguments, &Options::default()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn a_time_is_positive_and_bounded() {
        assert_eq!(told("1", Some(0.5)), Ok(()));
        for seconds in [0.0, -1.0, 301.0, f64::NAN, f64::INFINITY] {
            let message = format!("`timeout_seconds` is {seconds}: give more than 0 and at most 300");
            assert_eq!(told("1", Some(seconds)), Err(message));
        }
    }

    #[test]
    fn nothing_is_not_run() {
        assert_eq!(
            told(" \n", None),
            Err("`code` is empty: give the Python code to run".into())
        );
    }
}
