//! `/v1/files` in the form of Anthropic's Files API.

use std::collections::{BTreeMap, HashMap};

use cellblock_agent::wire::ApiError;
use serde_json::{Value, json};

use super::media::media_type;
use crate::anthropic::{cursor, id_of_cursor, limit, time};
use crate::records::{FileRow, ListPage, Page};

/// Files in one answer where nothing is said.
const USUAL: usize = 20;
/// After how many seconds a file can expire.
const EXPIRES: std::ops::RangeInclusive<i64> = 3600..=7_776_000;

/// Purpose of an upload; this API has none.
pub(super) const PURPOSE: &str = "user_data";

/// Reads after how many seconds an upload expires.
pub(super) fn expires(fields: &BTreeMap<String, String>) -> Result<Option<i64>, ApiError> {
    let Some(text) = fields.get("expires_in_seconds") else {
        return Ok(None);
    };
    let seconds = text
        .parse::<i64>()
        .ok()
        .filter(|seconds| EXPIRES.contains(seconds));
    seconds.map(Some).ok_or_else(|| {
        let (least, most) = (EXPIRES.start(), EXPIRES.end());
        let message = format!("`expires_in_seconds` is `{text}`; it can be {least} to {most}");
        ApiError::invalid("expires_in_seconds", "invalid_value", message)
    })
}

/// Reads which page of files is wanted.
pub(super) fn page(query: &HashMap<String, String>) -> Result<Page, ApiError> {
    for name in ["before_id", "ids", "ids[]", "scope_id"] {
        if query.contains_key(name) {
            let message = format!("`{name}` is not supported here; use `limit` and `after_id`");
            return Err(ApiError::invalid(name, "unsupported_parameter", message));
        }
    }
    let limit = limit(query, USUAL)?;
    let page = query.get("page").map(|page| id_of_cursor(page));
    let after = page.or(query.get("after_id").map(String::as_str));
    Ok(Page {
        after: after.filter(|after| !after.is_empty()).map(str::to_owned),
        limit,
        ascending: false,
    })
}

/// Returns a page of files as clients receive it, in both forms that versions of the API have.
pub(super) fn listed(paged: Option<ListPage<FileRow>>) -> Result<Value, ApiError> {
    let Some(paged) = paged else {
        let message = "`after_id` is the id of nothing in this list";
        return Err(ApiError::invalid("after_id", "invalid_value", message));
    };
    let data: Vec<_> = paged.rows.iter().map(object).collect();
    let id = |row: Option<&FileRow>| row.map(|row| row.id.clone());
    let last = id(paged.rows.last());
    let next = last.as_ref().filter(|_| paged.more);
    Ok(json!({
        "data": data,
        "has_more": paged.more,
        "first_id": id(paged.rows.first()),
        "last_id": last,
        "next_page": next.map(|id| cursor(id)),
    }))
}

/// Returns a file as clients receive it.
pub(super) fn object(row: &FileRow) -> Value {
    let mime_type = media_type(&row.filename);
    json!({
        "id": row.id,
        "type": "file",
        "filename": row.filename,
        "mime_type": mime_type.split(';').next(),
        "size_bytes": row.bytes,
        "created_at": time(row.created_ms),
        "downloadable": true,
        "expires_at": row.expires_ms.map(time),
    })
}

/// Returns the answer to a client that deletes a file.
pub(super) fn deleted(id: &str) -> Value {
    json!({"id": id, "type": "file_deleted"})
}
