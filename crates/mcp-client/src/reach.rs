//! The connection to a server: established on first use, kept, and restored when it is lost, with
//! growing pauses.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ErrorCode;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::connection::{Connection, Era};
use super::failure::Failure;
use super::options::ServerOptions;
use super::wire::Wire;
use super::{Transport, http, stdio};

/// Pause after the first failure; each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The connection to a server, and its history.
#[derive(Debug)]
pub(super) struct Reach {
    label: String,
    transport: Transport,
    state: Mutex<ReachState>,
}

#[derive(Debug, Default)]
struct ReachState {
    connection: Option<Arc<Connection>>,
    failures: u32,
    last: Option<(Failure, Instant)>,
}

impl ReachState {
    /// Returns the pause after the last failure.
    fn wait(&self) -> Duration {
        let doubled = FIRST_WAIT.saturating_mul(1 << self.failures.saturating_sub(1).min(10));
        doubled.min(LONGEST_WAIT)
    }

    fn waiting(&self, now: Instant) -> Option<Failure> {
        let (last, at) = self.last.as_ref()?;
        let since = now.saturating_duration_since(*at);
        let left = self.wait().checked_sub(since).filter(|left| !left.is_zero())?;
        Some(Failure::Waiting {
            last: Box::new(last.clone()),
            since,
            left,
        })
    }

    fn failed(&mut self, failure: Failure, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some((failure, now));
    }
}

impl Reach {
    pub(super) fn new(label: String, transport: Transport) -> Self {
        Self {
            label,
            transport,
            state: Mutex::default(),
        }
    }

    /// Returns the current connection, or a new one.
    pub(super) async fn connection(&self, options: &ServerOptions) -> Result<Arc<Connection>, Failure> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            // Over HTTP, a hanging request does not block the next one.
            let stands_alone = matches!(self.transport, Transport::Http(_));
            if connection.is_alive() && (stands_alone || connection.answers().await) {
                return Ok(Arc::clone(connection));
            }
            state.connection = None;
        }
        if let Some(failure) = state.waiting(Instant::now()) {
            return Err(failure);
        }
        match self.connect(options).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                tracing::info!(
                    server = self.label,
                    revision = connection.revision(),
                    "connected to a server of tools"
                );
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(failure) => {
                state.failed(failure.clone(), Instant::now());
                Err(failure)
            }
        }
    }

    /// Drops a useless connection; its current users may finish with it.
    pub(super) async fn give_up(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state
            .connection
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, connection))
        {
            state.connection = None;
        }
    }

    /// Records that the server failed although it was connected, which starts a pause.
    pub(super) async fn failed(&self, failure: Failure) {
        self.state.lock().await.failed(failure, Instant::now());
    }

    /// Records that the server responded properly.
    pub(super) async fn succeeded(&self) {
        let mut state = self.state.lock().await;
        state.failures = 0;
        state.last = None;
    }

    async fn connect(&self, options: &ServerOptions) -> Result<Connection, Failure> {
        let limit = options.connect_timeout;
        let connected = timeout(limit, async {
            match self.start(options, Era::Newest).await {
                // Some servers of earlier revisions exit when they receive an unknown request.
                Err(Failure::Ended { .. }) if matches!(self.transport, Transport::Stdio(_)) => {
                    self.start(options, Era::Before).await
                }
                // After some seconds without an answer, the library takes a server for one of an
                // earlier revision.
                Err(Failure::Refused { code, .. }) if code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0 => {
                    self.start(options, Era::NewestOnly).await
                }
                other => other,
            }
        });
        connected.await.unwrap_or_else(|_| {
            Err(Failure::Silent {
                what: "was not ready".to_owned(),
                time: limit,
                limit: "connect_timeout",
                repair: "continue without it, or try again later",
            })
        })
    }

    async fn start(&self, options: &ServerOptions, era: Era) -> Result<Connection, Failure> {
        let wire = Arc::new(Wire::new(options.max_result));
        match &self.transport {
            Transport::Stdio(program) => {
                let transport = stdio::start(program, &self.label, Arc::clone(&wire))?;
                Connection::start(transport, wire, era).await
            }
            Transport::Http(address) => {
                let transport = http::start(address, options.connect_timeout, Arc::clone(&wire))?;
                Connection::start(transport, wire, era).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_after_failures_grow() {
        let mut state = ReachState::default();
        let now = Instant::now();
        assert!(state.waiting(now).is_none());
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            state.failed(Failure::Unreachable(None), now);
            let wait = Duration::from_secs(seconds);
            let early = now + wait - Duration::from_millis(1);
            assert!(
                matches!(state.waiting(early), Some(Failure::Waiting { .. })),
                "{seconds}"
            );
            assert!(state.waiting(now + wait).is_none(), "{seconds}");
        }
    }
}
