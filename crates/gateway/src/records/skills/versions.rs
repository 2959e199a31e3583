//! Records of the versions of skills.

use super::{SkillVersionRow, VersionAddition, VersionChoice, VersionRemoval};
use crate::records::database::{Database, DatabaseResult, DatabaseRow, DatabaseTransaction, params};
use crate::records::page::{self, ListPage, Page};
use crate::records::{Records, RecordsError};

const VERSION: &str = "id, skill, version, name, description, bytes, sha256, created_ms";

fn version(row: &DatabaseRow<'_>) -> DatabaseResult<SkillVersionRow> {
    Ok(SkillVersionRow {
        id: row.get("id")?,
        skill: row.get("skill")?,
        version: row.get("version")?,
        name: row.get("name")?,
        description: row.get("description")?,
        bytes: row.get("bytes")?,
        sha256: row.get("sha256")?,
        created_ms: row.get("created_ms")?,
    })
}

/// Returns the version that a request means.
pub(super) fn find(
    database: &Database,
    owner: &str,
    skill: &str,
    choice: &VersionChoice,
) -> DatabaseResult<Option<SkillVersionRow>> {
    let select = format!("SELECT {VERSION} FROM skill_versions WHERE owner = ?1 AND skill = ?2 AND");
    match choice {
        VersionChoice::Default => {
            let sql = format!("{select} version = (SELECT default_version FROM skills WHERE skills.id = ?2)");
            database.first(&sql, params![owner, skill], version)
        }
        VersionChoice::Latest => {
            let sql = format!("{select} 1 = 1 ORDER BY version DESC LIMIT 1");
            database.first(&sql, params![owner, skill], version)
        }
        VersionChoice::Given(text) => {
            if let Ok(number) = text.parse::<i64>() {
                let sql = format!("{select} version = ?3");
                return database.first(&sql, params![owner, skill, number], version);
            }
            let sql = format!("{select} id = ?3");
            database.first(&sql, params![owner, skill, text], version)
        }
    }
}

/// Adds a version to a skill that is there.
pub(super) fn insert(
    transaction: &DatabaseTransaction<'_>,
    owner: &str,
    row: &SkillVersionRow,
) -> DatabaseResult<u64> {
    let sql =
        format!("INSERT INTO skill_versions (owner, {VERSION}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    let values = params![
        owner,
        row.id,
        row.skill,
        row.version,
        row.name,
        row.description,
        row.bytes,
        row.sha256,
        row.created_ms,
    ];
    transaction.execute(&sql, values)
}

impl Records {
    /// Adds a version, whose number is set here, and makes it the default if that is wanted, unless
    /// the skill has `most` versions.
    pub(crate) async fn add_skill_version(
        &self,
        owner: &str,
        mut row: SkillVersionRow,
        is_default: bool,
        most: usize,
    ) -> Result<VersionAddition, RecordsError> {
        let owner = owner.to_owned();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.with(move |database| {
            let transaction = database.transaction()?;
            transaction.lock(&format!("skills of {owner}"))?;
            let sql = "UPDATE skills SET last_version = last_version + 1, updated_ms = ?1 WHERE id = ?2 AND \
                       owner = ?3 RETURNING last_version";
            let values = params![row.created_ms, row.skill, owner];
            let Some(number) = transaction.first(sql, values, |row| row.get(0))? else {
                return Ok(VersionAddition::Missing);
            };
            let sql = "SELECT count(*) FROM skill_versions WHERE skill = ?1";
            let held: Option<i64> = transaction.first(sql, params![row.skill], |row| row.get(0))?;
            if held.unwrap_or(0) >= most {
                return Ok(VersionAddition::Full);
            }
            row.version = number;
            insert(&transaction, &owner, &row)?;
            if is_default {
                let sql = "UPDATE skills SET default_version = ?1 WHERE id = ?2";
                transaction.execute(sql, params![row.version, row.skill])?;
            }
            transaction.commit()?;
            Ok(VersionAddition::Added(row))
        })
        .await
    }

    pub(crate) async fn skill_version(
        &self,
        owner: &str,
        skill: &str,
        choice: VersionChoice,
    ) -> Result<Option<SkillVersionRow>, RecordsError> {
        let (owner, skill) = (owner.to_owned(), skill.to_owned());
        self.with(move |database| find(database, &owner, &skill, &choice))
            .await
    }

    /// Versions of a skill; `None` where the page begins after an unknown one.
    pub(crate) async fn skill_versions(
        &self,
        owner: &str,
        skill: &str,
        page: Page,
    ) -> Result<Option<ListPage<SkillVersionRow>>, RecordsError> {
        let (owner, skill) = (owner.to_owned(), skill.to_owned());
        self.with(move |database| {
            let condition = ("skill = ?4", &params![skill][..]);
            page::read(
                database,
                (VERSION, "skill_versions"),
                condition,
                &owner,
                &page,
                version,
            )
        })
        .await
    }

    /// Removes a version. The default is kept as long as there are others, unless it `moves` to the
    /// latest of them.
    pub(crate) async fn remove_skill_version(
        &self,
        owner: &str,
        skill: &str,
        choice: VersionChoice,
        moves: bool,
    ) -> Result<VersionRemoval, RecordsError> {
        let (owner, skill) = (owner.to_owned(), skill.to_owned());
        self.with(move |database| {
            let transaction = database.transaction()?;
            transaction.lock(&format!("skills of {owner}"))?;
            let Some(found) = find(&transaction, &owner, &skill, &choice)? else {
                return Ok(VersionRemoval::Missing);
            };
            let default = find(&transaction, &owner, &skill, &VersionChoice::Default)?;
            let sql = "SELECT version FROM skill_versions WHERE skill = ?1 AND version <> ?2 \
                       ORDER BY version DESC LIMIT 1";
            let values = params![skill, found.version];
            let other: Option<i64> = transaction.first(sql, values, |row| row.get(0))?;
            match other {
                None => {
                    transaction.execute("DELETE FROM skills WHERE id = ?1", params![skill])?;
                }
                Some(_) if default.as_ref() == Some(&found) && !moves => {
                    return Ok(VersionRemoval::IsDefault);
                }
                Some(other) => {
                    if default.as_ref() == Some(&found) {
                        let sql = "UPDATE skills SET default_version = ?1 WHERE id = ?2";
                        transaction.execute(sql, params![other, skill])?;
                    }
                    let sql = "DELETE FROM skill_versions WHERE id = ?1";
                    transaction.execute(sql, params![found.id])?;
                }
            }
            transaction.commit()?;
            Ok(VersionRemoval::Removed(found))
        })
        .await
    }
}
