//! Lists that are in several gateways.

use axum::http::HeaderMap;
use cellblock_agent::wire::{ApiError, ErrorKind};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;

use super::forward::{carried, failed, url};
use super::{FORWARDED_BY, unreachable};
use crate::problem::Problem;
use crate::records::holders::{self, HoldingGateway};
use crate::state::Gateway;

/// What another gateway answers.
#[derive(Deserialize)]
struct Page {
    data: Vec<Value>,
}

/// Returns what the other gateways list at a path for the caller of a request with these headers. A request that another gateway has
/// sent gets nothing: that one asks all of them.
pub(crate) async fn of_others(
    gateway: &Gateway,
    headers: &HeaderMap,
    path: &str,
) -> Result<Vec<Value>, Problem> {
    if !gateway.records.is_shared() || headers.contains_key(FORWARDED_BY) {
        return Ok(Vec::new());
    }
    let own = gateway.id.clone();
    let others = gateway
        .records
        .with(move |database| holders::others(database, &own))
        .await?;
    let asked = others.iter().map(|holder| ask(gateway, holder, headers, path));
    let pages = try_join_all(asked).await?;
    Ok(pages.into_iter().flat_map(|page| page.data).collect())
}

async fn ask(
    gateway: &Gateway,
    holder: &HoldingGateway,
    headers: &HeaderMap,
    path: &str,
) -> Result<Page, ApiError> {
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
