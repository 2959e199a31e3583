//! Readers of each artifact.

use super::database::params;
use super::{Records, RecordsError};

impl Records {
    /// Remembers that somebody's code made these artifacts, or that they are somebody's uploads.
    pub async fn grant_artifacts(&self, owner: &str, sha256: Vec<String>) -> Result<(), RecordsError> {
        if sha256.is_empty() {
            return Ok(());
        }
        let owner = owner.to_owned();
        let now = i64::try_from(crate::now()).unwrap_or(i64::MAX);
        self.with(move |database| {
            let transaction = database.transaction()?;
            let sql = "INSERT INTO artifact_owners (owner, sha256, granted_at) VALUES (?1, ?2, ?3) ON \
                       CONFLICT DO NOTHING";
            for sha256 in &sha256 {
                transaction.execute(sql, params![owner, sha256, now])?;
            }
            transaction.commit()
        })
        .await
    }

    /// Whether somebody may read an artifact.
    pub async fn owns_artifact(&self, owner: &str, sha256: &str) -> Result<bool, RecordsError> {
        let (owner, sha256) = (owner.to_owned(), sha256.to_owned());
        self.with(move |database| {
            let sql = "SELECT 1 FROM artifact_owners WHERE owner = ?1 AND sha256 = ?2";
            database.exists(sql, params![owner, sha256])
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use crate::records::conformance::over_each_database;

    over_each_database! {
        async fn an_artifact_is_visible_only_to_its_makers(records: Records) {
            let sha256 = "ab".repeat(32);
            for owner in ["one", "two", "one"] {
                records
                    .grant_artifacts(owner, vec![sha256.clone()])
                    .await
                    .unwrap();
            }
            assert!(records.owns_artifact("one", &sha256).await.unwrap());
            assert!(records.owns_artifact("two", &sha256).await.unwrap());
            assert!(!records.owns_artifact("three", &sha256).await.unwrap());
            assert!(!records.owns_artifact("one", &"cd".repeat(32)).await.unwrap());
        }
    }
}
