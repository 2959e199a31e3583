//! Several gateways over one Postgres: a request goes to the gateway that has what it needs.
//!
//! ```text
//! client ── any gateway ── is it here? ──────────────────────────────────── route
//!                            └ no: who has it, by the leases in Postgres ── forward ── its gateway, which checks the key itself
//! ```
//!
//! The id of a session names its gateway; containers and responses have theirs in the records. The
//! sessions that an owner has in MCP, or in a dialect, are all in one gateway, its home there,
//! which is in the records, too. Nothing is asked or sent if the records are a file, which has one
//! gateway.

mod broken_socket;
mod broken_stream;
mod drain;
mod everywhere;
mod forward;
mod home;
mod locate;
mod replay;
mod route;
mod socket;
mod wanted;

use axum::http::HeaderName;
use cellblock_agent::wire::{ApiError, ErrorKind};

pub(crate) use drain::{accepts, hand_over, refuse};
pub(crate) use everywhere::{MissingServer, of_others};
pub(crate) use home::{MountedAt, mounted};
pub(crate) use locate::{mint_session, request_at, stays};
pub(crate) use route::{at_session, containers, responses, sessions};
pub(crate) use socket::relay;
pub(crate) use wanted::noting;

use crate::records::holders::HoldingGateway;

/// Says that another gateway has forwarded a request, which then is not forwarded again. It grants nothing.
pub(crate) const FORWARDED_BY: HeaderName = HeaderName::from_static("cellblock-forwarded-by");

/// Says that the gateway that answers drains.
pub(crate) const DRAINING: HeaderName = HeaderName::from_static("cellblock-draining");

/// The host by which the client reached the gateway that has forwarded its request.
const FORWARDED_HOST: HeaderName = HeaderName::from_static("cellblock-forwarded-host");

/// The error for a request whose gateway cannot be asked.
fn unreachable(holder: &HoldingGateway, code: &str, problem: &str) -> ApiError {
    ApiError {
        kind: ErrorKind::Unavailable,
        code: Some(code.to_owned()),
        message: format!(
            "the gateway `{}` has what this request needs, and {problem}",
            holder.id
        ),
        param: None,
    }
}
