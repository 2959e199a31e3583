//! Options of the command line for a toolset.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellblock_interpreter::alias::{AliasError, AliasStore, Bounds};
use cellblock_interpreter::artifact::Store;
use cellblock_interpreter::cell::{Guard, Rescue};
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::contract::{ContractPolicy, DerivationCall};
use cellblock_interpreter::derivation::{self, COVERAGE_THRESHOLD, DerivationPolicy, LowCoverage};
use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::execution::Rejection;
use cellblock_interpreter::input::InputFormat;
use cellblock_interpreter::project::Project;
use cellblock_interpreter::session::{SessionOptions, SetupSnippet};
use cellblock_interpreter::toolset::{TOOLSETS, ToolsetKind, notebook};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use crate::config::Sources;
use crate::error::{Error, Result};
use crate::input_arg::InputArg;

/// Description of the formats from which a result can be recorded.
const FORMS: &str = "accepted are JSON, NDJSON (.ndjson, .jsonl), Parquet (.parquet, .pq) and Arrow \
                     (.arrow, .feather, .ipc); any other file can be bound with `--input NAME=PATH`";

/// An example of a contract.
const CONTRACT: &str = r#"{"operation": "sum per day", "reason": "the tool returns single rows", "inputAliases": ["get_rows_1"], "expectedArtifacts": []}"#;

/// The toolset, and what it works with.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Toolset")]
pub(crate) struct ToolsetArgs {
    /// Use this toolset: with `notebook`, code can call the `connectors` of the configuration, and
    /// the tools of MCP servers whose `offer` is `code` or `both`; `derivation` derives from tool
    /// results under a contract
    #[arg(
        long,
        value_name = "TOOLSET",
        value_parser = kinds(|kind| [derivation::KIND, notebook::KIND].contains(kind))
    )]
    pub(crate) toolset: Option<ToolsetKind>,
    /// Configuration file with the `connectors` and `mcp_servers` of `notebook` [default:
    /// `cellblock.yaml`, if it exists]
    #[arg(long, value_name = "FILE", requires = "toolset")]
    pub(crate) config: Option<PathBuf>,
    /// Let the code of `notebook` publish and load datasets of this project
    #[arg(long, value_name = "NAME", requires = "toolset")]
    pub(crate) project: Option<String>,
    /// Let code load this dataset of the project without having looked at it; repeat it for several
    #[arg(long, value_name = "SLUG", requires = "project")]
    pub(crate) seen: Vec<String>,
    /// Record a file as a tool result under this alias: JSON or NDJSON, or a table as Parquet or
    /// Arrow; a pipe, such as `x=<(command)`, is read to its end
    #[arg(long = "alias", value_name = "NAME=PATH", value_parser = crate::input_arg::parse_input,
        requires = "toolset")]
    pub(crate) aliases: Vec<InputArg>,
    /// Contract of the code, required by `derivation`: a JSON file with `operation`, `reason`,
    /// `inputAliases` and `expectedArtifacts`, or a complete call with `postProcessingContract` and
    /// optionally `inputs` and `intent`
    #[arg(long, value_name = "FILE", requires = "toolset")]
    pub(crate) contract: Option<PathBuf>,
    /// Reject a call that gives no alias a local name in `inputs`
    #[arg(long, requires = "toolset")]
    pub(crate) require_inputs: bool,
    /// Report lines that cover less than this share of their axis' time range
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value_t = COVERAGE_THRESHOLD,
        requires = "toolset")]
    pub(crate) coverage_threshold: f64,
    /// Reject charts with such a line instead of only reporting it
    #[arg(long, requires = "toolset")]
    pub(crate) reject_low_coverage: bool,
}

/// Contents of a toolset's session.
#[derive(Debug, Default)]
pub(crate) struct ToolsetSession {
    /// Connectors that its code can call.
    pub(crate) connectors: Vec<Arc<dyn Connector>>,
    /// Names that are bound, if not the usual ones.
    prelude: Option<&'static [&'static str]>,
    pub(crate) guard: Guard,
    pub(crate) setup: Vec<SetupSnippet>,
    /// Name of its project.
    pub(crate) project: Option<String>,
    /// Datasets that it may load without having looked at them.
    pub(crate) seen: Vec<String>,
    /// Hosts that its code reaches.
    pub(crate) egress: Option<EgressPolicy>,
}

