//! Functions of a program that an operator writes in any language, and that answers calls over its
//! stdin and stdout.
//!
//! ```text
//! CommandConnector ──> CommandService: one process, started on first use and again after its end
//!                        └ CommandProcess: calls ──lines──> stdin
//!                                     ^  └ waiting callers by id
//!                                     └──lines, Arrow frames── stdout, bounded
//! ```

mod calls;
mod functions;
mod message;
mod reader;
mod running;
mod service;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, MemoPolicy, Redaction,
};
use cellblock_settings::Time;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::given::GivenValues;
use crate::options::{GivenValue, TypeOptions};
use crate::process::ProgramLaunch;
use crate::recipe::{ConnectorRecipe, ConnectorResult, OptionMistake, checked};
pub(crate) use service::PrepareProgram;
use service::{CommandService, CommandServiceOptions};

/// Variables that a program inherits. All others may be secrets.
pub(crate) const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Options of the type `command` only.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandOptions {
    /// The program and its arguments. It runs on the host in the configuration's own folder, is
    /// started on first use and again after its end.
    pub command: Vec<String>,
}

/// Options of programs, which the types `command` and `python` have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProgramOptions {
    /// Allow functions with `effect: writes`.
    #[serde(default)]
    pub allow_writes: bool,
    /// Environment variables of the program, in addition to `PATH`, `HOME` and `LANG`: text, or a
    /// secret by `{env: NAME}` or `{file: PATH}`.
    #[serde(default)]
    pub env: BTreeMap<String, GivenValue>,
    /// Timeout for starting the program, and for listing its functions.
    #[serde(with = "Time", default = "start_timeout")]
    pub start_timeout: Duration,
}

const fn start_timeout() -> Duration {
    Duration::from_mins(1)
}

impl ProgramOptions {
    /// Checks the options, and reads the environment variables.
    pub(crate) fn environment(
        &self,
        folder: Option<&Path>,
        mistakes: &mut Vec<OptionMistake>,
    ) -> GivenValues {
        if self.start_timeout.is_zero() {
            mistakes.push(OptionMistake::new(&["start_timeout"], "must be greater than 0"));
        }
        let unusable = |variable: &&String| variable.is_empty() || variable.contains(['=', '\0']);
        for variable in self.env.keys().filter(unusable) {
            let text = "the name of a variable must not be empty or have `=`";
            mistakes.push(OptionMistake::new(&["env", variable], text));
        }
        GivenValues::read("env", &self.env, folder, mistakes)
    }
}

impl ConnectorRecipe for TypeOptions<CommandOptions, ProgramOptions> {
    fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult {
        let mut mistakes = self.calls.mistakes();
        let environment = self.shared.environment(folder, &mut mistakes);
        let folder = folder.unwrap_or(Path::new("")).to_owned();
        checked(mistakes, CommandConnector::new(name, self, environment, folder))
    }
}

/// A connector of the type `command`.
#[derive(Debug)]
pub struct CommandConnector(CommandService);

impl CommandConnector {
    /// Compiles a connector whose program runs in `folder`, with the values of its variables. Starts nothing.
    pub fn new(
        name: &str,
        options: &TypeOptions<CommandOptions, ProgramOptions>,
        environment: GivenValues,
        folder: PathBuf,
    ) -> Result<Self, Vec<OptionMistake>> {
        if options.own.command.first().is_none_or(String::is_empty) {
            let text = "missing key `command`: the program and its arguments, such as `[python3, \
                        connectors/house.py]`";
            return Err(vec![OptionMistake::new(&[], text)]);
        }
        let launch = ProgramLaunch {
            command: options.own.command.clone(),
            inherited: &INHERITED,
            environment: environment.values.into_iter().collect(),
            folder: Some(folder),
        };
        let prepare: PrepareProgram = Arc::new(move || std::future::ready(Ok(launch.clone())).boxed());
        let redaction = Redaction::new(environment.secrets);
        Ok(Self::over(name, options, redaction, Map::new(), prepare))
    }

    /// Makes a connector over a program, to which `greeting` is sent.
    pub(crate) fn over<T>(
        name: &str,
        options: &TypeOptions<T, ProgramOptions>,
        redaction: Redaction,
        greeting: Map<String, Value>,
        prepare: PrepareProgram,
    ) -> Self {
        let options = CommandServiceOptions {
            label: name.to_owned(),
            calls: options.calls.clone(),
            program: options.shared.clone(),
            redaction,
        };
        Self(CommandService::new(options, greeting, prepare))
    }
}

impl Connector for CommandConnector {
    fn name(&self) -> &str {
        &self.0.options().label
    }

    fn description(&self) -> &str {
        &self.0.options().calls.description
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        async {
            match self.0.running().await {
                Ok(running) => Ok(running.cards.clone()),
                Err(error) => {
                    let text = format!("{}: {error}", self.name());
                    Err(ConnectorError::new(error.kind(), text))
                }
            }
        }
        .boxed()
    }

    fn fetch(
        &self,
        function: &str,
        arguments: Map<String, Value>,
        until: Instant,
    ) -> BoxFuture<'_, Result<FetchAnswer, ConnectorError>> {
        let function = function.to_owned();
        async move {
            let called = self.0.call(&function, arguments);
            let called = tokio::time::timeout_at(until.into(), called).await;
            let answer = called.unwrap_or_else(|_| {
                let text = "the command did not answer before the end of the cell";
                Err(ConnectorError::new(ConnectorErrorKind::Timeout, text))
            });
            answer.map_err(|error| error.of_call(self.name(), &function))
        }
        .boxed()
    }

    fn memo(&self) -> MemoPolicy {
        self.0.options().calls.memo
    }

    fn redaction(&self) -> &Redaction {
        &self.0.options().redaction
    }
}
