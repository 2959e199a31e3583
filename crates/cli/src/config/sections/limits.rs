//! Limits of a sandbox and its code.

use std::time::Duration;

use cellblock_interpreter::limits::{
    Limits as Enforced, MAX_CELL_TIMEOUT, MIN_MEMORY, MIN_OPEN_FILES, MIN_PROCESSES, NetworkPolicy,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check::Check;
use cellblock_settings::{Size, Time};

/// Limits of a sandbox and its code.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limits")]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsSection {
    /// Maximum memory of a sandbox, for all its processes and files together.
    pub(crate) memory: Size,
    /// Number of CPUs, which may be a fraction; unlimited by default.
    pub(crate) cpus: Option<f64>,
    /// Maximum number of processes and threads.
    pub(crate) processes: u64,
    /// Maximum number of open descriptors per process.
    pub(crate) open_files: u64,
    /// Maximum size of `/workspace`, and of `/tmp`.
    pub(crate) disk: Size,
    /// Maximum size of all inputs under `/tmp/data`.
    pub(crate) data: Size,
    /// Default timeout of a cell.
    pub(crate) cell_timeout: Time,
    /// Maximum cell timeout that a request can set.
    pub(crate) max_cell_timeout: Time,
    /// Widest network policy that a request can set: `none`, `loopback` for servers on `127.0.0.1`
    /// and `::1` inside the sandbox, or `egress`, which adds the hosts of `egress.allow`. Code has no
    /// network unless a request sets one.
    #[schemars(with = "String")]
    pub(crate) max_network: NetworkPolicy,
    /// Maximum number of files collected after a cell.
    pub(crate) files: u32,
    /// Maximum size of a collected file.
    pub(crate) file: Size,
    /// Maximum size of stdout and stderr together; code that writes more is stopped.
    pub(crate) streams: Size,
}

impl Default for LimitsSection {
    fn default() -> Self {
        let limits = Enforced::default();
        Self {
            memory: Size(limits.memory_bytes),
            cpus: None,
            processes: limits.processes,
            open_files: limits.open_files,
            disk: Size(limits.disk_bytes),
            data: Size(limits.data_bytes),
            cell_timeout: Time(limits.cell_timeout),
            max_cell_timeout: Time(MAX_CELL_TIMEOUT),
            max_network: NetworkPolicy::None,
            files: limits.files,
            file: Size(limits.collected_file_bytes),
            streams: Size(limits.stream_bytes),
        }
    }
}

impl LimitsSection {
    pub(in crate::config) fn check(&self, check: &mut Check<'_>) {
        if self.memory.0 < MIN_MEMORY {
            check.wrong(
                &["limits", "memory"],
                "must be at least 32MiB, which a kernel needs",
            );
        }
        if self.cpus.is_some_and(|cpus| !(0.01..=4096.0).contains(&cpus)) {
            check.wrong(&["limits", "cpus"], "must be from 0.01 to 4096");
        }
        if self.processes < MIN_PROCESSES {
            check.wrong(
                &["limits", "processes"],
                "must be at least 8, which a kernel and its threads need",
            );
        }
        if self.open_files < MIN_OPEN_FILES {
            check.wrong(
                &["limits", "open_files"],
                "must be at least 64, which a kernel needs",
            );
        }
        check.positive(&["limits", "cell_timeout"], self.cell_timeout.0);
        check.below_maximum(
            &["limits", "cell_timeout"],
            self.cell_timeout.0,
            self.max_cell_timeout.0,
        );
    }

    /// Returns the limits that the interpreter enforces.
    pub(crate) fn enforced(&self) -> Enforced {
        Enforced {
            memory_bytes: self.memory.0,
            cpu_millis: self.cpus.map(millis),
            processes: self.processes,
            open_files: self.open_files,
            disk_bytes: self.disk.0,
            data_bytes: self.data.0,
            stream_bytes: self.streams.0,
            files: self.files,
            collected_file_bytes: self.file.0,
            cell_timeout: self.cell_timeout.0,
            ..Enforced::default()
        }
    }
}

/// Thousandths. The range is checked before.
fn millis(cpus: f64) -> u64 {
    let share = Duration::try_from_secs_f64(cpus).unwrap_or_default();
    u64::try_from(share.as_millis()).unwrap_or(u64::MAX)
}