impl ToolsetSession {
    /// Returns the options of a session for one run.
    pub(crate) fn options(self, store: &Store) -> Result<SessionOptions> {
        let project = self.project.as_deref().map(|name| project(store, name));
        let mut options = SessionOptions {
            pooled: false,
            // A run stops at the first cell that does not complete: nobody would use what was rescued.
            rescue: Rescue::Off,
            guard: self.guard,
            setup: self.setup,
            connectors: self.connectors,
            project: project.transpose()?,
            seen: self.seen,
            egress: self.egress,
            ..SessionOptions::default()
        };
        if let Some(names) = self.prelude {
            options.prelude = names.iter().copied().map(str::to_owned).collect();
        }
        Ok(options)
    }
}

/// Returns a project of this machine's user.
pub(crate) fn project(store: &Store, name: &str) -> Result<Project> {
    Ok(Project::new(store.clone(), "local", name)?)
}

/// Accepts the name of one of these toolsets.
pub(crate) fn kinds(of: impl Fn(&ToolsetKind) -> bool) -> impl TypedValueParser<Value = ToolsetKind> {
    let kinds = TOOLSETS.into_iter().filter(of);
    let names = kinds.map(|kind| PossibleValue::new(kind.name).help(kind.summary));
    PossibleValuesParser::new(names)
        .try_map(|name| ToolsetKind::named(&name).ok_or("there is no such toolset"))
}

/// Returns what a configuration gives to sessions with the toolset `notebook`. Reads its secrets and setup
/// code, and starts nothing.
pub(crate) fn of_configuration(config: Option<PathBuf>) -> Result<ToolsetSession> {
    let loaded = Sources::of_process(config, None).load()?;
    let (servers, _) = loaded.tool_servers()?;
    let cells = loaded.cells()?;
    Ok(ToolsetSession {
        connectors: loaded.connectors(&servers)?,
        prelude: Some(notebook::KIND.prelude),
        guard: cells.guard,
        setup: cells.snippets,
        ..ToolsetSession::default()
    })
}

impl ToolsetArgs {
    /// Checks that the options belong to the toolset, and returns what its session has. Reads the
    /// configuration, and starts nothing.
    pub(crate) fn session(&self) -> Result<ToolsetSession> {
        if self.toolset != Some(notebook::KIND) {
            let foreign = [
                ("--config", self.config.is_some()),
                ("--project", self.project.is_some()),
            ];
            return match foreign.into_iter().find(|(_, given)| *given) {
                Some((option, _)) => Err(Error::Refused(format!(
                    "`{option}` is for `--toolset notebook`; remove one of the two"
                ))),
                None => Ok(ToolsetSession::default()),
            };
        }
        if self.contract.is_some()
            || !self.aliases.is_empty()
            || self.require_inputs
            || self.reject_low_coverage
        {
            return Err(Error::Refused(
                "`--contract`, `--alias`, `--require-inputs` and `--reject-low-coverage` are for \
                 `--toolset derivation`; remove them"
                    .to_owned(),
            ));
        }
        Ok(ToolsetSession {
            project: self.project.clone(),
            seen: self.seen.clone(),
            ..of_configuration(self.config.clone())?
        })
    }

    /// The rules for the call.
    pub(crate) fn policy(&self, timeout: Option<Duration>) -> DerivationPolicy {
        let usual = DerivationPolicy::default();
        DerivationPolicy {
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
            cell_timeout: timeout.unwrap_or(usual.cell_timeout),
            ..usual
        }
    }

    /// The call of this code. What is wrong with its form is for the model that made it.
    pub(crate) fn call(&self, code: &str) -> Result<Result<DerivationCall, Vec<Rejection>>> {
        let Some(contract) = &self.contract else {
            return Err(Error::Refused(format!(
                "`--toolset derivation` needs `--contract FILE`; write a JSON file such as {CONTRACT}"
            )));
        };
        let given = read_json(contract)?;
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
            let (file, format) = recordable(path)?;
            aliases
                .insert_named(name, file, format)
                .await
                .map_err(|error| match error {
                    AliasError::Json { source, .. } => Error::Refused(format!(
                        "`{}` is not a JSON document ({source}); {FORMS}",
                        path.display()
                    )),
                    other => cellblock_interpreter::Error::from(other).into(),
                })?;
        }
        Ok(())
    }
}

