//! `POST /v1/sessions/{id}/fork`: independent sessions that begin with the variables and files of
//! another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use cellblock_interpreter::Error;
use cellblock_interpreter::session::fork::ForkOptions;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::answer::SessionAnswer;
use super::create::SessionParts;
use super::run::attended;
use crate::json::Json;
use crate::problem::Problem;
use crate::replicas;
use crate::state::sessions::lock;
use crate::state::{Caller, Gateway};

/// Options for forking a session.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ForkRequest {
    /// Number of new sessions, at most 16.
    #[schema(default = 1, minimum = 1, maximum = 16)]
    count: usize,
    /// Whether random generators get new seeds in each new session, also those that code has made
    /// itself with `random` and numpy. Otherwise all go on with the same random numbers.
    #[schema(default = true)]
    reseed: bool,
}

impl Default for ForkRequest {
    fn default() -> Self {
        Self {
            count: 1,
            reseed: true,
        }
    }
}

impl ForkRequest {
    /// Returns how to fork, with IDs for the new sessions.
    pub(crate) fn options(&self, mint: impl Fn() -> String) -> Result<ForkOptions, Error> {
        let mut options = ForkOptions::new(self.count);
        options.reseed = self.reseed;
        options.check()?;
        options.ids = (0..self.count).map(|_| mint()).collect();
        Ok(options)
    }
}

/// The sessions of a fork.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ForkAnswer {
    /// `session.fork`.
    object: &'static str,
    /// ID of the session that was forked.
    parent: String,
    /// IDs of the new sessions.
    ids: Vec<String>,
    /// The new sessions.
    sessions: Vec<SessionAnswer>,
}

/// Makes independent sessions that begin with the variables and files of this one, which is not
/// changed: all of them, or none. Each has its own sandbox and counts as one.
#[utoipa::path(
    post, operation_id = "fork_session", path = "/v1/sessions/{id}/fork", tag = "sessions",
    params(("id" = String, Path)),
    request_body = ForkRequest,
    responses(
        (status = 201, description = "The new sessions", body = crate::openapi::Forked),
        (status = 400, description = "The count is not possible, or the backend has no forks",
            body = crate::openapi::Error),
        (status = 404, description = "The caller has no such session", body = crate::openapi::Error),
        (
            status = 409,
            description = "The session has something that cannot be moved, such as threads; \
                           nothing has changed",
            body = crate::openapi::Error
        ),
        (status = 429, description = "The caller would have too many sessions; none was made",
            body = crate::openapi::Error),
    )
)]
pub(crate) async fn fork(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<ForkRequest>,
) -> Result<(StatusCode, Json<ForkAnswer>), Problem> {
    let held = gateway.sessions.find(&caller, &id)?;
    let turn = held.turn().await?;
    let options = request.options(|| replicas::mint_session(&gateway))?;
    let ids = options.ids.clone();
    // Every place is taken before anything is made. Those that stay empty are free again.
    let mut places = Vec::new();
    for id in &ids {
        let permit = gateway.quotas.sandbox(&caller.owner).await?;
        places.push((gateway.sessions.0.reserve(&caller.owner, id)?, permit));
    }
    let session = held.session.clone();
    let forks = attended(&gateway, turn, async move { Ok(session.fork(options).await?) }).await?;
    let mut hosted = Vec::new();
    for ((id, (place, permit)), session) in ids.iter().zip(places).zip(forks) {
        let opening = SessionParts {
            toolset: held.toolset,
            terms: held.terms.clone(),
            connectors: held.connectors.clone(),
            volume: None,
            permit,
        };
        let mut fork = opening.open(&gateway, id, session).await?;
        fork.inputs = Mutex::new(lock(&held.inputs).clone());
        fork.data = AtomicU64::new(held.data.load(Ordering::Relaxed));
        hosted.push((place, fork));
    }
    let sessions = hosted.into_iter().map(|(place, fork)| {
        let fork = Arc::clone(&*place.fill(fork)?);
        Ok(SessionAnswer::of(&fork))
    });
    let sessions = sessions.collect::<Result<Vec<_>, Problem>>()?;
    let forked = ForkAnswer {
        object: "session.fork",
        parent: id,
        ids,
        sessions,
    };
    Ok((StatusCode::CREATED, Json(forked)))
}
