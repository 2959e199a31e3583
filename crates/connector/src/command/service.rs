//! A program that is kept running: started on first use, and again after its end.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind, Redaction};
use cellblock_settings::Time;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::ProgramOptions;
use super::calls::FetchOutcome;
use super::running::CommandProcess;
use crate::options::CallOptions;
use crate::process::ProgramLaunch;

/// Maximum time between starts of a program that always fails.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Makes a program ready to be started.
pub(crate) type PrepareProgram =
    Arc<dyn Fn() -> BoxFuture<'static, Result<ProgramLaunch, ConnectorError>> + Send + Sync>;

/// A program, with one process for all sessions.
#[derive(Clone)]
pub(super) struct CommandService(Arc<CommandServiceInner>);

struct CommandServiceInner {
    options: CommandServiceOptions,
    /// Further fields of the request for functions.
    greeting: Map<String, Value>,
    prepare: PrepareProgram,
    state: Mutex<ServiceState>,
}

/// Options of a service.
#[derive(Clone, Debug)]
pub(super) struct CommandServiceOptions {
    pub(super) label: String,
    pub(super) calls: CallOptions,
    pub(super) program: ProgramOptions,
    pub(super) redaction: Redaction,
}

#[derive(Debug, Default)]
struct ServiceState {
    running: Option<Arc<CommandProcess>>,
    /// Number of ends in a row without an answered call, with the time and the reason of the last one.
    failed: Option<(u32, Instant, ConnectorError)>,
}

impl fmt::Debug for CommandService {
    /// Without the greeting, which may have secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandService")
            .field("label", &self.0.options.label)
            .finish_non_exhaustive()
    }
}

impl CommandService {
    pub(super) fn new(
        options: CommandServiceOptions,
        greeting: Map<String, Value>,
        prepare: PrepareProgram,
    ) -> Self {
        Self(Arc::new(CommandServiceInner {
            options,
            greeting,
            prepare,
            state: Mutex::default(),
        }))
    }

    pub(super) fn options(&self) -> &CommandServiceOptions {
        &self.0.options
    }

    /// Calls a function.
    pub(super) async fn call(&self, function: &str, arguments: Map<String, Value>) -> FetchOutcome {
        let running = self.running().await?;
        if running.cards.iter().all(|card| card.name != function) {
            let text = format!("the command does not offer the function `{function}` any more");
            return Err(ConnectorError::new(ConnectorErrorKind::InvalidParameter, text));
        }
        running.call(function, arguments).await
    }

    /// Returns the process, which is started if there is none. A start that nobody waits for any
    /// more goes on.
    pub(super) async fn running(&self) -> Result<Arc<CommandProcess>, ConnectorError> {
        let inner = Arc::clone(&self.0);
        let started = tokio::spawn(async move {
            let mut state = inner.state.lock().await;
            inner.started(&mut state).await
        });
        let limit = self.0.options.program.start_timeout;
        match tokio::time::timeout(limit + GRACE, started).await {
            Ok(Ok(running)) => running,
            Ok(Err(_)) => Err(ConnectorError::provider("the start of the command was canceled")),
            Err(_) => {
                let text = format!(
                    "the command is not ready after {}, the limit `start_timeout`; its start goes on, so \
                     try again later",
                    Time(limit)
                );
                Err(ConnectorError::new(ConnectorErrorKind::Timeout, text))
            }
        }
    }
}

/// Time in which a start reports its own timeout.
const GRACE: Duration = Duration::from_millis(500);

impl CommandServiceInner {
    async fn started(&self, state: &mut ServiceState) -> Result<Arc<CommandProcess>, ConnectorError> {
        if let Some(running) = &state.running {
            running.end_if_stuck();
            let Some((when, why, useful)) = running.ended() else {
                return Ok(Arc::clone(running));
            };
            state.running = None;
            if useful {
                state.failed = None;
            } else {
                state.fail(when, why);
            }
        }
        state.check_pause()?;
        let started = async {
            let launch = (self.prepare)().await?;
            CommandProcess::start(&self.options, &launch, &self.greeting).await
        };
        match started.await {
            Ok(running) => {
                let running = Arc::new(running);
                state.running = Some(Arc::clone(&running));
                Ok(running)
            }
            Err(error) => {
                tracing::warn!(
                    connector = self.options.label,
                    error = %self.options.redaction.text(&error.to_string()),
                    "a connector's command could not be started"
                );
                state.fail(Instant::now(), error.clone());
                Err(error)
            }
        }
    }
}

impl ServiceState {
    fn fail(&mut self, when: Instant, why: ConnectorError) {
        let times = self.failed.take().map_or(0, |(times, ..)| times);
        self.failed = Some((times + 1, when, why));
    }

    /// Fails as long as a program that has failed repeatedly is not started again.
    fn check_pause(&self) -> Result<(), ConnectorError> {
        let Some((times, when, why)) = &self.failed else {
            return Ok(());
        };
        let Some(doublings) = times.checked_sub(2) else {
            return Ok(());
        };
        let pause = Duration::from_secs(1 << doublings.min(6)).min(LONGEST_PAUSE);
        let left = pause.saturating_sub(when.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let text = format!(
            "{why} (it has failed {times} times in a row, and is started again in {} s at the earliest)",
            left.as_secs() + 1
        );
        Err(ConnectorError::new(why.kind(), text))
    }
}
