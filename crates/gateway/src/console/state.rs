//! State that the console shows before it calls the API: who is signed in, and what this server offers.

use axum::extract::State;
use axum::http::HeaderMap;
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use cellblock_interpreter::run_record::RunImage;
use serde::Serialize;

use super::cookie;
use crate::json::Json;
use crate::keys::KeyLookup;
use crate::problem::Problem;
use crate::state::{Caller, Gateway};

/// Account that looks, and the server that it looks at.
#[derive(Debug, Serialize)]
pub(super) struct ConsoleState {
    version: &'static str,
    /// Whether a key must be given first.
    sign_in_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<AccountOffer>,
}

/// Somebody who may use the API.
#[derive(Debug, Serialize)]
struct Account {
    /// Id of the key, or `local` without keys.
    owner: String,
    /// Name of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// End of the sign-in, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
}

/// Features that the server offers to this account.
#[derive(Debug, Serialize)]
struct AccountOffer {
    toolsets: Vec<&'static str>,
    max_network: NetworkPolicy,
    max_cell_timeout: f64,
    /// Missing where code runs at a server that keeps no sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandboxes: Option<Sandboxes>,
}

/// Environment in which sessions run.
#[derive(Debug, Serialize)]
struct Sandboxes {
    backend: &'static str,
    python: String,
    image: RunImage,
    /// Modules of the image that could not be imported, with reasons.
    failed_modules: Vec<String>,
    /// State of each protection.
    protections: serde_json::Value,
    limits: Limits,
}

/// Returns what the console shows first.
pub(super) async fn state(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
) -> Result<Json<ConsoleState>, Problem> {
    let account = account(&gateway, &headers).await?;
    let server = match &account {
        Some(account) => Some(offered(&gateway, &account.owner).await?),
        None => None,
    };
    Ok(Json(ConsoleState {
        version: env!("CARGO_PKG_VERSION"),
        sign_in_required: account.is_none(),
        account,
        server,
    }))
}

async fn account(gateway: &Gateway, headers: &HeaderMap) -> Result<Option<Account>, Problem> {
    if let Some(ticket) = cookie::ticket(gateway, headers).await?
        && let Some(key) = gateway.keys.usable(&ticket.owner).await?
    {
        return Ok(Some(Account {
            owner: key.id,
            name: Some(key.name),
            expires_at: Some(ticket.until),
        }));
    }
    let open = gateway.keys.find(None).await? == KeyLookup::Open && !gateway.requires_keys();
    Ok(open.then(|| Account {
        owner: Caller::local().owner,
        name: None,
        expires_at: None,
    }))
}

async fn offered(gateway: &Gateway, owner: &str) -> Result<AccountOffer, Problem> {
    let toolsets = gateway.options.sessions.toolsets.iter();
    let sandboxes = gateway.interpreter().ok().map(|interpreter| Sandboxes {
        backend: interpreter.backend().name(),
        python: interpreter.python_version().to_owned(),
        image: interpreter.image(),
        failed_modules: interpreter.failed_modules(),
        protections: serde_json::json!(interpreter.report()),
        limits: interpreter.limits().clone(),
    });
    Ok(AccountOffer {
        toolsets: toolsets.map(|kind| kind.name).collect(),
        max_network: gateway.max_network(owner).await?,
        max_cell_timeout: gateway.options.max_cell_timeout.as_secs_f64(),
        sandboxes,
    })
}
