//! The versions of a skill.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use serde_json::Value;

use super::{answer, find, listed, page, stored, upload};
use crate::anthropic::IsAnthropic;
use crate::files::fetch;
use crate::json::Json;
use crate::listing::QueryParameters;
use crate::problem::Problem;
use crate::records::{VersionAddition, VersionChoice, VersionRemoval};
use crate::state::{Caller, Gateway};

/// Maximum number of versions of a skill.
const MAX_VERSIONS: usize = 100;

pub(super) async fn add(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(skill): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let before = find::own(&gateway, &caller.owner, &skill).await?;
    let uploaded = upload::receive(&gateway, &caller, request).await?;
    let name = &uploaded.package.metadata().name;
    if *name != before.name {
        let message = format!(
            "the `SKILL.md` of this version names the skill `{name}`, and the versions before it `{}`; a \
             skill keeps its name",
            before.name
        );
        return Err(Problem::invalid("files", message));
    }
    // Anthropic's API has no default version, and uses the latest.
    let is_default = is_anthropic || uploaded.is_default()?;
    let row = stored(&gateway, &caller, uploaded, &skill, 0).await?;
    let id = row.id.clone();
    let added = gateway
        .records
        .add_skill_version(&caller.owner, row, is_default, MAX_VERSIONS)
        .await;
    if !matches!(added, Ok(VersionAddition::Added(_))) {
        fetch::unpin(&gateway, &id).await;
    }
    match added? {
        VersionAddition::Added(row) => Ok(Json(answer::version(&row, is_anthropic))),
        VersionAddition::Full => {
            let message = format!(
                "the skill `{skill}` has {MAX_VERSIONS} versions, and can have at most {MAX_VERSIONS}; \
                 delete one with DELETE /v1/skills/{{skill}}/versions/{{version}}"
            );
            Err(Problem::busy("too_many_skill_versions", message))
        }
        VersionAddition::Missing => Err(find::unknown(&skill).into()),
    }
}

pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(skill): Path<String>,
    query: QueryParameters,
) -> Result<Json<Value>, Problem> {
    let page = page(&query, is_anthropic)?;
    let found = find::versions(&gateway, &caller.owner, &skill, page).await?;
    let object = |row: &_| answer::version(row, is_anthropic);
    Ok(Json(listed(found, object, is_anthropic)?))
}

pub(super) async fn retrieve(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path((skill, version)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let choice = VersionChoice::Given(version);
    let row = find::version(&gateway, &caller.owner, &skill, &choice).await?;
    Ok(Json(answer::version(&row, is_anthropic)))
}

pub(super) async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path((skill, version)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    find::own(&gateway, &caller.owner, &skill).await?;
    let choice = VersionChoice::Given(version);
    let removal = gateway
        .records
        .remove_skill_version(&caller.owner, &skill, choice.clone(), is_anthropic)
        .await?;
    match removal {
        VersionRemoval::Removed(row) => {
            fetch::unpin(&gateway, &row.id).await;
            Ok(Json(answer::removed_version(&row, is_anthropic)))
        }
        VersionRemoval::IsDefault => {
            let message = format!(
                "this version of the skill `{skill}` is its default, and there are others; set another \
                 `default_version` first, or delete the skill"
            );
            Err(Problem::invalid("version", message))
        }
        VersionRemoval::Missing => Err(find::unknown_version(&skill, &choice).into()),
    }
}

pub(super) async fn default_content(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(skill): Path<String>,
) -> Result<Response, Problem> {
    send(&gateway, &caller, &skill, &VersionChoice::Default).await
}

pub(super) async fn content(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path((skill, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    send(&gateway, &caller, &skill, &VersionChoice::Given(version)).await
}

async fn send(
    gateway: &Gateway,
    caller: &Caller,
    skill: &str,
    choice: &VersionChoice,
) -> Result<Response, Problem> {
    let row = find::version(gateway, &caller.owner, skill, choice).await?;
    let name = format!("{}.zip", row.name);
    Ok(fetch::send(gateway, &name, row.bytes, &row.sha256).await?)
}
