//! `/mcp` of a server: the gateway says who calls and how much they may, MCP answers.

use std::sync::Arc;

use cellblock_gateway::server::Mount;
use cellblock_gateway::{Caller, Gateway};
use cellblock_interpreter::hosting::Owner;
use cellblock_mcp::fixtures::Fixtures;
use cellblock_mcp::http::{self, HttpOptions, Parts};
use cellblock_mcp::{LazyInterpreter, Options, Server};

use super::metered::GatewayMeter;

/// Path of the endpoint.
const PATH: &str = "/mcp";

/// Mounts a server of MCP over the gateway's sandboxes, which ends with the gateway. Where code
/// runs at a server that keeps nothing there are no sessions, and so there is none.
pub(super) fn mount(gateway: &Gateway, mut options: Options) -> Option<Mount> {
    let interpreter = gateway.interpreter().ok()?;
    options.meter = Arc::new(GatewayMeter(gateway.clone()));
    options.connectors.clone_from(&gateway.options.connectors);
    options.egress.clone_from(&gateway.options.egress);
    options.guard = gateway.options.cells.guard;
    options.setup.clone_from(&gateway.options.cells.snippets);
    options.lacks = interpreter.backend().lacks();
    let judged = options.conformance_fixtures;
    let server = Server::new(LazyInterpreter::ready((**interpreter).clone()), options);
    let owner = |request: &Parts| {
        let caller = request.extensions.get::<Caller>()?;
        Some(Owner::new(caller.owner.clone()))
    };
    let reached = HttpOptions {
        checked: true,
        max_body: gateway.options.http.max_body,
        ..HttpOptions::default()
    };
    let mount = if judged {
        Mount::new(PATH, http::behind(&server, owner, reached, Fixtures::over))
    } else {
        Mount::new(PATH, http::service(&server, owner, reached))
    };
    let (stopping, ending) = (gateway.stopping.clone(), gateway.ending.clone());
    gateway.tasks.spawn(async move {
        stopping.cancelled().await;
        server.drain(ending.cancelled()).await;
    });
    let mount = mount.refusing(http::refusal);
    Some(mount.headers(&http::REQUEST_HEADERS, &http::RESPONSE_HEADERS))
}
