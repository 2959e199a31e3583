//! Resources that the sandbox of a session uses.

use cellblock_sandbox::backend::Usage;
use serde::Serialize;

use crate::error::Result;
use crate::session::runtime::Runtime;

/// Resources that the sandbox of a session uses. What its host does not count is absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SessionUsage {
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Most memory that it used so far, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// Number of processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// CPU time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
}

impl From<Usage> for SessionUsage {
    fn from(usage: Usage) -> Self {
        // A sandbox that lives has some of each.
        let counted = |count: u64| (count > 0).then_some(count);
        Self {
            memory_bytes: counted(usage.memory_bytes),
            memory_peak_bytes: counted(usage.memory_peak_bytes),
            processes: counted(usage.processes),
            cpu_ms: counted(usage.cpu_ns).map(|nanoseconds| nanoseconds / 1_000_000),
        }
    }
}

impl Runtime {
    /// No sandbox is made for this.
    pub(in crate::session) async fn usage(&self) -> Result<Option<SessionUsage>> {
        match &self.sandbox {
            Some(sandbox) => Ok(Some(sandbox.usage().await?.into())),
            None => Ok(None),
        }
    }
}
