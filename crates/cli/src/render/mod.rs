//! Rendering of a run for people. Text from a sandbox is made harmless here, before it is written anywhere.

pub(crate) mod exception;
pub(crate) mod fetches;
pub(crate) mod figure;
pub(crate) mod json;
pub(crate) mod outcome;
pub(crate) mod screen;
pub(crate) mod table;
mod terminal_stream;

pub(crate) use screen::Screen;

pub(crate) use crate::style::{BAD, FAINT, GOOD, NOTE, STRONG, styled};

/// Writes a time in seconds since 1970; nothing for one that no calendar has.
pub(crate) fn date(seconds: i64) -> String {
    let date = chrono::DateTime::from_timestamp(seconds, 0);
    date.map(|date| date.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
        .unwrap_or_default()
}
