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

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{
    Card, Connector, ConnectorError, ConnectorErrorKind, FetchAnswer, MemoPolicy, Redaction,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::given::GivenValues;
use crate::mistake::OptionMistake;
use crate::options::ConnectorOptions;
use crate::process::ProgramLaunch;
pub(crate) use service::{CommandService, CommandServiceOptions, PrepareProgram};

/// Variables that a program inherits. All others may be secrets.
pub(crate) const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// A connector of the type `command`.
#[derive(Debug)]
pub struct CommandConnector {
    name: String,
    description: String,
    memo: MemoPolicy,
    service: CommandService,
}

impl CommandConnector {
    /// Compiles a connector whose program runs in `folder`, with the values of its variables. Starts nothing.
    pub fn new(
        name: &str,
        options: &ConnectorOptions,
        environment: GivenValues,
        folder: PathBuf,
    ) -> Result<Self, Vec<OptionMistake>> {
        if options.command.first().is_none_or(String::is_empty) {
            let text = "missing key `command`: the program and its arguments, such as `[python3, \
                        connectors/house.py]`";
            return Err(vec![OptionMistake::new(&[], text)]);
        }
        let launch = ProgramLaunch {
            command: options.command.clone(),
            inherited: &INHERITED,
            environment: environment.values.into_iter().collect(),
            folder: Some(folder),
        };
        let prepare: PrepareProgram = Arc::new(move || std::future::ready(Ok(launch.clone())).boxed());
        let service = CommandServiceOptions::new(name, options, Redaction::new(environment.secrets));
        Ok(Self::over(
            name,
            options,
            CommandService::new(service, Map::new(), prepare),
        ))
    }

    pub(crate) fn over(name: &str, options: &ConnectorOptions, service: CommandService) -> Self {
        Self {
            name: name.to_owned(),
            description: options.description.clone(),
            memo: options.memo,
            service,
        }
    }
}

impl Connector for CommandConnector {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn cards(&self) -> BoxFuture<'_, Result<Vec<Card>, ConnectorError>> {
        async {
            match self.service.running().await {
                Ok(running) => Ok(running.cards.clone()),
                Err(error) => {
                    let text = format!("{}: {error}", self.name);
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
            let called = self.service.call(&function, arguments);
            let called = tokio::time::timeout_at(until.into(), called).await;
            let answer = called.unwrap_or_else(|_| {
                let text = "the command did not answer before the end of the cell";
                Err(ConnectorError::new(ConnectorErrorKind::Timeout, text))
            });
            answer.map_err(|error| error.of_call(&self.name, &function))
        }
        .boxed()
    }

    fn memo(&self) -> MemoPolicy {
        self.memo
    }

    fn redaction(&self) -> &Redaction {
        self.service.redaction()
    }
}

/// The limits of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandBounds {
    /// Maximum time of a call.
    pub(crate) timeout: Duration,
    /// Maximum time of a start, with the list of functions.
    pub(crate) start_timeout: Duration,
    /// Maximum size of an answer.
    pub(crate) max_result: u64,
}
