//! Records of containers and of their files.

use super::database::{Database, DatabaseResult, DatabaseRow, params};
use super::page::{self, ListPage, Page};
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
    /// Hosts that its code reaches, if it has a network. Their secrets are not kept.
    pub(crate) allowed_domains: Option<Vec<String>>,
    /// Whether a response made it for itself.
    pub(crate) automatic: bool,
    /// The gateway that has its sandbox, or had it last. One that has ended is not read.
    pub(crate) holder: Option<String>,
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

const COLUMNS: &str = "id, owner, name, created_ms, active_ms, idle_ms, memory_limit, allowed_domains, \
                       automatic, (SELECT gateways.id FROM gateways WHERE gateways.id = \
                       containers.holder) AS holder";
const FILE_COLUMNS: &str = "id, container, owner, path, bytes, sha256, created_ms, source";

fn container(row: &DatabaseRow<'_>) -> DatabaseResult<ContainerRow> {
    let domains: Option<String> = row.get("allowed_domains")?;
    let list = |domains: String| domains.split(' ').map(str::to_owned).collect();
    Ok(ContainerRow {
        id: row.get("id")?,
        owner: row.get("owner")?,
        name: row.get("name")?,
        created_ms: row.get("created_ms")?,
        active_ms: row.get("active_ms")?,
        idle_ms: row.get("idle_ms")?,
        memory_limit: row.get("memory_limit")?,
        allowed_domains: domains.map(list),
        automatic: row.is("automatic")?,
        holder: row.get("holder")?,
    })
}

