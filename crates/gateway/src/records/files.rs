//! Records of uploaded files.

use super::database::{DatabaseResult, DatabaseRow, params};
use super::page::{self, ListPage, Page};
use super::{Records, RecordsError};

/// An uploaded file. Its bytes are in the artifact store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRow {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) filename: String,
    pub(crate) purpose: String,
    pub(crate) bytes: i64,
    pub(crate) sha256: String,
    /// Times in milliseconds since 1970.
    pub(crate) created_ms: i64,
    pub(crate) expires_ms: Option<i64>,
}

const COLUMNS: &str = "id, owner, filename, purpose, bytes, sha256, created_ms, expires_ms";

fn file(row: &DatabaseRow<'_>) -> DatabaseResult<FileRow> {
    Ok(FileRow {
        id: row.get("id")?,
        owner: row.get("owner")?,
        filename: row.get("filename")?,
        purpose: row.get("purpose")?,
        bytes: row.get("bytes")?,
        sha256: row.get("sha256")?,
        created_ms: row.get("created_ms")?,
        expires_ms: row.get("expires_ms")?,
    })
}

impl Records {
    /// Bytes that an owner has stored: files that were uploaded, those that containers have had,
    /// volumes, skills, the text of responses and conversations, and the results of tools and pictures that
    /// responses keep.
    pub(crate) async fn stored_bytes(&self, owner: &str) -> Result<u64, RecordsError> {
        let owner = owner.to_owned();
        let bytes: Option<i64> = self
            .with(move |database| {
                // Postgres adds up integers to a number of another type.
                let sql = "SELECT CAST(coalesce((SELECT bytes FROM stored WHERE owner = ?1), 0) + \
                           coalesce((SELECT sum(bytes) FROM (SELECT DISTINCT sha256, bytes FROM \
                           turn_results WHERE owner = ?1) AS kept), 0) AS BIGINT)";
                database.first(sql, params![owner], |row| row.get(0))
            })
            .await?;
        Ok(bytes.map_or(0, |bytes| u64::try_from(bytes).unwrap_or(0)))
    }

    pub(crate) async fn add_file(&self, row: FileRow) -> Result<(), RecordsError> {
        self.with(move |database| {
            let sql = format!("INSERT INTO files ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
            let values = params![
                row.id,
                row.owner,
                row.filename,
                row.purpose,
                row.bytes,
                row.sha256,
                row.created_ms,
                row.expires_ms,
            ];
            database.execute(&sql, values)
        })
        .await
        .map(drop)
    }

    /// A file that has not expired.
    pub(crate) async fn file(
        &self,
        owner: &str,
        id: &str,
        now_ms: i64,
    ) -> Result<Option<FileRow>, RecordsError> {
        let (id, owner) = (id.to_owned(), owner.to_owned());
        self.with(move |database| {
            let sql = format!(
                "SELECT {COLUMNS} FROM files WHERE id = ?1 AND owner = ?2 AND (expires_ms IS NULL OR \
                 expires_ms > ?3)"
            );
            database.first(&sql, params![id, owner, now_ms], file)
        })
        .await
    }

    /// Files of an owner, for a purpose where one is given; `None` where the page begins after an
    /// unknown one.
    pub(crate) async fn files(
        &self,
        owner: &str,
        purpose: Option<String>,
        page: Page,
        now_ms: i64,
    ) -> Result<Option<ListPage<FileRow>>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |database| {
            // What has expired is removed within a minute, and is not told until then.
            let condition = "(?4 IS NULL OR purpose = ?4) AND (expires_ms IS NULL OR expires_ms > ?5)";
            let condition = (condition, &params![purpose, now_ms][..]);
            page::read(database, (COLUMNS, "files"), condition, &owner, &page, file)
        })
        .await
    }

    /// Forgets a file; says whether it was there.
    pub(crate) async fn remove_file(&self, owner: &str, id: &str) -> Result<bool, RecordsError> {
        let (id, owner) = (id.to_owned(), owner.to_owned());
        self.with(move |database| {
            let sql = "DELETE FROM files WHERE id = ?1 AND owner = ?2";
            Ok(database.execute(sql, params![id, owner])? > 0)
        })
        .await
    }

    /// Files that have expired: their owners and ids.
    pub(crate) async fn expired_files(&self, now_ms: i64) -> Result<Vec<(String, String)>, RecordsError> {
        self.with(move |database| {
            let sql = "SELECT owner, id FROM files WHERE expires_ms <= ?1";
            database.query(sql, params![now_ms], |row| Ok((row.get(0)?, row.get(1)?)))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::conformance::over_each_database;

    fn row(id: &str, expires_ms: Option<i64>) -> FileRow {
        FileRow {
            id: id.to_owned(),
            owner: "ann".to_owned(),
            filename: "a".to_owned(),
            purpose: "user_data".to_owned(),
            bytes: 1,
            sha256: String::new(),
            created_ms: 0,
            expires_ms,
        }
    }

    over_each_database! {
        async fn a_file_is_gone_from_the_moment_that_it_expires(records: Records) {
            for (id, expires) in [("a", Some(1000)), ("b", None), ("c", Some(i64::MAX))] {
                records.add_file(row(id, expires)).await.unwrap();
            }
            assert!(records.file("ann", "a", 999).await.unwrap().is_some());
            assert_eq!(records.file("ann", "a", 1000).await.unwrap(), None);
            assert_eq!(records.expired_files(999).await.unwrap(), []);
            assert_eq!(
                records.expired_files(1000).await.unwrap(),
                [("ann".to_owned(), "a".to_owned())]
            );
            let page = Page {
                after: None,
                limit: 10,
                ascending: true,
            };
            let listed = records.files("ann", None, page, 1000).await.unwrap().unwrap();
            let ids: Vec<_> = listed.rows.iter().map(|row| row.id.as_str()).collect();
            assert_eq!(ids, ["b", "c"]);
        }
    }
}
