//! A part of a long list.

use rusqlite::{Connection, OptionalExtension as _, ToSql};

/// Which part of a list is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// What comes after this one.
    pub(crate) after: Option<String>,
    /// At most so many.
    pub(crate) limit: usize,
    /// Whether the oldest come first.
    pub(crate) ascending: bool,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paged<T> {
    pub(crate) rows: Vec<T>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// Reads a page of a table with `number`, `id` and `owner`; `None` where `after` names nothing of the owner's.
pub(super) fn read<T>(
    connection: &Connection,
    table: &str,
    condition: (&str, &dyn ToSql),
    owner: &str,
    page: &Page,
    row: fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<Paged<T>>> {
    let (condition, value) = condition;
    let after: Option<i64> = match &page.after {
        None => None,
        Some(id) => {
            let sql = format!("SELECT number FROM {table} WHERE owner = ?1 AND ({condition}) AND id = ?3");
            let found = connection
                .query_row(&sql, (owner, value, id), |row| row.get(0))
                .optional()?;
            match found {
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
        "SELECT * FROM {table} WHERE owner = ?1 AND ({condition}) AND (?3 IS NULL OR number {than} ?3) ORDER BY number {order} LIMIT ?4"
    );
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map((owner, value, after, limit), row)?;
    let mut rows = found.collect::<rusqlite::Result<Vec<_>>>()?;
    let more = rows.len() > page.limit;
    rows.truncate(page.limit);
    Ok(Some(Paged { rows, more }))
}
