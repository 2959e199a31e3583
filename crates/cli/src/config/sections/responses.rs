//! Responses that are kept, and those that run in the background.

use cellblock_gateway::{Options, ResponseOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::Time;

/// Responses that are kept, and those that run in the background.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Responses {
    /// How long they are kept; `null` keeps them for ever.
    pub(crate) retention: Option<Time>,
    /// How long a stream is silent before it says that it is still there.
    pub(crate) keep_alive: Time,
    /// How long a client may not read what was written for it before its response is cancelled.
    pub(crate) patience: Time,
    /// The most background responses that run at once; others wait.
    pub(crate) background: usize,
    /// The most that wait; more are refused.
    pub(crate) queue: usize,
    /// How long a WebSocket may be open.
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
