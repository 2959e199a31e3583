//! Times as clients read them.

use chrono::{DateTime, SecondsFormat, Utc};

/// Returns a time as RFC 3339 with microseconds.
pub(crate) fn instant(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}
