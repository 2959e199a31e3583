//! Programs in a sandbox that listen on a port: requests that name it are forwarded.

use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use cellblock_interpreter::Error;
use cellblock_interpreter::egress::inbound::{PageOrigin, ProgramPort};

use super::error::{Answer, Problem};
use super::place::{self, CODE, DebugPort, ENVD, OwnHost, PortTarget};
use super::state::E2b;
use crate::forward::{ForwardFailure, mounted_at, to_program};
use crate::presented;

/// Headers that are for this server alone.
const PRIVATE: &[&str] = &[
    "x-access-token",
    "e2b-sandbox-id",
    "e2b-sandbox-port",
    "e2b-traffic-access-token",
];

/// Forwards a request to the port that it names; one for the daemon or the interpreter is unknown.
pub(super) async fn forward(State(e2b): State<E2b>, request: Request) -> Answer<Response> {
    let (mut parts, body) = request.into_parts();
    let (id, port) = place::named(&parts.headers);
    let is_debug = parts.extensions.get::<DebugPort>().is_some();
    if is_debug || id.is_none() || port == ENVD || port == CODE {
        let message = format!(
            "{} {} is not a route of E2B's API that Cellblock serves",
            parts.method,
            parts.uri.path()
        );
        return Err(Problem::not_found(message));
    }
    let open = PortTarget::from_request_parts(&mut parts, &e2b).await?;
    let program = ProgramPort {
        port,
        origin: match parts.extensions.get::<OwnHost>() {
            Some(OwnHost) => PageOrigin::Host,
            None => PageOrigin::Server {
                root: Some(mounted_at(presented::path(&parts), &parts.uri).to_owned()),
                is_readable: false,
            },
        },
        private: PRIVATE,
    };
    let request = Request::from_parts(parts, body);
    let answer = to_program(&e2b.host, open.held, &program, "", request).await;
    answer.map_err(|reason| match reason {
        ForwardFailure::Path(path) => Problem::invalid(format!("`{path}` is not a path")),
        // E2B's words for a port on which nobody listens: clients take others for an end of the sandbox.
        ForwardFailure::Closed(Error::Port(reason)) => Problem::new(
            StatusCode::BAD_GATEWAY,
            format!("The sandbox is running but port is not open: {port}: {reason}"),
        ),
        ForwardFailure::Closed(other) => other.into(),
        ForwardFailure::Broken(reason) => Problem::new(
            StatusCode::BAD_GATEWAY,
            format!("the program on port {port} did not answer in HTTP: {reason}"),
        ),
    })
}
