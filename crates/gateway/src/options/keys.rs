//! Options of keys: when one is required, and what it allows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Authentication. Create keys with `cellblock key create`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthOptions {
    /// Require an API key even if none has been created. Beyond loopback, and once a key exists, a
    /// key is always required.
    pub required: bool,
}

/// Default quotas of a key. `null` removes a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaOptions {
    /// Sessions and containers that exist at the same time.
    pub sandboxes: Option<u64>,
    /// Cells and commands that run at the same time.
    pub concurrent_cells: Option<u64>,
    /// Cells and commands started per minute.
    pub cells_per_minute: Option<u64>,
    /// Seconds that cells and commands may run per day (UTC).
    pub cell_seconds_per_day: Option<u64>,
    /// Requests of connectors that code makes per minute. Equal calls of a session are one request.
    pub fetches_per_minute: Option<u64>,
    /// Bytes that code fetches with connectors per day (UTC).
    pub fetched_bytes_per_day: Option<u64>,
    /// Bytes uploaded per day (UTC).
    pub upload_bytes_per_day: Option<u64>,
    /// Bytes of stored files, volumes, tool results, responses and conversations.
    pub stored_bytes: Option<u64>,
}

impl Default for QuotaOptions {
    fn default() -> Self {
        Self {
            sandboxes: Some(20),
            concurrent_cells: Some(64),
            cells_per_minute: Some(600),
            cell_seconds_per_day: Some(100 * 3600),
            fetches_per_minute: Some(600),
            fetched_bytes_per_day: Some(10 << 30),
            upload_bytes_per_day: Some(10 << 30),
            stored_bytes: Some(20 << 30),
        }
    }
}

/// Sandboxes for other Cellblocks, `GET /v1/sandbox`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RemoteOptions {
    /// Provide sandboxes to other Cellblocks, whose `sandbox_url` is this server. Clients with a
    /// key can then run any code in them, without the quotas on cells.
    pub serve: bool,
}
