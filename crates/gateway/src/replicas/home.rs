//! Services that are mounted beside the gateway's routes: MCP and the dialects.
//!
//! All sessions that an owner has in one of them are in one gateway, its home there: the first one
//! that was asked, until that ends. Lists and handles are whole then, whatever the protocol. A
//! service that reads keys itself says whose a request is while it answers ([`Gateway::at_home`]);
//! what it has answered is dropped if another gateway is the home, and the request goes there as it
//! came. A request that presents no key names its session by an id, which begins with the gateway
//! that made it ([`Gateway::mark`]).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::locate::{self, ReplicaLocation};
use super::replay::Replay;
use super::route::{go, may_forward};
use super::{forward, noting, unreachable, wanted};
use crate::problem::Problem;
use crate::records::RecordsError;
use crate::state::{Caller, Gateway};

tokio::task_local! {
    /// The path of the service that answers.
    static PATH: Arc<str>;
}

/// Finds the id of a session in a request that may present no key.
pub(crate) type NamedPlace = fn(&Parts) -> Option<String>;

/// Layer before a mounted service.
#[derive(Clone, Debug)]
pub(crate) struct MountedAt {
    pub(crate) gateway: Gateway,
    pub(crate) path: Arc<str>,
    pub(crate) named: Option<NamedPlace>,
    /// Whether the service says itself whose a request is.
    pub(crate) own_keys: bool,
}

impl Gateway {
    /// Returns the beginning of ids by which other gateways find this one, if there may be others.
    pub fn mark(&self) -> Option<&str> {
        self.records.is_shared().then(|| locate::mark(self))
    }

    /// Says whether the sessions of an owner, in the mounted service that answers now, are here. If
    /// they are elsewhere, the request is sent there, whatever the service answers.
    pub async fn at_home(&self, owner: &str) -> Result<bool, RecordsError> {
        let Ok(path) = PATH.try_with(Arc::clone) else {
            return Ok(true);
        };
        match locate::home(self, &path, owner).await? {
            ReplicaLocation::At(holder) => {
                wanted::note(holder);
                Ok(false)
            }
            ReplicaLocation::Here | ReplicaLocation::Lost => Ok(true),
        }
    }
}

/// Before mounted services.
pub(crate) async fn mounted(State(at): State<MountedAt>, request: Request, next: Next) -> Response {
    let gateway = &at.gateway;
    if !may_forward(gateway, &request) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    if let Some(id) = at.named.and_then(|named| named(&parts)) {
        match locate::marked(gateway, &id).await {
            Ok(ReplicaLocation::Here | ReplicaLocation::Lost) => {}
            found => return go(gateway, found, Request::from_parts(parts, body), next).await,
        }
    }
    if !at.own_keys {
        let owner = parts
            .extensions
            .get::<Caller>()
            .map(|caller| caller.owner.clone());
        let place = match owner {
            Some(owner) => locate::home(gateway, &at.path, &owner).await,
            None => Ok(ReplicaLocation::Here),
        };
        return go(gateway, place, Request::from_parts(parts, body), next).await;
    }
    let body = Replay::new(body);
    let tried = next.run(Request::from_parts(parts.clone(), Body::new(body.clone())));
    let (answer, holder) = noting(PATH.scope(Arc::clone(&at.path), tried)).await;
    let Some(holder) = holder else {
        return answer;
    };
    let Some(body) = body.whole() else {
        let problem = "this one has read too much of the request to send it there";
        return Problem::from(unreachable(&holder, "gateway_failed", problem)).into_response();
    };
    forward::send(gateway, &holder, Request::from_parts(parts, body)).await
}
