//! `POST /sandboxes`: makes a sandbox, which runs when the answer comes.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State as Given;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use cellblock_interpreter::egress::EgressRestriction;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::mint;
use chrono::{TimeDelta, Utc};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::access::Caller;
use super::contexts;
use super::demands::{self, RequestedNetwork};
use super::error::Problem;
use super::runs::Runs;
use super::sandbox::{Sandbox, State};
use super::shell::Shells;
use super::terminals::Terminals;
use crate::bounded::BoundedDescription;
use crate::host::SessionWish;

/// Time for which a session may be idle longer than its sandbox: its own end comes first.
const AFTERWARDS: Duration = Duration::from_hours(1);
/// Maximum number of entries of `metadata`, and of `env`.
pub(super) const ENTRIES: usize = 256;

/// Metadata that a client stores with a sandbox, by names.
pub(super) type SandboxMetadata = BoundedDescription<BTreeMap<String, String>>;

/// A sandbox to make. Fields that other providers need and that change nothing here are not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CreateRequest {
    image: Option<BoundedDescription<Value>>,
    entrypoint: BoundedDescription<Vec<String>>,
    timeout: Option<f64>,
    env: BoundedDescription<BTreeMap<String, String>>,
    metadata: SandboxMetadata,
    extensions: Option<BoundedDescription<Map<String, Value>>>,
    network_policy: Option<RequestedNetwork>,
    resource_limits: Option<BTreeMap<String, String>>,
    resource_requests: Option<BTreeMap<String, String>>,
    platform: Option<Value>,
    snapshot_id: Option<Value>,
    template_id: Option<Value>,
    volumes: Option<Vec<Value>>,
    credential_proxy: Option<Value>,
    lifecycle: Option<Value>,
}

pub(super) async fn create(
    Given(state): Given<State>,
    Caller(owner): Caller,
    request: Result<Json<CreateRequest>, JsonRejection>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let Json(request) = request?;
    request.check()?;
    let lifetime = request.lifetime(state.options.max_lifetime)?;
    let limits = demands::limits(
        &request.resource_limits.unwrap_or_default(),
        state.host.interpreter.limits(),
    )?;
    let offered = state.host.network(&owner).await?;
    let (network, restriction) = match &request.network_policy {
        Some(policy) => policy.enforce(offered, state.host.egress.as_ref())?,
        None => (NetworkPolicy::Egress, EgressRestriction::default()),
    };
    let id = state.host.mint("");
    let mut given = Map::new();
    given.insert("entrypoint".to_owned(), json!(*request.entrypoint));
    if let Some(image) = request.image {
        given.insert("image".to_owned(), image.into_inner());
    }
    if let Some(extensions) = request.extensions {
        given.insert("extensions".to_owned(), Value::Object(extensions.into_inner()));
    }
    let created = Utc::now();
    let sandbox = Sandbox {
        token: mint(""),
        given,
        metadata: Mutex::new(request.metadata),
        env: request.env.into_inner(),
        created,
        expires: watch::Sender::new(created + lifetime),
        paused: Mutex::default(),
        contexts: contexts::Contexts::default(),
        runs: Runs::default(),
        shells: Shells::default(),
        terminals: Terminals::default(),
    };
    let wish = SessionWish {
        id: id.clone(),
        idle: state.options.max_lifetime + AFTERWARDS,
        network,
        limits,
        restriction,
        prelude: vec!["analysis".to_owned()],
        ..SessionWish::default()
    };
    let held = state.host.open(&state.sandboxes, &owner, wish, sandbox).await?;
    let ready = async {
        let _permit = state.host.cell(&owner).await?;
        contexts::begin(&held.session, &held.kept.env).await
    };
    if let Err(problem) = ready.await {
        state.sandboxes.end(&held).await;
        return Err(problem);
    }
    state.remember(&held);
    state.expire((*held).clone());
    Ok((StatusCode::ACCEPTED, Json(held.kept.describe(&id))))
}

impl CreateRequest {
    /// Rejects what would otherwise be missing without a word.
    fn check(&self) -> Result<(), Problem> {
        let absent = |name: &str, why: &str| {
            Err(Problem::unsupported(format!(
                "`{name}` is not supported: {why}; leave it out"
            )))
        };
        if self.snapshot_id.is_some() {
            return absent("snapshotId", "this server keeps no snapshots");
        }
        if self.template_id.is_some() {
            return absent("templateId", "sandboxes start from the server's image");
        }
        if self.volumes.as_ref().is_some_and(|it| !it.is_empty()) {
            return absent("volumes", "files are put into a sandbox by `/files/upload`");
        }
        if self.credential_proxy.is_some() {
            return absent(
                "credentialProxy",
                "the server's operator sets credentials of its proxy",
            );
        }
        if self.lifecycle.is_some() {
            return absent("lifecycle", "this server runs no hooks");
        }
        if self.resource_requests.as_ref().is_some_and(|it| !it.is_empty()) {
            return absent(
                "resourceRequests",
                "sandboxes have limits, and no reserved resources",
            );
        }
        if self.platform.as_ref().is_some_and(|it| !it.is_null()) {
            return absent("platform", "sandboxes have the platform of this server");
        }
        for (name, entries) in [("env", &*self.env), ("metadata", &*self.metadata)] {
            if entries.len() > ENTRIES {
                let count = entries.len();
                return Err(Problem::invalid(format!(
                    "`{name}` has {count} entries, the limit is {ENTRIES}"
                )));
            }
        }
        let wrong = |it: &&String| it.is_empty() || it.contains(['=', '\0']);
        if let Some(name) = self.env.keys().find(wrong) {
            return Err(Problem::invalid(format!(
                "`env`: `{name}` is not the name of a variable"
            )));
        }
        Ok(())
    }

    fn lifetime(&self, most: Duration) -> Result<TimeDelta, Problem> {
        let Some(seconds) = self.timeout else {
            return Ok(TimeDelta::from_std(most).unwrap_or(TimeDelta::MAX));
        };
        let lifetime = Duration::try_from_secs_f64(seconds).ok();
        let lifetime = lifetime.filter(|it| !it.is_zero() && *it <= most);
        lifetime
            .and_then(|it| TimeDelta::from_std(it).ok())
            .ok_or_else(|| {
                let most = most.as_secs();
                Problem::invalid(format!(
                    "invalid timeout `{seconds}`: must be more than 0 and at most {most} seconds"
                ))
            })
    }
}
