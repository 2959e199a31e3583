//! Usage of owners, by day, in the records.

use super::database::{Database, DatabaseResult, params};

/// Usage of an owner on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DailyUsage {
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
    /// Layers of packages that were installed.
    pub layers: u64,
}

/// Returns the usage of a day so far.
pub(crate) fn used(database: &Database, owner: &str, day: u64) -> DatabaseResult<DailyUsage> {
    let sql = "SELECT cells, cell_millis, upload_bytes, fetches, fetched_bytes, layers FROM usage WHERE \
               owner = ?1 AND day = ?2";
    let used = database.first(sql, params![owner, signed(day)], |row| {
        let number = |column: usize| row.get::<i64>(column).map(|it| u64::try_from(it).unwrap_or(0));
        Ok(DailyUsage {
            cells: number(0)?,
            cell_millis: number(1)?,
            upload_bytes: number(2)?,
            fetches: number(3)?,
            fetched_bytes: number(4)?,
            layers: number(5)?,
        })
    })?;
    Ok(used.unwrap_or_default())
}

/// Adds to what was used.
pub(crate) fn add(database: &Database, owner: &str, day: u64, more: DailyUsage) -> DatabaseResult<()> {
    let sql = "INSERT INTO usage (owner, day, cells, cell_millis, upload_bytes, fetches, fetched_bytes, \
               layers) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (owner, day) DO UPDATE SET \
               cells = usage.cells + excluded.cells, \
               cell_millis = usage.cell_millis + excluded.cell_millis, \
               upload_bytes = usage.upload_bytes + excluded.upload_bytes, \
               fetches = usage.fetches + excluded.fetches, \
               fetched_bytes = usage.fetched_bytes + excluded.fetched_bytes, \
               layers = usage.layers + excluded.layers";
    database.execute(
        sql,
        params![
            owner,
            signed(day),
            signed(more.cells),
            signed(more.cell_millis),
            signed(more.upload_bytes),
            signed(more.fetches),
            signed(more.fetched_bytes),
            signed(more.layers)
        ],
    )?;
    Ok(())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
