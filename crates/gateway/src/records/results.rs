//! Stored results of the tools that turns keep.

use super::database::{Database, DatabaseResult, params};
use super::{Records, RecordsError};
use cellblock_agent::turn::KeptResult;

/// Keeps results for as long as a turn.
pub(super) fn keep(
    database: &Database,
    owner: &str,
    turn: &str,
    results: &[KeptResult],
) -> DatabaseResult<()> {
    let sql = "INSERT INTO turn_results (owner, sha256, turn, bytes) VALUES (?1, ?2, ?3, ?4) ON CONFLICT \
               DO NOTHING";
    for result in results {
        let bytes = i64::try_from(result.bytes).unwrap_or(i64::MAX);
        database.execute(sql, params![owner, result.sha256, turn, bytes])?;
    }
    Ok(())
}

impl Records {
    /// Those of some results that no turn of an owner keeps.
    pub(crate) async fn not_kept(
        &self,
        owner: &str,
        results: Vec<KeptResult>,
    ) -> Result<Vec<KeptResult>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |database| {
            let sql = "SELECT 1 FROM turn_results WHERE owner = ?1 AND sha256 = ?2 LIMIT 1";
            let mut missing = Vec::new();
            for result in results {
                if !database.exists(sql, params![owner, result.sha256])? {
                    missing.push(result);
                }
            }
            Ok(missing)
        })
        .await
    }
}
