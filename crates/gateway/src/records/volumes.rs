//! Records of volumes: their last whole revision, and which session writes them.
//!
//! A session holds the volume that it writes, under the lease of its gateway. Saving and releasing
//! a volume require both, so that a session that was taken for lost cannot change it any more.

use super::database::{Database, DatabaseResult, DatabaseRow, DatabaseTransaction, params};
use super::page::{self, ListPage, Page};
use super::{Records, RecordsError};

/// A volume, without its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeRow {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) name: String,
    /// Times in milliseconds since 1970.
    pub(crate) created_ms: i64,
    pub(crate) saved_ms: Option<i64>,
    pub(crate) revision: i64,
    pub(crate) bytes: i64,
    pub(crate) files: i64,
    /// The last session that wrote it.
    pub(crate) writer: Option<String>,
    /// Outcome of its changes: `writing`, `saved`, `incomplete` or `lost`.
    pub(crate) state: Option<String>,
}

/// The session that writes a volume.
#[derive(Clone, Debug)]
pub(crate) struct VolumeWriter {
    pub(crate) session: String,
    /// Its gateway.
    pub(crate) gateway: String,
}

/// Result of opening a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeOpening {
    /// It as it was before, and its manifest.
    Opened(Box<VolumeRow>, String),
    /// Another session writes it.
    Held(Box<VolumeRow>),
    /// Its owner has no such volume.
    Unknown,
    /// Its owner has as many volumes as allowed.
    Full,
}

/// Result of removing a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeRemoval {
    /// It was there.
    Removed(Box<VolumeRow>),
    /// A session writes it.
    Writing(Box<VolumeRow>),
    /// Its owner has no such volume.
    Missing,
}

/// A revision to save.
#[derive(Clone, Debug)]
pub(crate) struct VolumeRevision {
    pub(crate) manifest: String,
    pub(crate) bytes: i64,
    pub(crate) files: i64,
    pub(crate) saved_ms: i64,
}

const COLUMNS: &str = "id, owner, name, created_ms, saved_ms, revision, bytes, files, writer, state";

fn volume(row: &DatabaseRow<'_>) -> DatabaseResult<VolumeRow> {
    Ok(VolumeRow {
        id: row.get("id")?,
        owner: row.get("owner")?,
        name: row.get("name")?,
        created_ms: row.get("created_ms")?,
        saved_ms: row.get("saved_ms")?,
        revision: row.get("revision")?,
        bytes: row.get("bytes")?,
        files: row.get("files")?,
        writer: row.get("writer")?,
        state: row.get("state")?,
    })
}

fn find(database: &Database, owner: &str, name: &str) -> DatabaseResult<Option<(VolumeRow, String)>> {
    let sql = format!("SELECT {COLUMNS}, manifest FROM volumes WHERE owner = ?1 AND name = ?2");
    database.first(&sql, params![owner, name], |row| {
        Ok((volume(row)?, row.get("manifest")?))
    })
}

/// Frees the volumes of gateways that are gone.
pub(super) fn lose(transaction: &DatabaseTransaction<'_>, gone: &str) -> DatabaseResult<()> {
    let sql = format!("UPDATE volumes SET holder = NULL, state = 'lost' WHERE holder IS NOT NULL AND {gone}");
    transaction.execute(&sql, &[]).map(drop)
}

impl Records {
    /// Opens a volume to read its last revision.
    pub(crate) async fn read_volume(&self, owner: &str, name: &str) -> Result<VolumeOpening, RecordsError> {
        let (owner, name) = (owner.to_owned(), name.to_owned());
        let found = self.with(move |database| find(database, &owner, &name)).await?;
        Ok(found.map_or(VolumeOpening::Unknown, |(row, manifest)| {
            VolumeOpening::Opened(Box::new(row), manifest)
        }))
    }

