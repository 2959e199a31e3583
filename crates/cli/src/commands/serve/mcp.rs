//! `/mcp` of a server: the gateway says who calls and how much they may, MCP answers.

use std::sync::Arc;

use cellblock_agent::wire::ApiError;
use cellblock_gateway::quotas::Quotas;
use cellblock_gateway::server::Mount;
use cellblock_gateway::{Caller, Gateway};
use cellblock_mcp::http::{self, HttpOptions};
use cellblock_mcp::{Admission, Denied, LazyInterpreter, Meter, Options, Owner, Permit, Server};

/// Where it is.
const PATH: &str = "/mcp";

/// Mounts a server of MCP over the gateway's sandboxes, which ends with the gateway. Where code runs at a server that keeps nothing there are
/// no sessions, and so there is none.
pub(super) fn mount(gateway: &Gateway, mut options: Options) -> Option<Mount> {
    let interpreter = gateway.interpreter().ok()?;
    options.meter = Arc::new(Metered(gateway.quotas.clone()));
    options.connectors.clone_from(&gateway.options.connectors);
    let server = Server::new(LazyInterpreter::ready((**interpreter).clone()), options);
    let service = http::service(
        &server,
        |request| {
            let caller = request.extensions.get::<Caller>()?;
            Some(Owner::new(caller.owner.clone()))
        },
        HttpOptions {
            checked: true,
            max_body: gateway.options.http.max_body,
            ..HttpOptions::default()
        },
    );
    let (stopping, ending) = (gateway.stopping.clone(), gateway.ending.clone());
    gateway.tasks.spawn(async move {
        stopping.cancelled().await;
        server.drain(ending.cancelled()).await;
    });
    let mount = Mount::new(PATH, service).refusing(http::refusal);
    Some(mount.headers(&http::REQUEST_HEADERS, &http::RESPONSE_HEADERS))
}

/// The gateway's quotas: a session is a sandbox of its owner's, a cell a cell.
#[derive(Debug)]
struct Metered(Quotas);

impl Meter for Metered {
    fn session<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async {
            self.0
                .sandbox(owner.name())
                .await
                .map(Permit::new)
                .map_err(denied)
        })
    }

    fn cell<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async { self.0.cell(owner.name()).await.map(Permit::new).map_err(denied) })
    }

    fn upload<'a>(&'a self, owner: &'a Owner, bytes: u64) -> Admission<'a, ()> {
        Box::pin(async move { self.0.upload(owner.name(), bytes).await.map_err(denied) })
    }
}

fn denied(error: ApiError) -> Denied {
    Denied(error.message)
}
