//! Responses that are kept, and those that run in the background.

use cellblock_gateway::{Options, ResponseOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::Time;

/// Stored and background responses.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Responses {
    /// How long responses are kept; `null` keeps them forever.
    pub(crate) retention: Option<Time>,
    /// Interval of keep-alive comments in a silent stream.
    pub(crate) keep_alive: Time,
    /// How long a client may stop reading before its response is canceled.
    pub(crate) patience: Time,
    /// Maximum number of background responses that run at the same time; others wait.
    pub(crate) background: usize,
    /// Maximum number of waiting background responses; more are rejected.
    pub(crate) queue: usize,
    /// Maximum duration of a WebSocket.
    pub(crate) socket: Time,
}

impl Default for Responses {
    fn default() -> Self {
        let options = ResponseOptions::default();
        Self {
            retention: options.retention.map(Time),
            keep_alive: Time(options.keep_alive),
            patience: Time(options.patience),
            background: options.background,
            queue: options.queue,
            socket: Time(options.socket),
        }
    }
}

impl Responses {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.responses = ResponseOptions {
            retention: self.retention.map(|time| time.0),
            keep_alive: self.keep_alive.0,
            patience: self.patience.0,
            background: self.background,
            queue: self.queue,
            socket: self.socket.0,
            ..ResponseOptions::default()
        };
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["responses", "keep_alive"], self.keep_alive);
        check.positive(&["responses", "patience"], self.patience);
        check.positive(&["responses", "socket"], self.socket);
    }
}
