//! The sandbox server, `POST /execute`.

use cellblock_gateway::{ExecuteOptions, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::{Bytes, Time};

/// The sandbox server, `POST /execute`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Execute {
    /// Maximum number of concurrent executions; further requests are asked to retry later.
    pub(crate) concurrent: usize,
    /// Default timeout of a program.
    pub(crate) timeout: Time,
    /// Maximum timeout that a request can set.
    pub(crate) max_timeout: Time,
    /// Maximum size of a request.
    pub(crate) max_body: Bytes,
}

impl Default for Execute {
    fn default() -> Self {
        let options = ExecuteOptions::default();
        Self {
            concurrent: options.concurrent,
            timeout: Time(options.timeout),
            max_timeout: Time(options.longest),
            max_body: Bytes(u64::try_from(options.max_body).unwrap_or(u64::MAX)),
        }
    }
}

impl Execute {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.execute = ExecuteOptions {
            concurrent: self.concurrent,
            timeout: self.timeout.0,
            longest: self.max_timeout.0,
            max_body: usize::try_from(self.max_body.0).unwrap_or(usize::MAX),
            ..ExecuteOptions::default()
        };
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["execute", "timeout"], self.timeout);
        if self.concurrent == 0 {
            check.wrong(
                &["execute", "concurrent"],
                "0 executions are none; write 1 or more",
            );
        }
        if self.timeout > self.max_timeout {
            let (time, most) = (self.timeout, self.max_timeout);
            let message =
                format!("{time} are more than `execute.max_timeout`, {most}; raise that one, or lower this");
            check.wrong(&["execute", "timeout"], message);
        }
    }
}
