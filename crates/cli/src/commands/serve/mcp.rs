//! `/mcp` of a server: the gateway says who calls and how much they may, MCP answers.

use std::sync::Arc;

use cellblock_agent::wire::ApiError;
use cellblock_gateway::server::Mount;
use cellblock_gateway::{Caller, Gateway};
use cellblock_interpreter::connector::{Connector, FetchAllowance};
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_mcp::http::{self, HttpOptions};
use cellblock_mcp::{Admission, Denied, LazyInterpreter, Meter, Options, Owner, Permit, Server};

/// Where it is.
const PATH: &str = "/mcp";

/// Mounts a server of MCP over the gateway's sandboxes, which ends with the gateway. Where code runs at a server that keeps nothing there are
/// no sessions, and so there is none.
pub(super) fn mount(gateway: &Gateway, mut options: Options) -> Option<Mount> {
    let interpreter = gateway.interpreter().ok()?;
    options.meter = Arc::new(Metered(gateway.clone()));
    options.connectors.clone_from(&gateway.options.connectors);
    options.egress.clone_from(&gateway.options.egress);
    options.guard = gateway.options.cells.guard;
    options.setup.clone_from(&gateway.options.cells.snippets);
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

/// The quotas and grants of the gateway: a session is a sandbox of its owner, a cell is a cell.
#[derive(Debug)]
struct Metered(Gateway);

impl Meter for Metered {
    fn session<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async {
            let quotas = &self.0.quotas;
            quotas
                .sandbox(owner.name())
                .await
                .map(Permit::new)
                .map_err(denied)
        })
    }

    fn cell<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Permit> {
        Box::pin(async {
            self.0
                .quotas
                .cell(owner.name())
                .await
                .map(Permit::new)
                .map_err(denied)
        })
    }

    fn connectors<'a>(
        &'a self,
        owner: &'a Owner,
        _offered: &'a [Arc<dyn Connector>],
    ) -> Admission<'a, Vec<Arc<dyn Connector>>> {
        Box::pin(async {
            let granted = self.0.connectors(owner.name()).await;
            granted.map_err(|error| denied(error.into()))
        })
    }

    fn network<'a>(&'a self, owner: &'a Owner, offered: NetworkPolicy) -> Admission<'a, NetworkPolicy> {
        Box::pin(async move {
            let most = self.0.keys.max_network(owner.name()).await;
            let most = most.map_err(|error| denied(error.into()))?;
            Ok(most.map_or(offered, |most| offered.min(most)))
        })
    }

    fn fetch_allowance(&self, owner: &Owner) -> Option<Arc<dyn FetchAllowance>> {
        Some(self.0.fetch_allowance(owner.name()))
    }

    fn upload<'a>(&'a self, owner: &'a Owner, bytes: u64) -> Admission<'a, ()> {
        Box::pin(async move { self.0.quotas.upload(owner.name(), bytes).await.map_err(denied) })
    }
}

fn denied(error: ApiError) -> Denied {
    Denied(error.message)
}
