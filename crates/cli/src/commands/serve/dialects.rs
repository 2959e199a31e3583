//! The dialects of a server: the gateway says who calls and how much they may.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use cellblock_dialects::{
    DialectHost, DialectListenError, DialectListener, DialectRoutes, DialectTerms, DialectsOptions,
    Doorkeeper, NoEntry,
};
use cellblock_gateway::server::{AuthRejection, Mount};
use cellblock_gateway::volumes::OwnerVolumes;
use cellblock_gateway::{Caller, Gateway};
use cellblock_interpreter::hosting::Owner;

use super::metered::GatewayMeter;

/// Mounts the dialects over the gateway's sandboxes, and listens at their own addresses. Where code
/// runs at a server that keeps nothing there are no sessions, and so none of them. Certificates are kept
/// in the folder `authorities`.
pub(super) fn mounts(
    gateway: &Gateway,
    options: &DialectsOptions,
    authorities: PathBuf,
) -> Result<(Vec<Mount>, Vec<DialectListener>), DialectListenError> {
    let Ok(interpreter) = gateway.interpreter() else {
        return Ok(Default::default());
    };
    let set = &gateway.options;
    let host = DialectHost::new(DialectTerms {
        interpreter: (**interpreter).clone(),
        doorkeeper: Arc::new(Keys(gateway.clone())),
        meter: Arc::new(GatewayMeter(gateway.clone())),
        max_network: set.max_network,
        egress: set.egress.clone(),
        origins: set.http.origins.clone(),
        guard: set.cells.guard,
        setup: set.cells.snippets.clone(),
        requirements: options.requirements.clone(),
        max_body: set.http.max_body,
        max_upload: set.sessions.max_upload,
        uploads: gateway.uploads.clone(),
        volumes: Some(Arc::new(OwnerVolumes::new(gateway))),
        max_cell_timeout: set.max_cell_timeout,
        mark: gateway.mark().map(str::to_owned),
        authorities,
        tasks: gateway.tasks.clone(),
        stopping: gateway.stopping.clone(),
        ending: gateway.ending.clone(),
    });
    let DialectRoutes { served, listeners } = cellblock_dialects::routes(&host, options)?;
    let mounts = served
        .into_iter()
        .map(|it| Mount::below(it.path, it.routes).naming(it.named));
    Ok((mounts.collect(), listeners))
}

/// The gateway's keys.
#[derive(Debug)]
struct Keys(Gateway);

impl Doorkeeper for Keys {
    fn owner<'a>(
        &'a self,
        secret: Option<&'a str>,
        path: &'a str,
        peer: Option<SocketAddr>,
    ) -> Pin<Box<dyn Future<Output = Result<Owner, NoEntry>> + Send + 'a>> {
        Box::pin(async move {
            let found = self.0.identify(secret, path, peer).await;
            // A dialect may listen at an address of its own, which the gateway has not checked.
            let is_remote = peer.is_some_and(|peer| !peer.ip().is_loopback());
            if is_remote && found.as_ref().is_ok_and(|caller| *caller == Caller::local()) {
                let message =
                    "an API key is needed by callers of other machines; `cellblock key create` makes one";
                return Err(NoEntry::NoKey(message.to_owned()));
            }
            found
                .map(|caller| Owner::new(caller.owner))
                .map_err(|error| match error {
                    AuthRejection::NoKey("missing", error) => NoEntry::NoKey(error.message),
                    AuthRejection::NoKey(_, error) => NoEntry::WrongKey(error.message),
                    AuthRejection::Weak(error) => NoEntry::Forbidden(error.message),
                    AuthRejection::Records(error) => NoEntry::Unavailable(error.to_string()),
                })
        })
    }

    fn admits<'a>(
        &'a self,
        owner: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<bool, NoEntry>> + Send + 'a>> {
        Box::pin(async move {
            let admitted = self.0.admits(owner).await;
            admitted.map_err(|error| NoEntry::Unavailable(error.to_string()))
        })
    }

    fn at_home<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), NoEntry>> + Send + 'a>> {
        Box::pin(async move {
            match self.0.at_home(name).await {
                Ok(true) => Ok(()),
                // Nobody reads it: the gateway sends the request there.
                Ok(false) => Err(NoEntry::Unavailable(
                    "another server has these sessions".to_owned(),
                )),
                Err(error) => Err(NoEntry::Unavailable(error.to_string())),
            }
        })
    }
}
