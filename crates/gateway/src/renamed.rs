//! Old names of request fields: they are accepted for one release, with a warning for the client and in the log.

use std::sync::Once;

use axum::http::HeaderName;
use axum::http::header::WARNING;
use axum::response::AppendHeaders;
use cellblock_settings::renamed::Renamed;

use crate::problem::Problem;

/// The header that warns a client of an old name, if the request has one.
pub(crate) type RenamedWarning = AppendHeaders<Option<(HeaderName, String)>>;

/// Returns a field's value under its new or its old name, with the warning if it is the old one. Rejects both at once; logs the first old
/// name.
pub(crate) fn either<T>(
    renamed: &Renamed,
    new: Option<T>,
    old: Option<T>,
) -> Result<(Option<T>, RenamedWarning), Problem> {
    static WARNED: Once = Once::new();
    if old.is_none() {
        return Ok((new, AppendHeaders(None)));
    }
    if new.is_some() {
        return Err(Problem::invalid(renamed.old, renamed.both()));
    }
    WARNED.call_once(|| tracing::warn!(field = renamed.old, "{}", renamed.warning()));
    // 299 is a warning that stays as long as the client sends the old name.
    let warning = format!("299 - \"`{}`: {}\"", renamed.old, renamed.warning());
    Ok((old, AppendHeaders(Some((WARNING, warning)))))
}
