//! Objects of the API for containers and their files, and the requests of clients.

use cellblock_agent::wire::ApiError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::records::{ContainerFileRow, ContainerRow};
use crate::state::network::RawPolicy;

/// The body of `POST /v1/containers`.
#[derive(Debug, Deserialize)]
pub(super) struct Create {
    pub(super) name: String,
    #[serde(default)]
    pub(super) file_ids: Option<Vec<String>>,
    #[serde(default)]
    pub(super) expires_after: Option<ExpiresAfter>,
    #[serde(default)]
    pub(super) memory_limit: Option<String>,
    #[serde(default)]
    pub(super) network_policy: Option<RawPolicy>,
    #[serde(default)]
    pub(super) skills: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExpiresAfter {
    pub(super) anchor: String,
    pub(super) minutes: u64,
}

impl Create {
    /// Refuses what no container can have.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let invalid = |param: &str, message: String| Err(ApiError::invalid(param, "invalid_value", message));
        if let Some(after) = &self.expires_after
            && after.anchor != "last_active_at"
        {
            let message = format!(
                "`expires_after.anchor` is `{}`; it can be `last_active_at`",
                after.anchor
            );
            return invalid("expires_after.anchor", message);
        }
        let length = self.name.chars().count();
        if !(1..=256).contains(&length) {
            let message = format!("`name` has {length} characters; it can have 1 to 256");
            return invalid("name", message);
        }
        Ok(())
    }
}

/// A container.
pub(super) fn container(row: &ContainerRow, running: bool) -> Value {
    let network_policy = match &row.allowed_domains {
        None => json!({"type": "disabled"}),
        Some(domains) => json!({"type": "allowlist", "allowed_domains": domains}),
    };
    json!({
        "id": row.id,
        "object": "container",
        "created_at": row.created_ms / 1000,
        "last_active_at": row.active_ms / 1000,
        "name": row.name,
        "status": if running { "running" } else { "expired" },
        "expires_after": {"anchor": "last_active_at", "minutes": minutes(row.idle_ms)},
        "memory_limit": row.memory_limit,
        "network_policy": network_policy,
    })
}

/// Minutes, of which a part counts as a whole one.
fn minutes(ms: i64) -> i64 {
    ms.saturating_add(59_999) / 60_000
}

/// A container's file.
pub(super) fn file(row: &ContainerFileRow) -> Value {
    json!({
        "id": row.id,
        "object": "container.file",
        "bytes": row.bytes,
        "container_id": row.container,
        "created_at": row.created_ms / 1000,
        "path": row.path,
        "source": row.source,
    })
}
