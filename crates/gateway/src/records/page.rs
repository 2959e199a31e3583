//! A part of a long list.

use super::database::{Database, DatabaseResult, DatabaseRow, DatabaseValue, params};

/// Part of a list to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Entry after which this part begins.
    pub(crate) after: Option<String>,
    /// At most so many.
    pub(crate) limit: usize,
    /// Whether the oldest come first.
    pub(crate) ascending: bool,
}

impl Page {
    /// All of a list, the oldest first.
    pub(crate) const fn all() -> Self {
        Self {
            after: None,
            limit: usize::MAX >> 1,
            ascending: true,
        }
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListPage<T> {
    pub(crate) rows: Vec<T>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// Reads a page of a table with `number`, `id` and `owner`; `None` where `after` names nothing of
/// the owner's. The placeholders of the condition begin with `?4`.
pub(super) fn read<T>(
    database: &Database,
    (columns, table): (&str, &str),
    (condition, values): (&str, &[DatabaseValue<'_>]),
    owner: &str,
    page: &Page,
    row: fn(&DatabaseRow<'_>) -> DatabaseResult<T>,
) -> DatabaseResult<Option<ListPage<T>>> {
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX).saturating_add(1);
    let after: Option<i64> = match &page.after {
        None => None,
        Some(id) => {
            let sql =
                format!("SELECT number FROM {table} WHERE owner = ?1 AND id = ?2 AND ({condition}) LIMIT ?3");
            let values = [params![owner, id, limit], values].concat();
            match database.first(&sql, &values, |row| row.get(0))? {
                Some(number) => Some(number),
                None => return Ok(None),
            }
        }
    };
    let (than, order) = if page.ascending {
        (">", "ASC")
    } else {
        ("<", "DESC")
    };
    let sql = format!(
        "SELECT {columns} FROM {table} WHERE owner = ?1 AND ({condition}) AND (?2 IS NULL OR number \
         {than} ?2) ORDER BY number {order} LIMIT ?3"
    );
    let values = [params![owner, after, limit], values].concat();
    let mut rows = database.query(&sql, &values, row)?;
    let more = rows.len() > page.limit;
    rows.truncate(page.limit);
    Ok(Some(ListPage { rows, more }))
}
