//! Skills in the form of Anthropic's API.

use std::collections::HashMap;

use cellblock_agent::wire::ApiError;
use serde_json::{Value, json};

use crate::anthropic::{cursor, id_of_cursor, limit, time};
use crate::records::{ListPage, Page, SkillRow, SkillVersionRow};
use crate::state::skills::OPERATOR;

/// Skills in one answer by default.
const USUAL: usize = 20;

pub(super) fn skill(row: &SkillRow) -> Value {
    // The operator's stand where that API has its vendor's.
    let source = if row.latest_id.starts_with(OPERATOR) {
        "anthropic"
    } else {
        "custom"
    };
    json!({
        "id": row.id,
        "type": "skill",
        "display_name": row.display_name.as_ref().unwrap_or(&row.name),
        "latest_version_id": row.latest_id,
        "source": {"type": source},
        "created_at": time(row.created_ms),
        "updated_at": time(row.updated_ms),
    })
}

pub(super) fn version(row: &SkillVersionRow) -> Value {
    json!({
        "id": row.id,
        "type": "skill_version",
        "name": row.name,
        "description": row.description,
        "skill_id": row.skill,
        "version": row.version.to_string(),
        "created_at": time(row.created_ms),
    })
}

/// Reads which page is wanted.
pub(super) fn page(query: &HashMap<String, String>) -> Result<Page, ApiError> {
    if let Some(source) = query.get("source") {
        let message = format!("`source` is `{source}`; lists are not filtered here, so leave it out");
        return Err(ApiError::invalid("source", "unsupported_parameter", message));
    }
    let page = query.get("page").filter(|page| !page.is_empty());
    Ok(Page {
        after: page.map(|page| id_of_cursor(page).to_owned()),
        limit: limit(query, USUAL)?,
        ascending: false,
    })
}

/// Returns a page of a list.
pub(super) fn listed<T>(paged: Option<ListPage<T>>, object: impl Fn(&T) -> Value) -> Result<Value, ApiError> {
    let Some(paged) = paged else {
        let message = "`page` is not one of this list; send the `next_page` of an answer";
        return Err(ApiError::invalid("page", "invalid_value", message));
    };
    let data: Vec<_> = paged.rows.iter().map(object).collect();
    let last = data.last().and_then(|last| last["id"].as_str());
    let next = last.filter(|_| paged.more).map(cursor);
    Ok(json!({"has_more": paged.more, "next_page": next, "data": data}))
}
