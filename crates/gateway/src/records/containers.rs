//! What is remembered of containers and of their files.

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::page::{self, Page, Paged};
use super::{Records, RecordsError};

/// A container. Whether it still runs is not remembered: one that no process has at hand is expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerRow {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) name: String,
    /// Times in milliseconds since 1970.
    pub(crate) created_ms: i64,
    pub(crate) active_ms: i64,
    /// After how long without use it expires.
    pub(crate) idle_ms: i64,
    pub(crate) memory_limit: Option<String>,
    /// Whether a response made it for itself.
    pub(crate) automatic: bool,
}

/// A version of a container's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerFileRow {
    pub(crate) id: String,
    pub(crate) container: String,
    pub(crate) owner: String,
    /// As models and users call it.
    pub(crate) path: String,
    pub(crate) bytes: i64,
    pub(crate) sha256: String,
    pub(crate) created_ms: i64,
    /// `user` or `assistant`.
    pub(crate) source: String,
}

fn container(row: &Row<'_>) -> rusqlite::Result<ContainerRow> {
    Ok(ContainerRow {
        id: row.get("id")?,
        owner: row.get("owner")?,
        name: row.get("name")?,
        created_ms: row.get("created_ms")?,
        active_ms: row.get("active_ms")?,
        idle_ms: row.get("idle_ms")?,
        memory_limit: row.get("memory_limit")?,
        automatic: row.get("automatic")?,
    })
}

fn file(row: &Row<'_>) -> rusqlite::Result<ContainerFileRow> {
    Ok(ContainerFileRow {
        id: row.get("id")?,
        container: row.get("container")?,
        owner: row.get("owner")?,
        path: row.get("path")?,
        bytes: row.get("bytes")?,
        sha256: row.get("sha256")?,
        created_ms: row.get("created_ms")?,
        source: row.get("source")?,
    })
}

impl Records {
    pub(crate) async fn add_container(&self, row: ContainerRow) -> Result<(), RecordsError> {
        self.with(move |connection| {
            connection.execute(
                "INSERT INTO containers (id, owner, name, created_ms, active_ms, idle_ms, memory_limit, automatic) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                (
                    row.id, row.owner, row.name, row.created_ms, row.active_ms, row.idle_ms, row.memory_limit, row.automatic,
                ),
            )
        })
        .await
        .map(drop)
    }

    pub(crate) async fn container(
        &self,
        owner: &str,
        id: &str,
    ) -> Result<Option<ContainerRow>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |connection| {
            let sql = "SELECT * FROM containers WHERE id = ?1 AND owner = ?2";
            connection.query_row(sql, (id, owner), container).optional()
        })
        .await
    }

    /// Containers of an owner, of a name where one is given; `None` where the page begins after an unknown one.
    pub(crate) async fn containers(
        &self,
        owner: &str,
        name: Option<String>,
        page: Page,
    ) -> Result<Option<Paged<ContainerRow>>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |connection| {
            let condition = ("?2 IS NULL OR name = ?2", &name as _);
            page::read(connection, "containers", condition, &owner, &page, container)
        })
        .await
    }

    pub(crate) async fn touch_container(&self, id: &str, now_ms: i64) -> Result<(), RecordsError> {
        let id = id.to_owned();
        self.with(move |connection| {
            connection.execute("UPDATE containers SET active_ms = ?2 WHERE id = ?1", (id, now_ms))
        })
        .await
        .map(drop)
    }

    /// Forgets a container; answers the ids of its files, or nothing where there is no such container.
    pub(crate) async fn remove_container(
        &self,
        owner: &str,
        id: &str,
    ) -> Result<Option<Vec<String>>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |connection| {
            let transaction = connection.transaction()?;
            let files = file_ids(&transaction, &id)?;
            let removed =
                transaction.execute("DELETE FROM containers WHERE id = ?1 AND owner = ?2", (id, owner))?;
            transaction.commit()?;
            Ok((removed > 0).then_some(files))
        })
        .await
    }

    /// Containers that nobody has used since a time: their owners and ids.
    pub(crate) async fn containers_unused_since(
        &self,
        ms: i64,
    ) -> Result<Vec<(String, String)>, RecordsError> {
        self.with(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT owner, id FROM containers WHERE active_ms < ?1")?;
            statement
                .query_map([ms], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
        .await
    }

    /// Adds what is now at a path of a container; what was there before is kept by its id.
    pub(crate) async fn add_container_file(&self, row: ContainerFileRow) -> Result<(), RecordsError> {
        self.with(move |connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "UPDATE container_files SET current = 0 WHERE container = ?1 AND path = ?2",
                (&row.container, &row.path),
            )?;
            transaction.execute(
                "INSERT INTO container_files (id, container, owner, path, bytes, sha256, created_ms, source, current) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1)",
                (
                    &row.id, &row.container, &row.owner, &row.path, row.bytes, &row.sha256, row.created_ms, &row.source,
                ),
            )?;
            transaction.commit()
        })
        .await
    }

    /// A version of a file by its id.
    pub(crate) async fn container_file(
        &self,
        owner: &str,
        in_container: &str,
        id: &str,
    ) -> Result<Option<ContainerFileRow>, RecordsError> {
        let values = (id.to_owned(), in_container.to_owned(), owner.to_owned());
        self.with(move |connection| {
            let sql = "SELECT * FROM container_files WHERE id = ?1 AND container = ?2 AND owner = ?3";
            connection.query_row(sql, values, file).optional()
        })
        .await
    }

    /// Versions of the file at a path, the latest last.
    pub(crate) async fn versions_at(
        &self,
        in_container: &str,
        path: &str,
    ) -> Result<Vec<ContainerFileRow>, RecordsError> {
        let values = (in_container.to_owned(), path.to_owned());
        self.with(move |connection| {
            let sql = "SELECT * FROM container_files WHERE container = ?1 AND path = ?2 ORDER BY number";
            connection.prepare_cached(sql)?.query_map(values, file)?.collect()
        })
        .await
    }

    /// The files of a container as they are now.
    pub(crate) async fn container_files(
        &self,
        owner: &str,
        in_container: &str,
        page: Page,
    ) -> Result<Option<Paged<ContainerFileRow>>, RecordsError> {
        let (owner, in_container) = (owner.to_owned(), in_container.to_owned());
        self.with(move |connection| {
            let condition = ("container = ?2 AND current = 1", &in_container as _);
            page::read(connection, "container_files", condition, &owner, &page, file)
        })
        .await
    }

    /// Forgets a version of a file; says whether it was there.
    pub(crate) async fn remove_container_file(&self, owner: &str, id: &str) -> Result<bool, RecordsError> {
        let values = (id.to_owned(), owner.to_owned());
        self.with(move |connection| {
            let sql = "DELETE FROM container_files WHERE id = ?1 AND owner = ?2";
            Ok(connection.execute(sql, values)? > 0)
        })
        .await
    }
}

