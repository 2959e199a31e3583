//! The gateway's quotas and grants for what is mounted beside its routes.

use std::sync::Arc;

use cellblock_agent::wire::ApiError;
use cellblock_gateway::Gateway;
use cellblock_interpreter::connector::Connector;
use cellblock_interpreter::hosting::uploads::UploadAllowance;
use cellblock_interpreter::hosting::{Admission, Meter, MeterDenial, Owner, Permit};
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::session::SessionOptions;
use cellblock_interpreter::skill::SessionSkill;

/// The quotas and grants of the gateway: a session is a sandbox of its owner, a cell is a cell.
#[derive(Debug)]
pub(super) struct GatewayMeter(pub(super) Gateway);

impl Meter for GatewayMeter {
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

    fn granted(&self, owner: &Owner) -> SessionOptions {
        self.0.granted(owner.name(), None)
    }

    fn skills<'a>(&'a self, owner: &'a Owner) -> Admission<'a, Vec<SessionSkill>> {
        Box::pin(async move { self.0.skills_of(owner.name()).await.map_err(denied) })
    }

    fn upload<'a>(&'a self, owner: &'a Owner, bytes: u64) -> Admission<'a, Box<dyn UploadAllowance>> {
        Box::pin(async move {
            let permit = self.0.quotas.upload(owner.name(), bytes).await;
            permit.map(|permit| Box::new(permit) as _).map_err(denied)
        })
    }
}

fn denied(error: ApiError) -> MeterDenial {
    MeterDenial(error.message)
}
