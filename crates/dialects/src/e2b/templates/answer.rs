//! Templates and builds as the API answers them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::super::control::{ENVD_VERSION, processors};
use super::super::state::E2b;
use super::builds::{BuildReason, BuildStatus, TemplateBuild, time_of};
use super::index::{BuildRecord, KeptTemplate};
use super::log::LogEntry;

const MIB: u64 = 1 << 20;

/// Status of a build, with a part of its log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusAnswer {
    #[serde(rename = "templateID")]
    pub(super) template: String,
    #[serde(rename = "buildID")]
    pub(super) build: String,
    pub(super) status: BuildStatus,
    /// Only old clients read it.
    pub(super) logs: [String; 0],
    pub(super) log_entries: Vec<LogEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<BuildReason>,
}

/// Answers a request for a build.
pub(super) fn requested(build: &TemplateBuild) -> Value {
    json!({
        "templateID": build.name, "buildID": build.id, "public": false, "names": [build.name],
        "aliases": [build.name], "tags": build.tags,
    })
}

/// Describes a template; with its builds if that is requested.
pub(super) fn template(e2b: &E2b, name: &str, kept: &KeptTemplate, with_builds: bool) -> Value {
    let limits = e2b.host.interpreter.limits();
    let (cpus, memory) = (processors(limits.cpu_millis), limits.memory_bytes / MIB);
    let builds: BTreeMap<_, _> = kept
        .index
        .builds
        .iter()
        .map(|(id, it)| (it.created_ms, (id, it)))
        .collect();
    let newest = builds.last_key_value().map(|(_, (id, _))| (*id).clone());
    let time = |build: Option<(&u64, &(&String, &BuildRecord))>| {
        time_of(build.map(|(created, _)| *created).unwrap_or_default())
    };
    let mut answer = json!({
        "templateID": name, "buildID": newest.unwrap_or_default(), "cpuCount": cpus, "memoryMB": memory,
        "diskSizeMB": limits.disk_bytes / MIB, "public": false, "aliases": [name], "names": [name],
        "createdAt": time(builds.first_key_value()), "updatedAt": time(builds.last_key_value()),
        "createdBy": null, "lastSpawnedAt": null, "spawnCount": 0, "buildCount": builds.len(),
        "envdVersion": ENVD_VERSION, "buildStatus": BuildStatus::Ready,
    });
    if with_builds {
        let one = |(created, (id, record)): (&u64, &(&String, &BuildRecord))| {
            let time = time_of(*created);
            json!({
                "buildID": id, "status": BuildStatus::Ready, "createdAt": time, "updatedAt": time,
                "finishedAt": time, "cpuCount": cpus, "memoryMB": memory,
                "diskSizeMB": record.bytes.div_ceil(MIB), "envdVersion": ENVD_VERSION,
            })
        };
        answer["builds"] = builds.iter().rev().map(one).collect();
    }
    answer
}
