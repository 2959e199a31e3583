//! Quotas per minute that several gateways count together: a bucket for each owner and quota, which
//! fills itself by the clock of the database.
//!
//! One statement takes one: Postgres locks the row for it, so that gateways cannot take the same one.

use super::Quota;
use super::database::{Database, DatabaseResult, params};

/// A limit that is larger is none.
const MAX: u64 = 1_000_000_000;
/// The bucket now, in thousandths of one. It is full again after a minute.
const TAKEN: &str = "GREATEST(0, rates.taken - LEAST(60000, GREATEST(0, CAST(extract(epoch FROM \
                     clock_timestamp()) * 1000 AS BIGINT) - rates.since_ms)) * ?3 / 60)";

/// Takes one of so many per minute, or says after how many seconds there is one.
pub(crate) fn take(
    database: &Database,
    owner: &str,
    quota: Quota,
    per_minute: u64,
) -> DatabaseResult<Result<(), u64>> {
    if per_minute == 0 {
        return Ok(Err(60));
    }
    if per_minute > MAX {
        return Ok(Ok(()));
    }
    let most = i64::try_from(per_minute).unwrap_or(i64::MAX);
    let quota = quota.name();
    let values = params![owner, quota, most];
    let sql = format!(
        "INSERT INTO rates (owner, quota, taken, since_ms) \
         VALUES (?1, ?2, 1000, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)) \
         ON CONFLICT (owner, quota) DO UPDATE SET taken = {TAKEN} + 1000, since_ms = excluded.since_ms \
         WHERE {TAKEN} + 1000 <= ?3 * 1000"
    );
    if database.execute(&sql, values)? > 0 {
        return Ok(Ok(()));
    }
    let sql = format!("SELECT {TAKEN} + 1000 - ?3 * 1000 FROM rates WHERE owner = ?1 AND quota = ?2");
    let missing = database.first(&sql, values, |row| row.get::<i64>(0))?;
    // In thousandths, of which a second brings `most * 1000 / 60`.
    let seconds = (missing.unwrap_or(0).max(0) * 60 + most * 1000 - 1) / (most * 1000);
    Ok(Err(u64::try_from(seconds).unwrap_or(1).clamp(1, 60)))
}

#[cfg(test)]
mod tests {
    use cellblock_testkit::require;

    use super::*;
    use crate::records::Records;
    use crate::records::conformance::PostgresDatabase;

    async fn taken(records: &Records, owner: &'static str, per_minute: u64) -> Result<(), u64> {
        let quota = Quota::CellsPerMinute;
        let taken = records.with(move |database| take(database, owner, quota, per_minute));
        taken.await.unwrap()
    }

    #[tokio::test]
    async fn a_minute_has_so_many_however_many_ask_at_once() {
        require!(Postgres);
        let database = PostgresDatabase::create().await;
        let records = [database.records().await, database.records().await];
        let tries = (0..40).map(|number: usize| taken(&records[number % 2], "ann", 5));
        let tries = futures_util::future::join_all(tries).await;
        assert_eq!(tries.iter().filter(|it| it.is_ok()).count(), 5);
        assert!(tries.iter().all(|it| it.is_ok() || *it == Err(12)), "{tries:?}");
        assert_eq!(taken(&records[0], "eve", 5).await, Ok(()));
        assert_eq!(taken(&records[0], "ann", 0).await, Err(60));
        assert_eq!(taken(&records[0], "ann", u64::MAX).await, Ok(()));
        // Twelve seconds bring another one.
        let later = "UPDATE rates SET since_ms = since_ms - 12000 WHERE owner = 'ann'";
        records[0].with(|database| database.batch(later)).await.unwrap();
        assert_eq!(taken(&records[1], "ann", 5).await, Ok(()));
        assert!(taken(&records[0], "ann", 5).await.is_err());
    }
}
