//! Lists that are in several gateways.

use std::time::Duration;

use axum::http::HeaderMap;
use cellblock_agent::wire::{ApiError, ErrorKind};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

use super::forward::{carried, failed, url};
use super::locate::mark_of;
use super::{FORWARDED_BY, unreachable};
use crate::problem::Problem;
use crate::records::holders::{self, HoldingGateway};
use crate::state::Gateway;

/// Maximum time for another gateway to answer. All are asked at once.
const LIMIT: Duration = Duration::from_secs(3);

/// Answer of another gateway.
#[derive(Deserialize)]
struct GatewayPage {
    data: Vec<Value>,
}

/// A server that may have some of what is listed, and did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct MissingServer {
    /// ID of the server, with which the IDs of its sessions begin after `sess_`.
    id: String,
    /// Code of the error: `gateway_unreachable` or `gateway_failed`.
    code: String,
    /// The failed action.
    message: String,
}

/// Returns what the other gateways list at a path for the caller of a request with these headers,
/// and those that do not answer within [`LIMIT`]. A request that another gateway has sent gets
/// nothing: that one asks all of them.
pub(crate) async fn of_others(
    gateway: &Gateway,
    headers: &HeaderMap,
    path: &str,
) -> Result<(Vec<Value>, Vec<MissingServer>), Problem> {
    if !gateway.records.is_shared() || headers.contains_key(FORWARDED_BY) {
        return Ok((Vec::new(), Vec::new()));
    }
    let own = gateway.id.clone();
    let others = gateway
        .records
        .with(move |database| holders::others(database, &own))
        .await?;
    let asked = others.iter().map(async |holder| {
        let late = || {
            let problem = format!("did not answer within {} s", LIMIT.as_secs());
            unreachable(holder, "gateway_failed", &problem)
        };
        let page = timeout(LIMIT, ask(gateway, holder, headers, path)).await;
        page.unwrap_or_else(|_| Err(late()))
            .map_err(|error| MissingServer {
                id: mark_of(&holder.id).to_owned(),
                code: error.code.unwrap_or_default(),
                message: error.message,
            })
    });
    let (mut listed, mut missing) = (Vec::new(), Vec::new());
    for page in join_all(asked).await {
        match page {
            Ok(page) => listed.extend(page.data),
            Err(server) => missing.push(server),
        }
    }
    Ok((listed, missing))
}

async fn ask(
    gateway: &Gateway,
    holder: &HoldingGateway,
    headers: &HeaderMap,
    path: &str,
) -> Result<GatewayPage, ApiError> {
    let client = gateway
        .forwarder
        .client()
        .map_err(|error| failed(holder, &error))?;
    let request = client.get(url(holder, path)?).headers(carried(headers, gateway));
    let answer = request.send().await.map_err(|error| failed(holder, &error))?;
    if !answer.status().is_success() {
        let problem = format!("answered with status {}", answer.status().as_u16());
        return Err(unreachable(holder, "gateway_failed", &problem));
    }
    crate::metrics::forwarded("answered");
    let body = answer.bytes().await.map_err(|error| failed(holder, &error))?;
    serde_json::from_slice(&body).map_err(|error| ApiError {
        kind: ErrorKind::ServerError,
        code: Some("gateway_failed".to_owned()),
        message: format!("read what the gateway `{}` lists: {error}", holder.id),
        param: None,
    })
}
