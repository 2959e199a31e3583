//! How responses are answered and kept.

use std::time::Duration;

use cellblock_agent::wire::Dialect;

/// How responses are answered and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseOptions {
    /// How events are told, unless a request asks for more in its header `X-Cellblock-Events`.
    pub dialect: Dialect,
    /// How long responses are kept; for ever if nothing is said. A day is the unit that makes sense.
    pub retention: Option<Duration>,
    /// How long a stream is silent before it says that it is still there.
    pub keep_alive: Duration,
    /// How long a client may not read what was written for it before its response is cancelled.
    pub patience: Duration,
    /// The most background responses that run at once. Others wait as `queued`.
    pub background: usize,
    /// The most background responses that wait. More are refused.
    pub queue: usize,
    /// How long a WebSocket may be open.
    pub socket: Duration,
}

impl Default for ResponseOptions {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            retention: Some(Duration::from_hours(30 * 24)),
            keep_alive: Duration::from_secs(15),
            patience: Duration::from_mins(1),
            background: 32,
            queue: 256,
            socket: Duration::from_hours(1),
        }
    }
}