fn file(row: &DatabaseRow<'_>) -> DatabaseResult<ContainerFileRow> {
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
        self.with(move |database| {
            let sql = "INSERT INTO containers (id, owner, name, created_ms, active_ms, idle_ms, \
                       memory_limit, allowed_domains, automatic, holder) VALUES (?1, ?2, ?3, ?4, ?5, ?6, \
                       ?7, ?8, ?9, ?10)";
            let domains = row.allowed_domains.map(|domains| domains.join(" "));
            let values = params![
                row.id,
                row.owner,
                row.name,
                row.created_ms,
                row.active_ms,
                row.idle_ms,
                row.memory_limit,
                domains,
                row.automatic,
                row.holder,
            ];
            database.execute(sql, values)
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
        self.with(move |database| {
            let sql = format!("SELECT {COLUMNS} FROM containers WHERE id = ?1 AND owner = ?2");
            database.first(&sql, params![id, owner], container)
        })
        .await
    }

    /// Containers of an owner, of a name where one is given; `None` where the page begins after an
    /// unknown one.
    pub(crate) async fn containers(
        &self,
        owner: &str,
        name: Option<String>,
        page: Page,
    ) -> Result<Option<ListPage<ContainerRow>>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |database| {
            let condition = ("?4 IS NULL OR name = ?4", &params![name][..]);
            page::read(
                database,
                (COLUMNS, "containers"),
                condition,
                &owner,
                &page,
                container,
            )
        })
        .await
    }

    /// Notes that a gateway has used a container.
    pub(crate) async fn touch_container(
        &self,
        id: &str,
        now_ms: i64,
        holder: &str,
    ) -> Result<(), RecordsError> {
        let (id, holder) = (id.to_owned(), holder.to_owned());
        self.with(move |database| {
            let sql = "UPDATE containers SET active_ms = ?2, holder = ?3 WHERE id = ?1";
            database.execute(sql, params![id, now_ms, holder])
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
        self.with(move |database| {
            let transaction = database.transaction()?;
            let files = file_ids(&transaction, &id)?;
            let sql = "DELETE FROM containers WHERE id = ?1 AND owner = ?2";
            let removed = transaction.execute(sql, params![id, owner])?;
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
        self.with(move |database| {
            let sql = "SELECT owner, id FROM containers WHERE active_ms < ?1";
            database.query(sql, params![ms], |row| Ok((row.get(0)?, row.get(1)?)))
        })
        .await
    }

    /// Adds what is now at a path of a container; what was there before is kept by its id.
    pub(crate) async fn add_container_file(&self, row: ContainerFileRow) -> Result<(), RecordsError> {
        self.with(move |database| {
            let transaction = database.transaction()?;
            // One version is the current one.
            transaction.lock(&row.container)?;
            let sql = "UPDATE container_files SET current = 0 WHERE container = ?1 AND path = ?2";
            transaction.execute(sql, params![row.container, row.path])?;
            let sql = format!(
                "INSERT INTO container_files ({FILE_COLUMNS}, current) VALUES (?1, ?2, ?3, ?4, ?5, ?6, \
                 ?7, ?8, 1)"
            );
            let values = params![
                row.id,
                row.container,
                row.owner,
                row.path,
                row.bytes,
                row.sha256,
                row.created_ms,
                row.source,
            ];
            transaction.execute(&sql, values)?;
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
        let (id, in_container, owner) = (id.to_owned(), in_container.to_owned(), owner.to_owned());
        self.with(move |database| {
            let sql = format!(
                "SELECT {FILE_COLUMNS} FROM container_files WHERE id = ?1 AND container = ?2 AND owner = ?3"
            );
            database.first(&sql, params![id, in_container, owner], file)
        })
        .await
    }

    /// The same by its id alone, of a file that code made.
    pub(crate) async fn made_file(
        &self,
        owner: &str,
        id: &str,
    ) -> Result<Option<ContainerFileRow>, RecordsError> {
        let (id, owner) = (id.to_owned(), owner.to_owned());
        self.with(move |database| {
            let sql = format!(
                "SELECT {FILE_COLUMNS} FROM container_files WHERE id = ?1 AND owner = ?2 AND \
                 source = 'assistant'"
            );
            database.first(&sql, params![id, owner], file)
        })
        .await
    }

    /// Versions of the file at a path, the latest last.
    pub(crate) async fn versions_at(
        &self,
        in_container: &str,
        path: &str,
    ) -> Result<Vec<ContainerFileRow>, RecordsError> {
        let (in_container, path) = (in_container.to_owned(), path.to_owned());
        self.with(move |database| {
            let sql = format!(
                "SELECT {FILE_COLUMNS} FROM container_files WHERE container = ?1 AND path = ?2 \
                 ORDER BY number"
            );
            database.query(&sql, params![in_container, path], file)
        })
        .await
    }

    /// The files of a container as they are now.
    pub(crate) async fn container_files(
        &self,
        owner: &str,
        in_container: &str,
        page: Page,
    ) -> Result<Option<ListPage<ContainerFileRow>>, RecordsError> {
        let (owner, in_container) = (owner.to_owned(), in_container.to_owned());
        self.with(move |database| {
            let condition = ("container = ?4 AND current = 1", &params![in_container][..]);
            let rows = (FILE_COLUMNS, "container_files");
            page::read(database, rows, condition, &owner, &page, file)
        })
        .await
    }

    /// Forgets a version of a file; says whether it was there.
    pub(crate) async fn remove_container_file(&self, owner: &str, id: &str) -> Result<bool, RecordsError> {
        let (id, owner) = (id.to_owned(), owner.to_owned());
        self.with(move |database| {
            let sql = "DELETE FROM container_files WHERE id = ?1 AND owner = ?2";
            Ok(database.execute(sql, params![id, owner])? > 0)
        })
        .await
    }
}

fn file_ids(database: &Database, id: &str) -> DatabaseResult<Vec<String>> {
    let sql = "SELECT id FROM container_files WHERE container = ?1 ORDER BY number";
    database.query(sql, params![id], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::conformance::over_each_database;

    fn container(id: &str, active_ms: i64) -> ContainerRow {
        ContainerRow {
            id: id.to_owned(),
            owner: "ann".to_owned(),
            name: "x".to_owned(),
            created_ms: 0,
            active_ms,
            idle_ms: 1,
            memory_limit: None,
            allowed_domains: None,
            automatic: false,
            holder: None,
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

    over_each_database! {
        async fn a_container_goes_with_its_files_and_only_by_its_owner(records: Records) {
            records.add_container(container("one", 5)).await.unwrap();
            let hosts = Some(vec!["a.example".to_owned(), "b.example".to_owned()]);
            let two = ContainerRow { allowed_domains: hosts, ..container("two", 6) };
            records.add_container(two.clone()).await.unwrap();
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
            assert_eq!(records.stored_bytes("ann").await.unwrap(), 3);
            assert!(records.remove_container_file("ann", "f2").await.unwrap());
            assert_eq!(records.stored_bytes("ann").await.unwrap(), 2);
            let files = records.remove_container("ann", "one").await.unwrap().unwrap();
            assert_eq!(files, ["f1", "f3"]);
            assert_eq!(records.stored_bytes("ann").await.unwrap(), 0);
            assert_eq!(records.versions_at("one", "/a").await.unwrap(), []);
            assert_eq!(records.container("ann", "two").await.unwrap(), Some(two));
            // What belongs to no container is not kept.
            assert!(records.add_container_file(file("f4", "/a")).await.is_err());
        }
    }
}
