//! Copies of a sandbox that runs: forks, and the sandboxes that may be copied.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use cellblock_interpreter::hosting::Owner;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::session::fork::ForkOptions;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::{Caller, ID};
use super::super::sandbox::HeldSandbox;
use super::super::snapshot::refused;
use super::super::state::{E2b, FOREVER};
use super::answer::SandboxAnswer;
use super::create::{TIMEOUT, lifetime};

/// Name of the action in errors.
const FORK: &str = "fork a sandbox";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ForkRequest {
    timeout: Option<u64>,
    count: Option<usize>,
}

/// Result of one fork.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ForkAnswer {
    Sandbox(SandboxAnswer),
    /// An error in E2B's form.
    Error(Value),
}

/// Makes sandboxes that begin with the state of one, as many as the quotas of its key allow.
pub(super) async fn fork(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<(StatusCode, Json<Vec<ForkAnswer>>)> {
    let request: ForkRequest = read(&body)?;
    let timeout = lifetime(&e2b, request.timeout.unwrap_or(TIMEOUT))?;
    let mut options = ForkOptions::new(request.count.unwrap_or(1));
    let count = options.count;
    options
        .check()
        .map_err(|error| Problem::invalid(error.to_string()))?;
    let held = copyable(&e2b, &owner, &id, FORK)?;
    let turn = held.turn().await?;
    let ids: Vec<_> = (0..count).map(|_| e2b.host.mint(ID)).collect();
    // Every place is taken before anything is made.
    let mut places = Vec::new();
    let mut denied = None;
    for id in &ids {
        match e2b.host.reserve(&e2b.sandboxes, &owner, id).await {
            Ok(place) => places.push(place),
            Err(error) if places.is_empty() => return Err(error.into()),
            Err(error) => {
                denied = Some(Problem::from(error));
                break;
            }
        }
    }
    options.count = places.len();
    options.ids = ids.iter().take(places.len()).cloned().collect();
    let forks = turn.session.fork(options).await;
    let forks = forks.map_err(|error| refused(error, FORK))?;
    let mut answers = Vec::new();
    for (place, session) in places.into_iter().zip(forks) {
        let fork = place.fill(session, FOREVER, held.kept.fork(timeout))?;
        e2b.watch(&fork);
        answers.push(ForkAnswer::Sandbox(SandboxAnswer::of(&e2b, &fork)));
    }
    if let Some(denied) = denied {
        answers.resize_with(count, || ForkAnswer::Error(denied.body()));
    }
    Ok((StatusCode::CREATED, Json(answers)))
}

/// Returns an owner's sandbox if it can be copied, as far as this is known without its kernel.
pub(super) fn copyable(e2b: &E2b, owner: &Owner, id: &str, action: &str) -> Answer<HeldSandbox> {
    let held = e2b.of(owner, id)?;
    let conflict = |reason: &str| {
        let message = format!("{action}: sandbox {id:?} {reason}");
        Err(Problem::new(StatusCode::CONFLICT, message))
    };
    if held.kept.life.borrow().is_paused() {
        return conflict("is paused; connect to it first");
    }
    if held.session.network() == NetworkPolicy::Egress {
        return conflict(
            "reaches hosts (`egress`), and its connections cannot be copied; create it with \
             `allow_internet_access=False`",
        );
    }
    match held.kept.daemon.running(held.session.processes()) {
        Some(command) => conflict(&format!(
            "runs the {command}, which cannot be copied; wait for its end, or kill it"
        )),
        None => Ok(held),
    }
}
