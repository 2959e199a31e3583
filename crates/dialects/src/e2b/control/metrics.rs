//! Metrics of sandboxes: one measurement, of now. Nothing is recorded.

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use cellblock_settings::clock::{seconds_since_epoch, unix_seconds};
use serde_json::{Map, Value, json};

use super::super::body::unknown_parameter;
use super::super::envd;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::state::E2b;
use crate::presented::pairs;

/// Maximum number of sandboxes of one request.
const MANY: usize = 100;
/// Seconds by which the clock of a client may differ.
const CLOCKS: u64 = 60;

pub(super) async fn of_one(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<Json<Value>> {
    let range = TimeRange::read(&query.unwrap_or_default())?;
    let held = e2b.of(&owner, &id)?;
    if !range.has_now(seconds_since_epoch(held.kept.started), unix_seconds())? {
        return Ok(Json(json!([])));
    }
    Ok(Json(json!([envd::metrics(&e2b, &held).await?.control()])))
}

pub(super) async fn of_many(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    RawQuery(query): RawQuery,
) -> Answer<Json<Value>> {
    let mut ids = Vec::new();
    for (name, value) in pairs(&query.unwrap_or_default()) {
        match name.as_str() {
            "sandbox_ids" => ids.extend(value.split(',').map(str::to_owned)),
            _ => return Err(unknown_parameter(&name, &["sandbox_ids"])),
        }
    }
    if ids.len() > MANY {
        let count = ids.len();
        return Err(Problem::invalid(format!(
            "`sandbox_ids` has {count} ids, the limit is {MANY}; send several requests"
        )));
    }
    let mut found = Map::new();
    for id in ids {
        if let Ok(held) = e2b.of(&owner, &id) {
            found.insert(id, envd::metrics(&e2b, &held).await?.control());
        }
    }
    Ok(Json(json!({ "sandboxes": found })))
}

/// The time of which a client asks for metrics, in seconds since 1970.
#[derive(Debug, Default)]
struct TimeRange {
    start: Option<u64>,
    end: Option<u64>,
}

impl TimeRange {
    fn read(query: &str) -> Answer<Self> {
        let mut range = Self::default();
        for (name, value) in pairs(query) {
            let time = || {
                let time = value.parse().ok();
                time.ok_or_else(|| {
                    Problem::invalid(format!(
                        "invalid {name} `{value}`: must be a number of seconds since 1970"
                    ))
                })
            };
            match name.as_str() {
                "start" => range.start = Some(time()?),
                "end" => range.end = Some(time()?),
                _ => return Err(unknown_parameter(&name, &["start", "end"])),
            }
        }
        if range.start.zip(range.end).is_some_and(|(start, end)| start > end) {
            return Err(Problem::invalid("invalid start: must not be after `end`"));
        }
        Ok(range)
    }

    /// Returns whether now is in the range. One that ended while the sandbox existed cannot be answered.
    fn has_now(&self, started: u64, now: u64) -> Answer<bool> {
        match self.end {
            Some(end) if end < started => Ok(false),
            Some(end) if end.saturating_add(CLOCKS) < now => Err(Problem::unenforced(
                "end",
                &end,
                "metrics are not recorded, only those of now are available; leave `start` and `end` out",
            )),
            _ => Ok(self.start.is_none_or(|start| start <= now + CLOCKS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_now_in_it_or_no_metrics_at_all() {
        let has_now = |query: &str| TimeRange::read(query).unwrap().has_now(1_000, 5_000);
        for query in ["", "start=1", "end=4990", "start=4000&end=6000"] {
            assert!(has_now(query).unwrap(), "{query}");
        }
        for query in ["end=999", "start=6000"] {
            assert!(!has_now(query).unwrap(), "{query}");
        }
        let message = has_now("start=2000&end=3000").unwrap_err().0.message;
        assert!(message.starts_with("`end`: 3000 is not supported"), "{message}");
        for query in ["start=x", "start=-1", "start=2&end=1", "step=1"] {
            assert!(TimeRange::read(query).is_err(), "{query}");
        }
    }
}
