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
    /// The most that an owner has at a time.
    pub(crate) per_owner: usize,
    /// How long a session lives while nothing is asked of it, unless it says.
    pub(crate) idle: Time,
    /// The longest such time that one may ask for.
    pub(crate) max_idle: Time,
    /// How many finished cells a session keeps.
    pub(crate) cells: usize,
    /// The largest upload: a file, an input or a dataset.
    pub(crate) max_upload: Bytes,
    /// The most of all inputs and datasets of one session.
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
