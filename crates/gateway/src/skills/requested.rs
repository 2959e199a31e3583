//! Skills that a request names or brings, for the session that it creates.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cellblock_agent::wire::{ApiError, SkillRequest};
use cellblock_interpreter::Session;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::skill::{MAX_SKILLS, SessionSkill, SkillPackage};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{find, refused};
use crate::files::fetch;
use crate::records::VersionChoice;
use crate::state::Gateway;

/// Word for the latest version.
const LATEST: &str = "latest";

/// Returns the version that a request means.
pub(super) fn choice(version: Option<&Value>, param: &str) -> Result<VersionChoice, ApiError> {
    match version {
        None | Some(Value::Null) => Ok(VersionChoice::Default),
        Some(Value::String(text)) if text == LATEST => Ok(VersionChoice::Latest),
        Some(Value::String(text)) => Ok(VersionChoice::Given(text.clone())),
        Some(Value::Number(number)) => Ok(VersionChoice::Given(number.to_string())),
        Some(_) => {
            let message = format!("`{param}` must be the number of a version or `{LATEST}`");
            Err(ApiError::invalid(param, "invalid_type", message))
        }
    }
}

/// Finds the skills of a request, whose list is at `param`, and checks that a session with these
/// limits can have them.
pub(crate) async fn requested(
    gateway: &Gateway,
    owner: &str,
    asked: &[SkillRequest],
    limits: Option<&Limits>,
    param: &str,
) -> Result<Vec<SessionSkill>, ApiError> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let interpreter = gateway.interpreter()?;
    if asked.len() > MAX_SKILLS {
        let message = format!(
            "`{param}` has {} entries; at most {MAX_SKILLS} are allowed",
            asked.len()
        );
        return Err(ApiError::invalid(param, "array_above_max_length", message));
    }
    let mut skills = Vec::new();
    for (index, skill) in asked.iter().enumerate() {
        let param = format!("{param}[{index}]");
        skills.push(match skill {
            SkillRequest::SkillReference { skill_id, version } => {
                let version = version.clone().map(Value::String);
                let choice = choice(version.as_ref(), &format!("{param}.version"))?;
                let taken = find::take(gateway, owner, skill_id, &choice).await;
                taken.map_err(|error| ApiError {
                    param: error.param.map(|field| format!("{param}.{field}")),
                    ..error
                })?
            }
            SkillRequest::Inline {
                name,
                description,
                source,
            } => {
                let texts = (name.clone(), description.clone());
                inline(gateway, owner, texts, &source.data, &param).await?
            }
        });
    }
    let checked = interpreter.check_skills(limits, &skills);
    checked.map_err(|error| ApiError::invalid(param, "invalid_value", error.to_string()))?;
    Ok(skills)
}

async fn inline(
    gateway: &Gateway,
    owner: &str,
    (name, description): (String, String),
    data: &str,
    param: &str,
) -> Result<SessionSkill, ApiError> {
    let place = format!("{param}.source.data");
    let archive = STANDARD.decode(data.trim()).map_err(|_| {
        let message = format!("`{place}` must be a zip archive in base64");
        ApiError::invalid(place.clone(), "invalid_value", message)
    })?;
    gateway.quotas.uploaded(owner, archive.len() as u64).await?;
    let packed = spawn_blocking(move || SkillPackage::from_archive(Cursor::new(archive))).await;
    let package = packed.map_err(|error| fetch::failed(&error))?;
    let package = package.map_err(|error| refused(&error, &place))?;
    let bundle = find::store(gateway, package).await?;
    let named = SessionSkill::inline(Some(name), bundle);
    let named = named.map_err(|error| refused(&error, &format!("{param}.name")))?;
    let described = named.described(description);
    described.map_err(|error| refused(&error, &format!("{param}.description")))
}

/// Returns whether a session has all skills that a request asks for, and that were found for it. Where
/// the request names no version, it is the one that the session began with, whatever the latest is.
pub(crate) fn has_all(session: &Session, asked: &[SkillRequest], found: &[SessionSkill]) -> bool {
    let mut wanted = asked.iter().zip(found);
    wanted.all(|(asked, found)| {
        let floats = match asked {
            SkillRequest::SkillReference { version, .. } => {
                version.as_ref().is_none_or(|version| version == LATEST)
            }
            SkillRequest::Inline { .. } => false,
        };
        session.skills().iter().any(|own| {
            if floats {
                return own.id == found.id;
            }
            own.name == found.name && own.bundle.sha256 == found.bundle.sha256
        })
    })
}

/// Checks that a container that exists has the skills that a request wants it to have. It keeps the
/// versions that it began with, whatever the latest is.
pub(crate) fn check_container(session: &Session, id: &str, asked: &[SkillRequest]) -> Result<(), ApiError> {
    for (index, skill) in asked.iter().enumerate() {
        let SkillRequest::SkillReference { skill_id, version } = skill else {
            continue;
        };
        let is_wanted = |version: &String, own: &SessionSkill| {
            *version == own.version || own.version_id.as_ref() == Some(version) || version == LATEST
        };
        let has = session.skills().iter().any(|own| {
            let fits = version.as_ref().is_none_or(|version| is_wanted(version, own));
            own.id.as_ref() == Some(skill_id) && fits
        });
        if !has {
            let param = format!("container.skills[{index}]");
            let message = format!(
                "`{param}`: the container `{id}` was created without this version of the skill, and skills \
                 are not added later; leave out `id` for a new container"
            );
            return Err(ApiError::invalid(param, "invalid_value", message));
        }
    }
    Ok(())
}

/// Describes the skills of a container in Anthropic's form.
pub(crate) fn describe(gateway: &Gateway, session: &Session) -> Vec<Value> {
    let stored = session.skills().iter().filter_map(|skill| {
        let id = skill.id.as_ref()?;
        let kind = if gateway.skills.shared(id).is_some() {
            "anthropic"
        } else {
            "custom"
        };
        Some(json!({"type": kind, "skill_id": id, "version": skill.version}))
    });
    stored.collect()
}