fn file_ids(connection: &Connection, id: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached("SELECT id FROM container_files WHERE container = ?1")?;
    statement.query_map([id], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(id: &str, active_ms: i64) -> ContainerRow {
        ContainerRow {
            id: id.to_owned(),
            owner: "ann".to_owned(),
            name: "x".to_owned(),
            created_ms: 0,
            active_ms,
            idle_ms: 1,
            memory_limit: None,
            automatic: false,
        }
    }

    fn file(id: &str, path: &str) -> ContainerFileRow {
        ContainerFileRow {
            id: id.to_owned(),
            container: "one".to_owned(),
            owner: "ann".to_owned(),
            path: path.to_owned(),
            bytes: 1,
            sha256: String::new(),
            created_ms: 0,
            source: "user".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_container_goes_with_its_files_and_only_by_its_owner() {
        let records = Records::in_memory().unwrap();
        records.add_container(container("one", 5)).await.unwrap();
        records.add_container(container("two", 6)).await.unwrap();
        for (id, path) in [("f1", "/a"), ("f2", "/a"), ("f3", "/b")] {
            records.add_container_file(file(id, path)).await.unwrap();
        }
        let stale = records.containers_unused_since(6).await.unwrap();
        assert_eq!(stale, [("ann".to_owned(), "one".to_owned())]);
        assert_eq!(records.remove_container("eve", "one").await.unwrap(), None);
        let versions = records.versions_at("one", "/a").await.unwrap();
        assert_eq!(
            versions.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(),
            ["f1", "f2"]
        );
        let files = records.remove_container("ann", "one").await.unwrap().unwrap();
        assert_eq!(files, ["f1", "f2", "f3"]);
        assert_eq!(records.versions_at("one", "/a").await.unwrap(), []);
        assert!(records.container("ann", "two").await.unwrap().is_some());
        // What belongs to no container is not kept.
        assert!(records.add_container_file(file("f4", "/a")).await.is_err());
    }
}
