//! What the command line says of a toolset.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellblock_interpreter::alias::AliasStore;
use cellblock_interpreter::contract::{ContractPolicy, DerivationCall};
use cellblock_interpreter::derivation::{COVERAGE_THRESHOLD, LowCoverage, Policy};
use cellblock_interpreter::{InputFormat, Rejection};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::args::InputArg;
use crate::error::{Error, Result};

/// The toolset, and what it works with.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Toolset")]
pub(crate) struct ToolsetArgs {
    /// Run the code as a call of this toolset: `derivation` derives from tool results under a contract
    #[arg(long, value_name = "TOOLSET", value_enum)]
    pub(crate) toolset: Option<Toolset>,
    /// Record a file as the result of a tool, under this alias: JSON, or a table as Parquet or Arrow
    #[arg(long = "alias", value_name = "NAME=PATH", value_parser = crate::args::parse_input, requires = "toolset")]
    pub(crate) aliases: Vec<InputArg>,
    /// What the code declares: a JSON file with `operation`, `reason`, `inputAliases` and `expectedArtifacts`, or a whole call with
    /// `postProcessingContract`, and `inputs` and `intent` if it has them
    #[arg(long, value_name = "FILE", requires = "toolset")]
    pub(crate) contract: Option<PathBuf>,
    /// Refuse a call that gives no alias a local name in `inputs`
    #[arg(long, requires = "toolset")]
    pub(crate) require_inputs: bool,
    /// Find fault with lines that cover less of their axis' time range than this share
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value_t = COVERAGE_THRESHOLD, requires = "toolset")]
    pub(crate) coverage_threshold: f64,
    /// Refuse what has such a line, rather than report it
    #[arg(long, requires = "toolset")]
    pub(crate) reject_low_coverage: bool,
}

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Toolset {
    /// Code that derives from tool results.
    Derivation,
}

impl ToolsetArgs {
    /// The rules for the call.
    pub(crate) fn policy(&self, timeout: Option<Duration>) -> Policy {
        let usual = Policy::default();
        Policy {
            contract: ContractPolicy {
                require_inputs: self.require_inputs,
                ..ContractPolicy::default()
            },
            coverage_threshold: self.coverage_threshold,
            low_coverage: if self.reject_low_coverage {
                LowCoverage::Reject
            } else {
                LowCoverage::Report
            },
            cell_time: timeout.unwrap_or(usual.cell_time),
            ..usual
        }
    }

    /// The call of this code. What is wrong with its form is for the model that made it.
    pub(crate) fn call(&self, code: &str) -> Result<Result<DerivationCall, Vec<Rejection>>> {
        let given = self
            .contract
            .as_deref()
            .map(read_json)
            .transpose()?
            .unwrap_or_default();
        let mut arguments = match given {
            Value::Object(call) if call.contains_key("postProcessingContract") => Value::Object(call),
            contract => json!({ "postProcessingContract": contract }),
        };
        arguments["code"] = code.into();
        Ok(DerivationCall::read(&arguments))
    }

    /// Records the tool results, in order.
    pub(crate) async fn record(&self, aliases: &AliasStore) -> Result<()> {
        for InputArg { name, path } in &self.aliases {
            let file = File::open(path).map_err(Error::user_file("read", path))?;
            let recorded = aliases.insert_named(name, file, format_of(path)).await;
            recorded.map_err(cellblock_interpreter::Error::from)?;
        }
        Ok(())
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).map_err(Error::user_file("read", path))?;
    serde_json::from_slice(&text).map_err(|error| {
        Error::Refused(format!(
            "`{}` is not JSON: {error}; write an object with `operation`, `reason`, `inputAliases` and `expectedArtifacts`",
            path.display()
        ))
    })
}

/// JSON, unless the name says otherwise.
fn format_of(path: &Path) -> InputFormat {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "parquet" | "pq" => InputFormat::Parquet,
        "arrow" | "feather" | "ipc" => InputFormat::Arrow,
        _ => InputFormat::Value,
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!(
            "`{text}` is no share; give a number from 0 to 1, such as 0.5"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_between_none_and_all() {
        assert_eq!(parse_share("0.5"), Ok(0.5));
        for text in ["-0.1", "1.1", "half", "nan"] {
            let told = format!("`{text}` is no share; give a number from 0 to 1, such as 0.5");
            assert_eq!(parse_share(text), Err(told));
        }
    }

    #[test]
    fn results_are_json_unless_they_are_tables() {
        assert_eq!(format_of(Path::new("a/b.json")), InputFormat::Value);
        assert_eq!(format_of(Path::new("rows.PARQUET")), InputFormat::Parquet);
        assert_eq!(format_of(Path::new("rows.feather")), InputFormat::Arrow);
    }
}
