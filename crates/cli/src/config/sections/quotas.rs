//! What a key is allowed that says nothing else.

use cellblock_gateway::Options;
use cellblock_gateway::quotas::{Quota, QuotaOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default quotas of a key. `null` removes a limit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Quotas {
    /// Sessions and containers that exist at the same time.
    pub(crate) sandboxes: Option<u64>,
    /// Cells and commands that run at the same time.
    pub(crate) concurrent_cells: Option<u64>,
    /// Cells and commands started per minute.
    pub(crate) cells_per_minute: Option<u64>,
    /// Seconds that cells and commands may run per day (UTC).
    pub(crate) cell_seconds_per_day: Option<u64>,
    /// Bytes uploaded per day (UTC).
    pub(crate) upload_bytes_per_day: Option<u64>,
    /// Bytes of stored files and tool results.
    pub(crate) stored_bytes: Option<u64>,
}

impl Default for Quotas {
    fn default() -> Self {
        let allowed = QuotaOptions::default().per_key;
        let most = |quota| {
            allowed
                .iter()
                .find(|(other, _)| *other == quota)
                .and_then(|(_, most)| most)
        };
        Self {
            sandboxes: most(Quota::Sandboxes),
            concurrent_cells: most(Quota::ConcurrentCells),
            cells_per_minute: most(Quota::CellsPerMinute),
            cell_seconds_per_day: most(Quota::CellSecondsPerDay),
            upload_bytes_per_day: most(Quota::UploadBytesPerDay),
            stored_bytes: most(Quota::StoredBytes),
        }
    }
}

impl Quotas {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        let mut per_key = QuotaOptions::default().per_key;
        for (quota, most) in [
            (Quota::Sandboxes, self.sandboxes),
            (Quota::ConcurrentCells, self.concurrent_cells),
            (Quota::CellsPerMinute, self.cells_per_minute),
            (Quota::CellSecondsPerDay, self.cell_seconds_per_day),
            (Quota::UploadBytesPerDay, self.upload_bytes_per_day),
            (Quota::StoredBytes, self.stored_bytes),
        ] {
            per_key = per_key.with(quota, most);
        }
        options.quotas = QuotaOptions { per_key };
    }
}
