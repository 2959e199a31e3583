//! Options of volumes.

use cellblock_settings::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Volumes: folders of files that outlive the sessions that write them, `/v1/volumes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VolumeOptions {
    /// Maximum size of all files of a volume.
    #[serde(with = "Size")]
    pub max_bytes: u64,
    /// Maximum number of files of a volume.
    pub max_files: u32,
    /// Maximum number of volumes per key.
    pub max_per_key: usize,
}

impl Default for VolumeOptions {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            max_files: 10_000,
            max_per_key: 100,
        }
    }
}
