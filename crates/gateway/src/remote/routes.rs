//! `GET /v1/sandbox`: a sandbox for another Cellblock, as long as its connection lasts.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::Response;
use axum::routing::any;
use cellblock_interpreter::limits::Limits;
use cellblock_interpreter::remote::ServeTerms;

use super::socket;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// The route, if sandboxes are offered. Otherwise there is none, and a client learns that code can
/// only be executed.
pub(crate) fn routes(gateway: &Gateway) -> Router<Gateway> {
    if gateway.options.remote.serve {
        Router::new().route("/v1/sandbox", any(sandbox))
    } else {
        Router::new()
    }
}

async fn sandbox(
    State(gateway): State<Gateway>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let interpreter = Arc::clone(gateway.interpreter()?);
    let terms = ServeTerms {
        most: Some(Limits {
            network: gateway.max_network(&caller.owner).await?,
            ..interpreter.limits().clone()
        }),
        ..ServeTerms::default()
    };
    let permit = gateway.quotas.sandbox(&caller.owner).await?;
    // The gateway's end waits for it as for other work, and then ends it.
    let work = gateway.tasks.token();
    let ending = gateway.ending.clone();
    tracing::info!(owner = caller.owner, "another Cellblock asks for a sandbox");
    Ok(socket::upgrade(upgrade, interpreter, terms, async move {
        let _held = (permit, work);
        ending.cancelled().await;
    }))
}
