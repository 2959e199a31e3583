//! `/ping` and `/metrics`.

use axum::Json;
use cellblock_interpreter::Session;
use cellblock_settings::clock;
use serde_json::{Value, json};

use super::access::ExecdSandbox;
use super::error::Problem;
use super::program;

pub(super) async fn ping(_: ExecdSandbox) {}

/// Reads the processors and the memory as programs of the sandbox see them.
pub(super) async fn metrics(ExecdSandbox { sandbox, .. }: ExecdSandbox) -> Result<Json<Value>, Problem> {
    let seen = measured(&sandbox.session).await?;
    let number = |name: &str| seen[name].as_f64().filter(|it| it.is_finite() && *it >= 0.0);
    let mib = |name: &str| number(name).unwrap_or_default() / 1_048_576.0;
    Ok(Json(json!({
        "cpu_count": number("processors").unwrap_or(1.0),
        "cpu_used_pct": number("used").unwrap_or_default().min(100.0),
        "mem_total_mib": mib("memory"),
        "mem_used_mib": mib("memory_used"),
        "timestamp": clock::unix_millis(),
    })))
}

async fn measured(session: &Session) -> Result<Value, Problem> {
    program::ask(session, &json!({"do": "measure"})).await
}