/// A file as tool results are recorded: one that can be read twice, of a format that keeps every
/// value as it is.
fn recordable(path: &Path) -> Result<(File, InputFormat)> {
    let fail = || Error::user_file("read", path);
    let mut file = File::open(path).map_err(fail())?;
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let extension = extension.to_ascii_lowercase();
    if matches!(extension.as_str(), "csv" | "tsv" | "xlsx" | "xls") {
        // Its types would have to be guessed, and `007` is no 7.
        return Err(Error::Refused(format!(
            "`{}` cannot be recorded as the result of a tool, since it does not say the types of its \
             values; {FORMS}",
            path.display()
        )));
    }
    if !file.metadata().map_err(fail())?.is_file() {
        file = copied(&file).map_err(fail())?;
    }
    let mut head = [0; 6];
    let read = file.read(&mut head).map_err(fail())?;
    file.rewind().map_err(fail())?;
    let format = match (extension.as_str(), &head[..read]) {
        ("parquet" | "pq", _) | (_, [b'P', b'A', b'R', b'1', ..]) => InputFormat::Parquet,
        ("arrow" | "feather" | "ipc", _) | (_, b"ARROW1") => InputFormat::Arrow,
        ("ndjson" | "jsonl", _) => return Ok((listed(&file).map_err(fail())?, InputFormat::Value)),
        _ => InputFormat::Value,
    };
    Ok((file, format))
}

/// Copies a pipe, which can be read only once, to a file without a name.
fn copied(pipe: &File) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    // One byte more than may be recorded is enough to be refused for it.
    io::copy(&mut pipe.take(Bounds::default().bytes_each + 1), &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// The documents of an NDJSON file as one list, each as it is written.
fn listed(lines: &File) -> io::Result<File> {
    let mut list = BufWriter::new(tempfile::tempfile()?);
    list.write_all(b"[")?;
    let mut separator: &[u8] = b"";
    for line in BufReader::new(lines.take(Bounds::default().bytes_each + 1)).split(b'\n') {
        let line = line?;
        if !line.trim_ascii().is_empty() {
            list.write_all(separator)?;
            list.write_all(&line)?;
            separator = b",";
        }
    }
    list.write_all(b"]")?;
    let mut file = list.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).map_err(Error::user_file("read", path))?;
    serde_json::from_slice(&text).map_err(|error| {
        Error::Refused(format!(
            "`{}` is not JSON: {error}; write an object with `operation`, `reason`, `inputAliases` and \
             `expectedArtifacts`",
            path.display()
        ))
    })
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!(
            "`{text}` is not a share; give a number from 0 to 1, such as 0.5"
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
            let message = format!("`{text}` is not a share; give a number from 0 to 1, such as 0.5");
            assert_eq!(parse_share(text), Err(message));
        }
    }

    fn recorded(name: &str, bytes: &[u8]) -> Result<(Vec<u8>, InputFormat)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let (mut file, format) = recordable(&path)?;
        let mut all = Vec::new();
        file.read_to_end(&mut all).unwrap();
        Ok((all, format))
    }

    #[test]
    fn results_are_json_unless_they_are_tables() {
        for (name, bytes, format) in [
            ("b.json", &b"[1]"[..], InputFormat::Value),
            ("rows.PARQUET", b"PAR1", InputFormat::Parquet),
            ("rows.feather", b"ARROW1", InputFormat::Arrow),
            ("63", b"PAR1..", InputFormat::Parquet),
            ("63", b"ARROW1\0\0", InputFormat::Arrow),
            ("63", b"{}", InputFormat::Value),
        ] {
            assert_eq!(recorded(name, bytes).unwrap(), (bytes.to_vec(), format), "{name}");
        }
    }

    #[test]
    fn lines_of_json_become_one_list() {
        let (all, _) = recorded("rows.jsonl", b"{\"a\": 1}\n\n{\"a\": 18446744073709551616}\r\n").unwrap();
        assert_eq!(all, b"[{\"a\": 1},{\"a\": 18446744073709551616}\r]");
    }

    #[test]
    fn a_file_without_types_is_refused_with_the_accepted_forms() {
        let message = recorded("rows.csv", b"a,b\n1,2\n").unwrap_err().to_string();
        for form in ["JSON", "NDJSON", "Parquet", "Arrow", "--input"] {
            assert!(message.contains(form), "{message}");
        }
    }
}
