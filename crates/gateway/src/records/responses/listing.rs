//! The responses of an owner, and what a model read and said for one.

use crate::records::database::{Database, DatabaseResult, DatabaseRow, params};
use crate::records::{ListPage, Page};

/// A response in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedResponse {
    pub(crate) id: String,
    pub(crate) status: String,
    /// The response as JSON.
    pub(crate) body: String,
}

fn listed(row: &DatabaseRow<'_>) -> DatabaseResult<ListedResponse> {
    Ok(ListedResponse {
        id: row.get(0)?,
        status: row.get(1)?,
        body: row.get(2)?,
    })
}

/// A page of an owner's responses; `None` where it begins after an unknown one.
pub(crate) fn list(
    database: &Database,
    owner: &str,
    page: &Page,
) -> DatabaseResult<Option<ListPage<ListedResponse>>> {
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut after: (Option<i64>, &str) = (None, "");
    if let Some(id) = &page.after {
        let sql = "SELECT created_at FROM responses WHERE owner = ?1 AND id = ?2";
        let Some(created_at) = database.first(sql, params![owner, id], |row| row.get(0))? else {
            return Ok(None);
        };
        after = (Some(created_at), id);
    }
    let (than, order) = if page.ascending {
        (">", "ASC")
    } else {
        ("<", "DESC")
    };
    let sql = format!(
        "SELECT id, status, body FROM responses WHERE owner = ?1 \
         AND (?2 IS NULL OR created_at {than} ?2 OR (created_at = ?2 AND id {than} ?3)) \
         ORDER BY created_at {order}, id {order} LIMIT ?4"
    );
    let mut rows = database.query(&sql, params![owner, after.0, after.1, limit], listed)?;
    let more = rows.len() > page.limit;
    rows.truncate(page.limit);
    Ok(Some(ListPage { rows, more }))
}

/// Returns what the model read and said for a response of an owner, as a JSON list; `None` until it has
/// ended.
pub(crate) fn turn(database: &Database, owner: &str, id: &str) -> DatabaseResult<Option<String>> {
    let sql = "SELECT items FROM turns WHERE id = ?1 AND owner = ?2";
    database.first(sql, params![id, owner], |row| row.get(0))
}
