//! Options of uploads.

use std::path::PathBuf;
use std::time::Duration;

use cellblock_interpreter::hosting::uploads::UploadLimits;
use cellblock_settings::{Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Uploads that are being received, on every route and in every dialect. They stand in `uploads`
/// below `CELLBLOCK_HOME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UploadOptions {
    /// Maximum size of all uploads that are being received at a time.
    #[serde(with = "Size")]
    pub max_bytes: u64,
    /// Maximum size of the uploads of one key that are being received at a time.
    #[serde(with = "Size")]
    pub max_bytes_per_key: u64,
    /// Maximum duration of an upload.
    #[serde(with = "Time")]
    pub timeout: Duration,
    /// Folder in which they stand; the system's for temporary files if there is none.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
}

impl Default for UploadOptions {
    fn default() -> Self {
        let UploadLimits {
            max_bytes,
            max_bytes_per_owner,
            timeout,
        } = UploadLimits::default();
        Self {
            max_bytes,
            max_bytes_per_key: max_bytes_per_owner,
            timeout,
            folder: None,
        }
    }
}

impl From<&UploadOptions> for UploadLimits {
    fn from(options: &UploadOptions) -> Self {
        Self {
            max_bytes: options.max_bytes,
            max_bytes_per_owner: options.max_bytes_per_key,
            timeout: options.timeout,
        }
    }
}
