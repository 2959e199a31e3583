//! Records of executions.

use super::database::{DatabaseResult, DatabaseRow, params};
use super::page::{self, ListPage, Page};
use super::{Records, RecordsError};

/// The record of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) session: String,
    pub(crate) created_ms: i64,
    /// As JSON.
    pub(crate) record: String,
}

/// Filter of the runs of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunsOf {
    /// Those of one session.
    pub(crate) session: Option<String>,
    /// Those that began at this time or later.
    pub(crate) since_ms: i64,
}

const COLUMNS: &str = "id, owner, session, created_ms, record";

fn run(row: &DatabaseRow<'_>) -> DatabaseResult<RunRow> {
    Ok(RunRow {
        id: row.get("id")?,
        owner: row.get("owner")?,
        session: row.get("session")?,
        created_ms: row.get("created_ms")?,
        record: row.get("record")?,
    })
}

impl Records {
    /// Adds runs in this order, and removes the oldest runs of their owners beyond `keep` for each.
    pub(crate) async fn add_runs(&self, rows: Vec<RunRow>, keep: usize) -> Result<(), RecordsError> {
        let keep = i64::try_from(keep).unwrap_or(i64::MAX);
        self.with(move |database| {
            let transaction = database.transaction()?;
            let sql = format!("INSERT INTO runs ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5)");
            for row in &rows {
                let values = params![row.id, row.owner, row.session, row.created_ms, row.record];
                transaction.execute(&sql, values)?;
            }
            let mut owners: Vec<_> = rows.iter().map(|row| row.owner.as_str()).collect();
            owners.sort_unstable();
            owners.dedup();
            let sql = "DELETE FROM runs WHERE owner = ?1 AND number <= \
                       (SELECT number FROM runs WHERE owner = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)";
            for owner in owners {
                transaction.execute(sql, params![owner, keep])?;
            }
            transaction.commit()
        })
        .await
    }

    /// Removes runs that began before a time.
    pub(crate) async fn forget_runs(&self, before_ms: i64) -> Result<(), RecordsError> {
        self.with(move |database| {
            database.execute("DELETE FROM runs WHERE created_ms < ?1", params![before_ms])
        })
        .await
        .map(drop)
    }

    /// Runs of an owner; `None` where the page begins after an unknown one.
    pub(crate) async fn runs(
        &self,
        owner: &str,
        of: RunsOf,
        page: Page,
    ) -> Result<Option<ListPage<RunRow>>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |database| {
            let condition = (
                "created_ms >= ?4 AND (?5 IS NULL OR session = ?5)",
                &params![of.since_ms, of.session][..],
            );
            page::read(database, (COLUMNS, "runs"), condition, &owner, &page, run)
        })
        .await
    }

    /// A run of an owner that began at a time or later.
    pub(crate) async fn run(
        &self,
        owner: &str,
        id: &str,
        since_ms: i64,
    ) -> Result<Option<RunRow>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1 AND owner = ?2 AND created_ms >= ?3");
            database.first(&sql, params![id, owner, since_ms], run)
        })
        .await
    }

    /// The newest runs of all owners, the newest first; of one session where it is given.
    pub(crate) async fn all_runs(
        &self,
        session: Option<String>,
        most: usize,
    ) -> Result<Vec<RunRow>, RecordsError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.with(move |database| {
            let sql = format!(
                "SELECT {COLUMNS} FROM runs WHERE ?1 IS NULL OR session = ?1 ORDER BY number DESC LIMIT ?2"
            );
            database.query(&sql, params![session, most], run)
        })
        .await
    }

    /// A run of any owner.
    pub(crate) async fn any_run(&self, id: &str) -> Result<Option<RunRow>, RecordsError> {
        let id = id.to_owned();
        self.with(move |database| {
            let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
            database.first(&sql, params![id], run)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::conformance::over_each_database;

    fn row(id: &str, owner: &str, session: &str, created_ms: i64) -> RunRow {
        RunRow {
            id: id.to_owned(),
            owner: owner.to_owned(),
            session: session.to_owned(),
            created_ms,
            record: "{}".to_owned(),
        }
    }

    async fn ids(records: &Records, owner: &str, session: Option<&str>, since_ms: i64) -> Vec<String> {
        let of = RunsOf {
            session: session.map(str::to_owned),
            since_ms,
        };
        let page = Page {
            after: None,
            limit: 10,
            ascending: true,
        };
        let found = records.runs(owner, of, page).await.unwrap().unwrap();
        found.rows.into_iter().map(|row| row.id).collect()
    }

    over_each_database! {
        async fn each_owner_keeps_the_newest_runs(records: Records) {
            let rows = (0..4).map(|number| row(&format!("a{number}"), "ann", "s", number));
            records.add_runs(rows.collect(), 3).await.unwrap();
            records.add_runs(vec![row("b0", "bob", "s", 9)], 3).await.unwrap();
            assert_eq!(ids(&records, "ann", None, 0).await, ["a1", "a2", "a3"]);
            assert_eq!(ids(&records, "bob", None, 0).await, ["b0"]);
            records.forget_runs(3).await.unwrap();
            assert_eq!(ids(&records, "ann", None, 0).await, ["a3"]);
        }

        async fn runs_are_found_by_their_owner_session_and_age(records: Records) {
            let rows = vec![row("one", "ann", "s1", 10), row("two", "ann", "s2", 20)];
            records.add_runs(rows, 10).await.unwrap();
            assert_eq!(ids(&records, "ann", Some("s2"), 0).await, ["two"]);
            assert_eq!(ids(&records, "ann", None, 15).await, ["two"]);
            assert!(records.run("ann", "one", 0).await.unwrap().is_some());
            assert!(records.run("ann", "one", 11).await.unwrap().is_none());
            assert!(records.run("bob", "one", 0).await.unwrap().is_none());
            let all = records.all_runs(None, 10).await.unwrap();
            assert_eq!(all.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["two", "one"]);
        }
    }
}
