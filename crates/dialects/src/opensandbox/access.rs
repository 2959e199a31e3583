//! Caller of a request: an owner by its key, or one sandbox by its token.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use cellblock_interpreter::hosting::Owner;

use super::error::Problem;
use super::sandbox::{HeldSandbox, State};
use crate::presented::{self, header};

pub(super) const KEY: &str = "open-sandbox-api-key";
pub(super) const TOKEN: &str = "x-execd-access-token";

/// The owner of the key of a request to the lifecycle.
#[derive(Debug)]
pub(super) struct Caller(pub(super) Owner);

/// The sandbox of a request to execd, with its owner.
#[derive(Debug)]
pub(super) struct ExecdSandbox {
    pub(super) sandbox: HeldSandbox,
    pub(super) owner: Owner,
}

impl FromRequestParts<State> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        let path = presented::path(parts);
        let peer = presented::peer(&parts.extensions);
        let secret = header(&parts.headers, KEY).or_else(|| bearer(&parts.headers));
        // Clients without a key send an empty one.
        let secret = secret.filter(|it| !it.is_empty());
        Ok(Self(state.host.owner(secret, path, peer).await?))
    }
}

impl FromRequestParts<State> for ExecdSandbox {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|rejection| Problem::invalid(rejection.body_text()))?;
        let id = params.iter().find(|(name, _)| *name == "id");
        let id = id.map_or(String::new(), |(_, id)| id.to_owned());
        if let Some(token) = header(&parts.headers, TOKEN) {
            let sandbox = state
                .opened_by(&id, token)
                .ok_or_else(|| Problem::no_sandbox(&id))?;
            state.host.enter(&sandbox.owner).await?;
            let owner = Owner::new(sandbox.owner.clone());
            return Self { sandbox, owner }.running();
        }
        let Caller(owner) = Caller::from_request_parts(parts, state).await?;
        let sandbox = state.sandboxes.hold(owner.name(), &id);
        let sandbox = sandbox.ok_or_else(|| Problem::no_sandbox(&id))?;
        Self { sandbox, owner }.running()
    }
}

impl ExecdSandbox {
    /// Rejects requests to a sandbox that is paused.
    fn running(self) -> Result<Self, Problem> {
        if self.sandbox.kept.status() == "Paused" {
            return Err(Problem::paused(&self.sandbox.id));
        }
        Ok(self)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    header(headers, AUTHORIZATION.as_str())?.strip_prefix("Bearer ")
}
