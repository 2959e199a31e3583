//! `/v1/skills`: skills in versions, in OpenAI's form and, for clients that send its header, in
//! Anthropic's.
//!
//! ```text
//! upload ──SkillPackage──> artifact store, records
//! containers, sessions, messages ──requested──> find ──SessionSkill──> the session
//! ```

mod answer;
mod anthropic;
mod find;
mod requested;
mod shared;
mod upload;
mod versions;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::routing::get;
use cellblock_agent::wire::{ApiError, ErrorKind, Ids};
use cellblock_interpreter::skill::SkillError;
use serde::Deserialize;
use serde_json::Value;

use crate::anthropic::IsAnthropic;
use crate::files::fetch;
use crate::json::Json;
use crate::listing::{self, QueryParameters};
use crate::now_ms;
use crate::problem::Problem;
use crate::records::{ListPage, Page, RecordsError, SkillVersionRow};
use crate::state::{Caller, Gateway};

pub(crate) use requested::{check_container, describe, has_all, requested};
pub use shared::load_shared;

/// Maximum and default number of skills and versions in one answer.
const PAGE: usize = 100;
const USUAL: usize = 20;

/// The routes.
pub(crate) fn routes() -> Router<Gateway> {
    Router::new()
        .route("/v1/skills", get(list).post(create))
        .route("/v1/skills/{skill}", get(retrieve).post(update).delete(remove))
        .route("/v1/skills/{skill}/content", get(versions::default_content))
        .route("/v1/skills/{skill}/versions", get(versions::list).post(versions::add))
        .route(
            "/v1/skills/{skill}/versions/{version}",
            get(versions::retrieve).delete(versions::remove),
        )
        .route("/v1/skills/{skill}/versions/{version}/content", get(versions::content))
        // Uploads are counted while they come.
        .layer(DefaultBodyLimit::disable())
}

async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let uploaded = upload::receive(&gateway, &caller, request).await?;
    let display_name = uploaded.display_name()?;
    let most = gateway.options.skills.max_per_key;
    let mut ids = Ids::random();
    let row = stored(&gateway, &caller, uploaded, &ids.mint("skill"), 1).await?;
    let added = gateway
        .records
        .add_skill(&caller.owner, display_name, row.clone(), most)
        .await;
    if !matches!(added, Ok(true)) {
        fetch::unpin(&gateway, &row.id).await;
    }
    if !added? {
        let message = format!(
            "there are {most} skills, and `skills.max_per_key` allows {most}; delete one with DELETE \
             /v1/skills/{{skill}}"
        );
        return Err(Problem::busy("too_many_skills", message));
    }
    let skill = find::find(&gateway, &caller.owner, &row.skill).await?;
    Ok(Json(answer::skill(&skill, is_anthropic)))
}

/// Stores a package, and pins it by the ID of the version that it is to become.
async fn stored(
    gateway: &Gateway,
    caller: &Caller,
    uploaded: upload::UploadedSkill,
    skill: &str,
    number: i64,
) -> Result<SkillVersionRow, Problem> {
    let bytes = uploaded.package.bytes();
    gateway.quotas.store_more(&caller.owner, bytes).await?;
    let bundle = find::store(gateway, uploaded.package).await?;
    let row = SkillVersionRow {
        id: Ids::random().mint("skillver"),
        skill: skill.to_owned(),
        version: number,
        name: bundle.metadata.name.clone(),
        description: bundle.metadata.description.clone(),
        bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        sha256: bundle.sha256.to_string(),
        created_ms: now_ms(),
    };
    fetch::pin(gateway, &row.id, &row.sha256).await?;
    Ok(row)
}

async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    query: QueryParameters,
) -> Result<Json<Value>, Problem> {
    let page = page(&query, is_anthropic)?;
    let found = find::list(&gateway, &caller.owner, page).await?;
    let object = |row: &_| answer::skill(row, is_anthropic);
    Ok(Json(listed(found, object, is_anthropic)?))
}

fn listed<R>(
    found: Option<ListPage<R>>,
    object: impl Fn(&R) -> Value,
    is_anthropic: bool,
) -> Result<Value, ApiError> {
    if is_anthropic {
        anthropic::listed(found, object)
    } else {
        listing::told(found, object)
    }
}

fn page(query: &QueryParameters, is_anthropic: bool) -> Result<Page, ApiError> {
    if is_anthropic {
        anthropic::page(query)
    } else {
        listing::page(query, PAGE, USUAL)
    }
}

async fn retrieve(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(skill): Path<String>,
) -> Result<Json<Value>, Problem> {
    let found = find::find(&gateway, &caller.owner, &skill).await?;
    Ok(Json(answer::skill(&found, is_anthropic)))
}

/// Changes of a skill.
#[derive(Debug, Deserialize)]
struct SkillChange {
    default_version: Value,
}

async fn update(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(skill): Path<String>,
    Json(change): Json<SkillChange>,
) -> Result<Json<Value>, Problem> {
    find::own(&gateway, &caller.owner, &skill).await?;
    let choice = requested::choice(Some(&change.default_version), "default_version")?;
    let changed = gateway
        .records
        .set_default_version(&caller.owner, &skill, choice.clone())
        .await?;
    if !changed {
        return Err(find::unknown_version(&skill, &choice).into());
    }
    let found = find::find(&gateway, &caller.owner, &skill).await?;
    Ok(Json(answer::skill(&found, is_anthropic)))
}

async fn remove(
    State(gateway): State<Gateway>,
    caller: Caller,
    IsAnthropic(is_anthropic): IsAnthropic,
    Path(skill): Path<String>,
) -> Result<Json<Value>, Problem> {
    find::own(&gateway, &caller.owner, &skill).await?;
    let id = skill.clone();
    // The task ends also if the client is gone: nothing else would release the archives.
    let removal = tokio::spawn(async move {
        let versions = gateway.records.remove_skill(&caller.owner, &id).await?;
        for version in versions.iter().flatten() {
            fetch::unpin(&gateway, version).await;
        }
        Ok::<_, RecordsError>(versions.is_some())
    });
    if !removal.await.map_err(|error| fetch::failed(&error))?? {
        return Err(find::unknown(&skill).into());
    }
    Ok(Json(answer::removed_skill(&skill, is_anthropic)))
}

/// Returns the error for a skill that its owner sent, or for a store that failed.
fn refused(error: &SkillError, param: &str) -> ApiError {
    if error.is_callers() {
        return ApiError::invalid(param, "invalid_skill", error.to_string());
    }
    fetch::failed(error)
}

/// Returns the error for something that only its owner may change.
fn is_shared(skill: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::InvalidRequestError,
        code: Some("skill_is_shared".to_owned()),
        message: format!("the skill `{skill}` is the operator's; upload your own with POST /v1/skills"),
        param: None,
    }
}
