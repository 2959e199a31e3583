//! `/ping` and `/metrics`.

use axum::Json;
use axum::extract::State as Given;
use cellblock_settings::clock;
use serde_json::{Value, json};

use super::access::ExecdSandbox;
use super::error::Problem;
use super::sandbox::State;
use crate::files::measure;

const MIB: u64 = 1 << 20;

pub(super) async fn ping(_: ExecdSandbox) {}

/// Measures the processors and the memory that the sandbox uses.
pub(super) async fn metrics(
    Given(state): Given<State>,
    ExecdSandbox { sandbox, .. }: ExecdSandbox,
) -> Result<Json<Value>, Problem> {
    let used = measure(&sandbox.session).await?;
    let limit = state.host.interpreter.limits().memory_bytes;
    Ok(Json(json!({
        "cpu_count": used.cpu_count,
        "cpu_used_pct": (used.cpu_used_pct / f64::from(used.cpu_count.max(1))).min(100.0),
        "mem_total_mib": limit / MIB,
        "mem_used_mib": used.mem_used / MIB,
        "timestamp": clock::unix_millis(),
    })))
}