    /// Opens a volume for a session that writes it. One that does not exist gets this id, if its
    /// owner has fewer volumes than `most`.
    pub(crate) async fn write_volume(
        &self,
        owner: &str,
        name: &str,
        id: &str,
        writer: VolumeWriter,
        most: usize,
        now_ms: i64,
    ) -> Result<VolumeOpening, RecordsError> {
        let (owner, name, id) = (owner.to_owned(), name.to_owned(), id.to_owned());
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.with(move |database| {
            let transaction = database.transaction()?;
            transaction.lock(&format!("volumes of {owner}"))?;
            if find(&transaction, &owner, &name)?.is_none() {
                let sql = "SELECT count(*) FROM volumes WHERE owner = ?1";
                let held: Option<i64> = transaction.first(sql, params![owner], |row| row.get(0))?;
                if held.unwrap_or(0) >= most {
                    return Ok(VolumeOpening::Full);
                }
                let sql = "INSERT INTO volumes (id, owner, name, created_ms, revision, bytes, files, \
                           manifest) VALUES (?1, ?2, ?3, ?4, 0, 0, 0, '{}')";
                transaction.execute(sql, params![id, owner, name, now_ms])?;
            }
            let Some((row, manifest)) = find(&transaction, &owner, &name)? else {
                return Ok(VolumeOpening::Unknown);
            };
            let sql = "UPDATE volumes SET holder = ?1, writer = ?2, state = 'writing' WHERE id = ?3 AND \
                       holder IS NULL";
            let taken = transaction.execute(sql, params![writer.gateway, writer.session, row.id])?;
            if taken == 0 {
                return Ok(VolumeOpening::Held(Box::new(row)));
            }
            transaction.commit()?;
            Ok(VolumeOpening::Opened(Box::new(row), manifest))
        })
        .await
    }

    /// Saves a revision, and returns its number; `None` if the session does not hold the volume any more.
    pub(crate) async fn save_volume(
        &self,
        id: &str,
        writer: VolumeWriter,
        revision: VolumeRevision,
    ) -> Result<Option<i64>, RecordsError> {
        let id = id.to_owned();
        self.with(move |database| {
            let sql = "UPDATE volumes SET revision = revision + 1, manifest = ?1, bytes = ?2, files = ?3, \
                       saved_ms = ?4 WHERE id = ?5 AND holder = ?6 AND writer = ?7 RETURNING revision";
            let values = params![
                revision.manifest,
                revision.bytes,
                revision.files,
                revision.saved_ms,
                id,
                writer.gateway,
                writer.session,
            ];
            database.first(sql, values, |row| row.get(0))
        })
        .await
    }

    /// Notes that a session writes a volume no more, and what became of its changes.
    pub(crate) async fn release_volume(
        &self,
        id: &str,
        writer: VolumeWriter,
        state: &'static str,
    ) -> Result<(), RecordsError> {
        let id = id.to_owned();
        self.with(move |database| {
            let sql =
                "UPDATE volumes SET holder = NULL, state = ?1 WHERE id = ?2 AND holder = ?3 AND writer = ?4";
            database.execute(sql, params![state, id, writer.gateway, writer.session])
        })
        .await
        .map(drop)
    }

    /// Volumes of an owner; `None` where the page begins after an unknown one.
    pub(crate) async fn volumes(
        &self,
        owner: &str,
        page: Page,
    ) -> Result<Option<ListPage<VolumeRow>>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |database| {
            page::read(
                database,
                (COLUMNS, "volumes"),
                ("1 = 1", &[]),
                &owner,
                &page,
                volume,
            )
        })
        .await
    }

    /// Volumes of all owners, the oldest first.
    pub(crate) async fn all_volumes(&self) -> Result<Vec<VolumeRow>, RecordsError> {
        self.with(|database| {
            let sql = format!("SELECT {COLUMNS} FROM volumes ORDER BY number");
            database.query(&sql, &[], volume)
        })
        .await
    }

    /// Removes a volume that no session writes.
    pub(crate) async fn remove_volume(&self, owner: &str, name: &str) -> Result<VolumeRemoval, RecordsError> {
        let (owner, name) = (owner.to_owned(), name.to_owned());
        self.with(move |database| {
            let Some((row, _)) = find(database, &owner, &name)? else {
                return Ok(VolumeRemoval::Missing);
            };
            let row = Box::new(row);
            let removed = database.execute(
                "DELETE FROM volumes WHERE id = ?1 AND holder IS NULL",
                params![row.id],
            )?;
            Ok(if removed > 0 {
                VolumeRemoval::Removed(row)
            } else {
                VolumeRemoval::Writing(row)
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests;
