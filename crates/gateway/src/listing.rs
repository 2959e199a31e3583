//! Lists: whole ones, and those in pages with `?after&limit&order` and `{object, data, first_id,
//! last_id, has_more}`.

use std::collections::HashMap;

use cellblock_agent::wire::ApiError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::records::{ListPage, Page};

/// A whole list.
#[derive(Debug, Serialize)]
pub(crate) struct ListAnswer<T> {
    /// `list`.
    object: &'static str,
    /// Entries of the list.
    data: Vec<T>,
}

impl<T> ListAnswer<T> {
    pub(crate) fn new(data: Vec<T>) -> Self {
        let object = "list";
        Self { object, data }
    }
}

/// Query of an address, after its `?`.
pub(crate) type QueryParameters = axum::extract::Query<HashMap<String, String>>;

/// Reads which page is wanted, of at most `most` things and `usual` where that is not said.
pub(crate) fn page(query: &HashMap<String, String>, most: usize, usual: usize) -> Result<Page, ApiError> {
    let invalid = |param: &str, message: String| ApiError::invalid(param, "invalid_value", message);
    let limit = match query.get("limit") {
        None => usual,
        Some(text) => {
            let limit = text.parse().ok().filter(|limit| (1..=most).contains(limit));
            limit.ok_or_else(|| invalid("limit", format!("`limit` is `{text}`; it can be 1 to {most}")))?
        }
    };
    let ascending = match query.get("order").map(String::as_str) {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(other) => {
            let message = format!("`order` is `{other}`; it can be `asc` or `desc`");
            return Err(invalid("order", message));
        }
    };
    let after = query.get("after").filter(|after| !after.is_empty()).cloned();
    Ok(Page {
        after,
        limit,
        ascending,
    })
}

/// A page of a list, as sent to clients.
pub(crate) fn told<T>(paged: Option<ListPage<T>>, object: impl Fn(&T) -> Value) -> Result<Value, ApiError> {
    let Some(paged) = paged else {
        let message = "`after` is the id of nothing in this list";
        return Err(ApiError::invalid("after", "invalid_value", message));
    };
    let data: Vec<_> = paged.rows.iter().map(object).collect();
    let id = |object: Option<&Value>| object.map_or(Value::Null, |object| object["id"].clone());
    Ok(json!({
        "object": "list",
        "first_id": id(data.first()),
        "last_id": id(data.last()),
        "has_more": paged.more,
        "data": data,
    }))
}
