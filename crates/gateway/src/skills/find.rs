//! Skills that an owner can use: its own, and after them those that the operator shares.

use std::sync::Arc;

use cellblock_agent::wire::{ApiError, ErrorKind};
use cellblock_artifact::ArtifactId;
use cellblock_interpreter::skill::{MAX_SKILLS, SessionSkill, SkillBundle, SkillPackage};

use super::refused;
use crate::files::fetch;
use crate::records::{ListPage, Page, SkillRow, SkillVersionRow, VersionChoice};
use crate::state::Gateway;

/// Returns a skill of an owner, or of the operator.
pub(super) async fn find(gateway: &Gateway, owner: &str, id: &str) -> Result<SkillRow, ApiError> {
    if let Some(shared) = gateway.skills.shared(id) {
        return Ok(shared.row.clone());
    }
    let row = gateway.records.skill(owner, id).await?;
    row.ok_or_else(|| unknown(id))
}

/// Returns a skill that its owner may change.
pub(super) async fn own(gateway: &Gateway, owner: &str, id: &str) -> Result<SkillRow, ApiError> {
    match gateway.skills.shared(id) {
        Some(_) => Err(super::is_shared(id)),
        None => find(gateway, owner, id).await,
    }
}

/// Returns an owner's skills, and after them those of the operator.
pub(super) async fn list(
    gateway: &Gateway,
    owner: &str,
    page: Page,
) -> Result<Option<ListPage<SkillRow>>, ApiError> {
    let limit = page.limit;
    let passed = page.after.as_ref();
    let passed = passed.and_then(|id| gateway.skills.shared.iter().position(|skill| skill.row.id == *id));
    let (mut found, begin) = match passed {
        Some(at) => (
            ListPage {
                rows: Vec::new(),
                more: false,
            },
            at + 1,
        ),
        None => match gateway.records.skills(owner, page).await? {
            Some(found) => (found, 0),
            None => return Ok(None),
        },
    };
    if !found.more {
        let rest = &gateway.skills.shared[begin..];
        let room = limit.saturating_sub(found.rows.len());
        found
            .rows
            .extend(rest.iter().take(room).map(|skill| skill.row.clone()));
        found.more = rest.len() > room;
    }
    Ok(Some(found))
}

/// Returns the versions of a skill.
pub(super) async fn versions(
    gateway: &Gateway,
    owner: &str,
    id: &str,
    page: Page,
) -> Result<Option<ListPage<SkillVersionRow>>, ApiError> {
    if let Some(shared) = gateway.skills.shared(id) {
        let rows = match page.after {
            Some(_) => Vec::new(),
            None => vec![shared.version.clone()],
        };
        return Ok(Some(ListPage { rows, more: false }));
    }
    find(gateway, owner, id).await?;
    Ok(gateway.records.skill_versions(owner, id, page).await?)
}

/// Returns a version of a skill.
pub(super) async fn version(
    gateway: &Gateway,
    owner: &str,
    id: &str,
    choice: &VersionChoice,
) -> Result<SkillVersionRow, ApiError> {
    let found = if let Some(shared) = gateway.skills.shared(id) {
        Some(shared.version.clone()).filter(|version| match choice {
            VersionChoice::Default | VersionChoice::Latest => true,
            VersionChoice::Given(text) => text == "1" || *text == version.id,
        })
    } else {
        find(gateway, owner, id).await?;
        gateway.records.skill_version(owner, id, choice.clone()).await?
    };
    found.ok_or_else(|| unknown_version(id, choice))
}

/// Returns a version for a session.
pub(super) async fn take(
    gateway: &Gateway,
    owner: &str,
    id: &str,
    choice: &VersionChoice,
) -> Result<SessionSkill, ApiError> {
    let row = version(gateway, owner, id, choice).await?;
    let bundle = match gateway.skills.shared(id) {
        Some(shared) => Arc::clone(&shared.bundle),
        None => opened(gateway, &row.sha256).await?,
    };
    Ok(SessionSkill {
        version_id: Some(row.id),
        ..SessionSkill::stored(row.skill, row.version.to_string(), bundle)
    })
}

impl Gateway {
    /// Returns the skills of an owner in their default versions, and those that the operator
    /// shares, for sessions whose clients cannot choose any: as many as a session can have, and
    /// none if sandboxes have no place for them.
    pub async fn skills_of(&self, owner: &str) -> Result<Vec<SessionSkill>, ApiError> {
        let interpreter = self.interpreter()?;
        let page = Page {
            after: None,
            limit: MAX_SKILLS,
            ascending: false,
        };
        let rows = list(self, owner, page)
            .await?
            .map_or_else(Vec::new, |found| found.rows);
        let mut skills = Vec::new();
        for row in rows {
            // Its clients cannot leave out a skill that was deleted meanwhile or that is damaged.
            match take(self, owner, &row.id, &VersionChoice::Default).await {
                Ok(skill) => skills.push(skill),
                Err(error) => {
                    tracing::warn!(
                        skill = row.id,
                        error = &error as &dyn std::error::Error,
                        "left out a skill that cannot be read"
                    );
                    continue;
                }
            }
            if let Err(error) = interpreter.check_skills(None, &skills) {
                tracing::info!(
                    skill = row.id,
                    error = &error as &dyn std::error::Error,
                    "left a skill out"
                );
                skills.pop();
            }
        }
        Ok(skills)
    }
}

/// Stores a package, whose archive stays open as long as somebody uses it.
pub(super) async fn store(gateway: &Gateway, package: SkillPackage) -> Result<Arc<SkillBundle>, ApiError> {
    let bundle = SkillBundle::store(&gateway.store, package).await;
    Ok(gateway
        .skills
        .keep(bundle.map_err(|error| refused(&error, "files"))?))
}

async fn opened(gateway: &Gateway, sha256: &str) -> Result<Arc<SkillBundle>, ApiError> {
    let id: ArtifactId = sha256.parse().map_err(|error| fetch::failed(&error))?;
    if let Some(open) = gateway.skills.opened(id) {
        return Ok(open);
    }
    let bundle = SkillBundle::open(&gateway.store, id).await;
    Ok(gateway
        .skills
        .keep(bundle.map_err(|error| fetch::failed(&error))?))
}

/// Returns the error for a skill that its caller cannot see.
pub(super) fn unknown(id: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some("skill_not_found".to_owned()),
        message: format!("there is no skill `{}`; GET /v1/skills lists them", shortened(id)),
        param: Some("skill_id".to_owned()),
    }
}

/// Returns the error for a version that a skill does not have.
pub(super) fn unknown_version(skill: &str, choice: &VersionChoice) -> ApiError {
    let version = match choice {
        VersionChoice::Default => "default",
        VersionChoice::Latest => "latest",
        VersionChoice::Given(text) => text,
    };
    ApiError {
        kind: ErrorKind::NotFound,
        code: Some("skill_version_not_found".to_owned()),
        message: format!(
            "the skill `{}` has no version `{}`; GET /v1/skills/{{skill}}/versions lists them",
            shortened(skill),
            shortened(version)
        ),
        param: Some("version".to_owned()),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}
