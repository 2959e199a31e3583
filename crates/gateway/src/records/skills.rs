//! Records of skills and their versions. The archives of versions are in the artifact store.

mod versions;

use super::database::{DatabaseResult, DatabaseRow, params};
use super::page::{self, ListPage, Page};
use super::{Records, RecordsError};
use versions::{find, insert};

/// A skill, with the front matter of its default version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillRow {
    pub(crate) id: String,
    pub(crate) display_name: Option<String>,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Times in milliseconds since 1970.
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) default_version: i64,
    pub(crate) latest_version: i64,
    /// ID of the latest version.
    pub(crate) latest_id: String,
}

/// A version of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillVersionRow {
    pub(crate) id: String,
    pub(crate) skill: String,
    pub(crate) version: i64,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Size of its archive.
    pub(crate) bytes: i64,
    pub(crate) sha256: String,
    pub(crate) created_ms: i64,
}

/// The version that a request means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VersionChoice {
    Default,
    Latest,
    /// The number of a version, or its ID.
    Given(String),
}

/// Result of adding a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VersionAddition {
    /// The version, with its number.
    Added(SkillVersionRow),
    /// The skill has as many as it can have.
    Full,
    /// Its owner has no such skill.
    Missing,
}

/// Result of removing a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VersionRemoval {
    /// It was there. If it was the last one, the skill was removed with it.
    Removed(SkillVersionRow),
    /// It is the default, and there are others.
    IsDefault,
    /// Its owner has no such version.
    Missing,
}

const SKILL: &str = "id, display_name, created_ms, updated_ms, default_version, \
    (SELECT name FROM skill_versions WHERE skill = skills.id AND version = skills.default_version) AS name, \
    (SELECT description FROM skill_versions WHERE skill = skills.id AND version = skills.default_version) \
        AS description, \
    (SELECT max(version) FROM skill_versions WHERE skill = skills.id) AS latest, \
    (SELECT id FROM skill_versions WHERE skill = skills.id ORDER BY version DESC LIMIT 1) AS latest_id";

fn skill(row: &DatabaseRow<'_>) -> DatabaseResult<SkillRow> {
    Ok(SkillRow {
        id: row.get("id")?,
        display_name: row.get("display_name")?,
        name: row.get("name")?,
        description: row.get("description")?,
        created_ms: row.get("created_ms")?,
        updated_ms: row.get("updated_ms")?,
        default_version: row.get("default_version")?,
        latest_version: row.get("latest")?,
        latest_id: row.get("latest_id")?,
    })
}

impl Records {
    /// Adds a skill with its first version, if its owner has fewer than `most`. Returns whether it did.
    pub(crate) async fn add_skill(
        &self,
        owner: &str,
        display_name: Option<String>,
        first: SkillVersionRow,
        most: usize,
    ) -> Result<bool, RecordsError> {
        let owner = owner.to_owned();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.with(move |database| {
            let transaction = database.transaction()?;
            transaction.lock(&format!("skills of {owner}"))?;
            let sql = "SELECT count(*) FROM skills WHERE owner = ?1";
            let held: Option<i64> = transaction.first(sql, params![owner], |row| row.get(0))?;
            if held.unwrap_or(0) >= most {
                return Ok(false);
            }
            let sql = "INSERT INTO skills (id, owner, display_name, created_ms, updated_ms, \
                       default_version, last_version) VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?5)";
            let values = params![first.skill, owner, display_name, first.created_ms, first.version];
            transaction.execute(sql, values)?;
            insert(&transaction, &owner, &first)?;
            transaction.commit()?;
            Ok(true)
        })
        .await
    }

    pub(crate) async fn skill(&self, owner: &str, id: &str) -> Result<Option<SkillRow>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let sql = format!("SELECT {SKILL} FROM skills WHERE id = ?1 AND owner = ?2");
            database.first(&sql, params![id, owner], skill)
        })
        .await
    }

    /// Skills of an owner; `None` where the page begins after an unknown one.
    pub(crate) async fn skills(
        &self,
        owner: &str,
        page: Page,
    ) -> Result<Option<ListPage<SkillRow>>, RecordsError> {
        let owner = owner.to_owned();
        self.with(move |database| {
            page::read(database, (SKILL, "skills"), ("1 = 1", &[]), &owner, &page, skill)
        })
        .await
    }

    /// Sets the default version. Returns whether there is such a version.
    pub(crate) async fn set_default_version(
        &self,
        owner: &str,
        skill: &str,
        choice: VersionChoice,
    ) -> Result<bool, RecordsError> {
        let (owner, skill) = (owner.to_owned(), skill.to_owned());
        self.with(move |database| {
            // A version that is removed meanwhile must not become the default.
            let transaction = database.transaction()?;
            transaction.lock(&format!("skills of {owner}"))?;
            let Some(found) = find(&transaction, &owner, &skill, &choice)? else {
                return Ok(false);
            };
            let sql = "UPDATE skills SET default_version = ?1 WHERE id = ?2 AND owner = ?3";
            let changed = transaction.execute(sql, params![found.version, skill, owner])?;
            transaction.commit()?;
            Ok(changed > 0)
        })
        .await
    }

    /// Removes a skill, and returns the IDs of its versions; `None` if its owner has no such skill.
    pub(crate) async fn remove_skill(
        &self,
        owner: &str,
        id: &str,
    ) -> Result<Option<Vec<String>>, RecordsError> {
        let (owner, id) = (owner.to_owned(), id.to_owned());
        self.with(move |database| {
            let transaction = database.transaction()?;
            transaction.lock(&format!("skills of {owner}"))?;
            let sql = "SELECT id FROM skill_versions WHERE skill = ?1 AND owner = ?2";
            let versions = transaction.query(sql, params![id, owner], |row| row.get(0))?;
            let sql = "DELETE FROM skills WHERE id = ?1 AND owner = ?2";
            let removed = transaction.execute(sql, params![id, owner])?;
            transaction.commit()?;
            Ok((removed > 0).then_some(versions))
        })
        .await
    }
}

#[cfg(test)]
mod tests;
