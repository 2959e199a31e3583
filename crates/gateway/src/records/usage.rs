//! What owners used, by day, in the records.

use rusqlite::{Connection, OptionalExtension as _, params};

/// What an owner used on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Cells that ran.
    pub cells: u64,
    /// Milliseconds that they ran.
    pub cell_millis: u64,
    /// Bytes that were uploaded.
    pub upload_bytes: u64,
    /// Requests of connectors.
    pub fetches: u64,
    /// Bytes of their answers.
    pub fetched_bytes: u64,
}

/// What was used on a day so far.
pub(crate) fn used(connection: &Connection, owner: &str, day: u64) -> rusqlite::Result<Used> {
    let sql = "SELECT cells, cell_millis, upload_bytes, fetches, fetched_bytes FROM usage WHERE owner = ?1 AND day = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let used = statement
        .query_row(params![owner, signed(day)], |row| {
            let number = |column| row.get::<_, i64>(column).map(|it| u64::try_from(it).unwrap_or(0));
            Ok(Used {
                cells: number(0)?,
                cell_millis: number(1)?,
                upload_bytes: number(2)?,
                fetches: number(3)?,
                fetched_bytes: number(4)?,
            })
        })
        .optional()?;
    Ok(used.unwrap_or_default())
}

/// Adds to what was used.
pub(crate) fn add(connection: &Connection, owner: &str, day: u64, more: Used) -> rusqlite::Result<()> {
    let sql = "INSERT INTO usage (owner, day, cells, cell_millis, upload_bytes, fetches, fetched_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
               ON CONFLICT DO UPDATE SET cells = cells + excluded.cells, cell_millis = cell_millis + excluded.cell_millis, \
               upload_bytes = upload_bytes + excluded.upload_bytes, fetches = fetches + excluded.fetches, \
               fetched_bytes = fetched_bytes + excluded.fetched_bytes";
    connection.prepare_cached(sql)?.execute(params![
        owner,
        signed(day),
        signed(more.cells),
        signed(more.cell_millis),
        signed(more.upload_bytes),
        signed(more.fetches),
        signed(more.fetched_bytes)
    ])?;
    Ok(())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
