//! Sandboxes as the control API answers them.

use std::collections::BTreeMap;
use std::time::SystemTime;

use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_settings::clock;
use serde::Serialize;

use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::super::volumes::VolumeMount;
use super::network::NetworkRules;

/// Version of E2B's daemon whose routes are served. Clients select features by it.
pub(in super::super) const ENVD_VERSION: &str = "0.6.4";
/// Something that old clients put after a sandbox's id.
const CLIENT: &str = "cellblock";
const MIB: u64 = 1 << 20;

/// A sandbox that was created or connected.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SandboxAnswer {
    #[serde(rename = "templateID")]
    template: String,
    #[serde(rename = "sandboxID")]
    id: String,
    #[serde(rename = "clientID")]
    client: &'static str,
    envd_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    envd_access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic_access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
}

/// A sandbox in detail.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    #[serde(flatten)]
    connected: SandboxAnswer,
    started_at: String,
    end_at: String,
    cpu_count: u64,
    #[serde(rename = "memoryMB")]
    memory: u64,
    #[serde(rename = "diskSizeMB")]
    disk: u64,
    metadata: BTreeMap<String, String>,
    state: &'static str,
    allow_internet_access: bool,
    network: NetworkRules,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volume_mounts: Vec<VolumeMount>,
    lifecycle: Lifecycle,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Lifecycle {
    auto_resume: bool,
    on_timeout: &'static str,
}

impl SandboxAnswer {
    pub(super) fn of(e2b: &E2b, held: &HeldSandbox) -> Self {
        let kept = &held.kept;
        Self {
            template: kept.template.clone(),
            id: held.id.clone(),
            client: CLIENT,
            envd_version: ENVD_VERSION,
            envd_access_token: kept.access.as_ref().map(|it| it.text().to_owned()),
            traffic_access_token: kept.traffic.as_ref().map(|it| it.text().to_owned()),
            domain: e2b.options.domain.clone(),
        }
    }
}

impl Detail {
    /// The sandbox, with its tokens if `opens`.
    pub(super) fn of(e2b: &E2b, held: &HeldSandbox, opens: bool) -> Self {
        let limits = e2b.host.interpreter.limits();
        let life = *held.kept.life.borrow();
        let network = held.kept.rules.lock().clone();
        let mut connected = SandboxAnswer::of(e2b, held);
        if !opens {
            connected.envd_access_token = None;
            connected.traffic_access_token = None;
        }
        Self {
            connected,
            started_at: iso(held.kept.started),
            end_at: iso(life.end),
            cpu_count: processors(limits.cpu_millis),
            memory: limits.memory_bytes / MIB,
            disk: limits.disk_bytes / MIB,
            metadata: held.kept.metadata.clone(),
            state: life.state.name(),
            allow_internet_access: held.session.network() == NetworkPolicy::Egress && !network.is_closed(),
            network,
            volume_mounts: held.kept.mounts.clone(),
            lifecycle: Lifecycle {
                auto_resume: life.resumes,
                on_timeout: if life.pauses { "pause" } else { "kill" },
            },
        }
    }
}

/// Number of processors: those of the limit, or of the machine.
pub(in super::super) fn processors(millis: Option<u64>) -> u64 {
    let machine = || std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
    millis.map_or_else(machine, |it| it.div_ceil(1000).max(1))
}

/// Returns a time in UTC as `2026-01-31T12:00:00.000000Z`.
pub(in super::super) fn iso(time: SystemTime) -> String {
    let since = clock::since_epoch(time);
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    let time = chrono::DateTime::from_timestamp(seconds, since.subsec_nanos()).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_are_in_utc() {
        let time = UNIX_EPOCH + Duration::from_micros(1_709_210_096_000_789);
        assert_eq!(iso(time), "2024-02-29T12:34:56.000789Z");
    }
}
