//! Lists of sandboxes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use cellblock_settings::clock::since_epoch;
use chrono::DateTime;

use super::super::body::unknown_parameter;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::sandbox::HeldSandbox;
use super::super::state::E2b;
use super::answer::Detail;
use super::page::PageRequest;
use crate::presented::pairs;

/// Parameters of a list.
const PARAMETERS: [&str; 7] = [
    "metadata",
    "state",
    "template",
    "startedAfter",
    "order",
    "limit",
    "nextToken",
];

/// Filter of a list.
#[derive(Debug, Default)]
struct ListFilter {
    metadata: BTreeMap<String, String>,
    states: Vec<String>,
    page: PageRequest,
    started_after: Option<SystemTime>,
    template: Option<String>,
}

/// Lists the sandboxes that run, as the first version of the API does.
pub(super) async fn running(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    RawQuery(query): RawQuery,
) -> Answer<Json<Vec<Detail>>> {
    let query = query.unwrap_or_default();
    if let Some((name, _)) = pairs(&query).iter().find(|(name, _)| name != "metadata") {
        return Err(unknown_parameter(name, &["metadata"]));
    }
    let mut wanted = ListFilter::read(&query)?;
    wanted.states = vec!["running".to_owned()];
    let held = wanted.select(&e2b, owner.name());
    Ok(Json(held.iter().map(|it| Detail::of(&e2b, it, false)).collect()))
}

/// Lists a page of sandboxes, and names the next one.
pub(super) async fn page(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    RawQuery(query): RawQuery,
) -> Answer<(HeaderMap, Json<Vec<Detail>>)> {
    let wanted = ListFilter::read(&query.unwrap_or_default())?;
    let mut held = wanted.select(&e2b, owner.name());
    let headers = wanted.page.cut(&mut held);
    let list = held.iter().map(|it| Detail::of(&e2b, it, false)).collect();
    Ok((headers, Json(list)))
}

impl ListFilter {
    fn read(query: &str) -> Answer<Self> {
        let mut wanted = Self::default();
        for (name, value) in pairs(query) {
            match name.as_str() {
                // A query in a query.
                "metadata" => wanted.metadata.extend(pairs(&value)),
                "state" => wanted.states.extend(value.split(',').map(str::to_owned)),
                "order" => {
                    wanted.page.oldest_first = match value.as_str() {
                        "asc" => true,
                        "desc" => false,
                        _ => {
                            let message = format!("invalid order `{value}`: must be `asc` or `desc`");
                            return Err(Problem::invalid(message));
                        }
                    }
                }
                "startedAfter" => {
                    let time = DateTime::parse_from_rfc3339(&value).map_err(|error| {
                        Problem::invalid(format!(
                            "invalid startedAfter `{value}`: {error}; write a time as in \
                             `2026-01-31T12:00:00Z`"
                        ))
                    })?;
                    wanted.started_after = Some(time.into());
                }
                "template" => wanted.template = Some(value),
                _ if wanted.page.read(&name, &value)? => {}
                _ => return Err(unknown_parameter(&name, &PARAMETERS)),
            }
        }
        if let Some(wrong) = wanted
            .states
            .iter()
            .find(|it| !["running", "paused"].contains(&it.as_str()))
        {
            return Err(Problem::invalid(format!(
                "invalid state `{wrong}`: must be `running` or `paused`"
            )));
        }
        Ok(wanted)
    }

    /// Returns the sandboxes from the page's first on, newest first.
    fn select(&self, e2b: &E2b, owner: &str) -> Vec<HeldSandbox> {
        self.page.select(&e2b.sandboxes, owner, |it| self.fits(it))
    }

    fn fits(&self, held: &HeldSandbox) -> bool {
        let state = held.kept.life.borrow().state.name();
        let has = |(name, value): (&String, &String)| held.kept.metadata.get(name) == Some(value);
        let template = &held.kept.template;
        self.started_after
            .is_none_or(|after| micros(held.kept.started) >= micros(after))
            && self.template.as_ref().is_none_or(|it| it == template)
            && (self.states.is_empty() || self.states.iter().any(|it| it == state))
            && self.metadata.iter().all(has)
    }
}

/// A time as precise as answers show it. E2B's filter includes the time itself.
fn micros(time: SystemTime) -> u128 {
    since_epoch(time).as_micros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_a_query_in_the_query() {
        let wanted = ListFilter::read("metadata=a%3D1%26b%3Dx%2520y&state=paused,running&limit=2").unwrap();
        let expected = [("a", "1"), ("b", "x y")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(wanted.metadata, BTreeMap::from(expected));
        assert_eq!(wanted.states.len(), 2);
    }

    #[test]
    fn wrong_queries_name_what_is_wrong() {
        for query in [
            "limit=0",
            "limit=101",
            "limit=x",
            "state=dead",
            "nextToken=%21",
            "order=up",
            "startedAfter=today",
            "team=x",
        ] {
            assert!(ListFilter::read(query).is_err(), "{query}");
        }
    }
}
