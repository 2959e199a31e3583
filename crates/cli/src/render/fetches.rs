//! Shows what the code of a cell fetched, one call per line.

use cellblock_interpreter::Execution;
use cellblock_interpreter::connector::FetchRecord;
use cellblock_settings::Size;
use serde_json::Value;

use super::table::{grouped, plural};
use super::{BAD, FAINT, styled};
use crate::sanitize;

/// The calls, in the order of their starts; nothing if there were none.
pub(crate) fn draw(execution: &Execution) -> Option<String> {
    let mut lines: Vec<_> = execution.fetches.iter().map(drawn).collect();
    if execution.fetches_dropped > 0 {
        let dropped = u64::from(execution.fetches_dropped);
        lines.push(styled(
            FAINT,
            &format!("… {} more {}", grouped(dropped), plural(dropped, "call")),
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn drawn(fetch: &FetchRecord) -> String {
    let arguments = Value::Object(fetch.arguments.clone());
    let call = format!("{}.{}({arguments})", fetch.connector, fetch.function);
    let call = sanitize::line(&call);
    if let Some(error) = &fetch.error {
        let failure = format!("{}: {}", fetch.outcome, sanitize::line(error));
        return format!("{call}  {}", styled(BAD, &failure));
    }
    let rows = fetch
        .row_count
        .map(|rows| format!("{} {}", grouped(rows), plural(rows, "row")));
    let cached = match (fetch.outcome, fetch.cached) {
        ("ok", true) => Some("cached".to_owned()),
        ("ok", false) => None,
        (outcome, _) => Some(outcome.to_owned()),
    };
    let facts = [
        rows,
        fetch.bytes.map(|bytes| Size(bytes).to_string()),
        Some(format!("{:.1} ms", fetch.duration_ms)),
        cached,
    ];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    format!("{call}  {}", styled(FAINT, &facts.join(", ")))
}
