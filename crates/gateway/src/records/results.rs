//! What is remembered of the results of tools that turns keep.

use cellblock_agent::turn::KeptResult;
use rusqlite::{Connection, Result, params};

use super::{Records, RecordsError};

/// Keeps results for as long as a turn.
pub(super) fn keep(connection: &Connection, owner: &str, turn: &str, results: &[KeptResult]) -> Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO turn_results (owner, sha256, turn, bytes) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for result in results {
        let bytes = i64::try_from(result.bytes).unwrap_or(i64::MAX);
        insert.execute(params![owner, result.sha256, turn, bytes])?;
    }
    Ok(())
}

impl Records {
    /// Those of some results that no turn of an owner keeps.
    pub(crate) async fn not_kept(
        &self,
        owner: &str,
        results: Vec<KeptResult>,
    ) -> std::result::Result<Vec<KeptResult>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |connection| {
            let mut find = connection
                .prepare_cached("SELECT 1 FROM turn_results WHERE owner = ?1 AND sha256 = ?2 LIMIT 1")?;
            let mut missing = Vec::new();
            for result in results {
                if !find.exists(params![owner, result.sha256])? {
                    missing.push(result);
                }
            }
            Ok(missing)
        })
        .await
    }
}
