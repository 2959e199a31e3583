//! Sessions of the REST API.

use cellblock_gateway::{Options, SessionsOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use crate::config::units::{Bytes, Time};

/// Sessions of the REST API, `/v1/sessions`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sessions {
    /// Maximum number of sessions at a time per owner.
    pub(crate) per_owner: usize,
    /// Default idle timeout of a session.
    pub(crate) idle: Time,
    /// Maximum idle timeout that a request can set.
    pub(crate) max_idle: Time,
    /// Number of finished cells that a session keeps.
    pub(crate) cells: usize,
    /// Maximum size of an upload: a file, an input or a dataset.
    pub(crate) max_upload: Bytes,
    /// Maximum size of all inputs and datasets of a session.
    pub(crate) data: Bytes,
}

impl Default for Sessions {
    fn default() -> Self {
        let options = SessionsOptions::default();
        Self {
            per_owner: options.per_owner,
            idle: Time(options.idle),
            max_idle: Time(options.longest_idle),
            cells: options.cells,
            max_upload: Bytes(options.upload_bytes),
            data: Bytes(options.data_bytes),
        }
    }
}

impl Sessions {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.sessions = SessionsOptions {
            per_owner: self.per_owner,
            idle: self.idle.0,
            longest_idle: self.max_idle.0,
            cells: self.cells,
            upload_bytes: self.max_upload.0,
            data_bytes: self.data.0,
            ..SessionsOptions::default()
        };
    }

    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        check.positive(&["sessions", "idle"], self.idle);
        if self.idle > self.max_idle {
            let (time, most) = (self.idle, self.max_idle);
            let message =
                format!("{time} are more than `sessions.max_idle`, {most}; raise that one, or lower this");
            check.wrong(&["sessions", "idle"], message);
        }
    }
}
