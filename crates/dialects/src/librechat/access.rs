//! Caller of a request, and the owner of the files that it means.

use axum::extract::{FromRequestParts, Query};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::json_error;
use serde::Deserialize;

use super::error::Problem;
use super::state::State;
use crate::presented::{self, header};

/// A caller: an API key, or a user for whom LibreChat has signed a token.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Whose sandboxes and quotas they are.
    pub(super) owner: Owner,
    /// Whose agents and skills they are.
    tenant: String,
}

/// Whose files are in a storage session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reader(String);

/// Resource by which a request names the files that it means.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    pub(super) kind: Option<String>,
    #[serde(alias = "resource_id")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "version")]
    pub(super) version: Option<String>,
}

/// A caller with the files that its query means.
#[derive(Debug)]
pub(super) struct QueryCaller {
    pub(super) reader: Reader,
}

impl Caller {
    /// Returns whose files a request means. A user's are always the caller's own.
    pub(super) fn reader(&self, resource: &Resource) -> Result<Reader, Problem> {
        let id = || {
            let id = resource.id.as_deref().filter(|id| !id.is_empty());
            id.ok_or_else(|| Problem::invalid("`id` is missing: it names the agent or the skill"))
        };
        let tenant = &self.tenant;
        match resource.kind.as_deref().unwrap_or("user") {
            "user" => Ok(self.own()),
            "agent" => Ok(Reader(format!("{tenant:?} agent {:?}", id()?))),
            "skill" => {
                let version = resource.version.as_deref();
                let version =
                    version.ok_or_else(|| Problem::invalid("`version` is missing: a skill has one"))?;
                Ok(Reader(format!("{tenant:?} skill {:?} {version:?}", id()?)))
            }
            other => {
                let shown: String = other.chars().take(64).collect();
                Err(Problem::invalid(format!(
                    "invalid kind {shown:?}: must be `user`, `agent` or `skill`"
                )))
            }
        }
    }

    /// Returns the caller's own files.
    pub(super) fn own(&self) -> Reader {
        Reader(format!("{:?} user {:?}", self.tenant, self.owner.name()))
    }
}

impl FromRequestParts<State> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        let key = header(&parts.headers, "x-api-key").filter(|it| !it.is_empty());
        let bearer = header(&parts.headers, AUTHORIZATION.as_str());
        let bearer = bearer.and_then(|it| it.strip_prefix("Bearer ")).map(str::trim);
        if key.is_some() && bearer.is_some() {
            return Err(Problem::invalid(
                "the request has both `X-API-Key` and `Authorization`; send one of them",
            ));
        }
        if let Some(verifier) = &state.verifier {
            // A key is no way around a token: it would be anybody's.
            let token = bearer.ok_or_else(|| {
                Problem::unauthorized("a token is required; send it as `Authorization: Bearer <token>`")
            })?;
            let user = verifier.verify(token, chrono::Utc::now().timestamp())?;
            let tenant = format!("tenant {}", user.tenant);
            // Users of a tenant share the files of its agents.
            state.host.at_home(&tenant).await?;
            return Ok(Self {
                owner: Owner::new(format!(
                    "librechat:{}:{}",
                    plain(&user.tenant),
                    plain(&user.subject)
                )),
                tenant,
            });
        }
        let peer = presented::peer(&parts.extensions);
        let path = presented::path(parts);
        let owner = state.host.owner(key.or(bearer), path, peer).await?;
        Ok(Self {
            tenant: format!("key {}", owner.name()),
            owner,
        })
    }
}

impl FromRequestParts<State> for QueryCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let query = Query::<Resource>::from_request_parts(parts, state).await;
        let Query(resource) =
            query.map_err(|rejection| Problem::invalid(json_error::describe(&rejection.body_text())))?;
        let reader = caller.reader(&resource)?;
        Ok(Self { reader })
    }
}

/// A part of an owner's name, in which a colon does not end it.
fn plain(part: &str) -> String {
    part.replace('%', "%25").replace(':', "%3A")
}

/// A version, which is a number or a text.
fn version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Version {
        Number(i64),
        Text(String),
        None(()),
    }
    Ok(match Version::deserialize(deserializer)? {
        Version::Number(number) => Some(number.to_string()),
        Version::Text(text) => Some(text),
        Version::None(()) => None,
    })
}
