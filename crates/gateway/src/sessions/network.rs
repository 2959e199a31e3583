//! Network of a new session.

use cellblock_interpreter::egress::EgressPolicy;
use cellblock_interpreter::limits::NetworkPolicy;
use cellblock_interpreter::toolset::ToolsetKind;

use crate::problem::Problem;
use crate::state::network::{AllowedNetwork, RawPolicy};
use crate::state::{Caller, Gateway};

/// Fields of a request about the network.
#[derive(Debug)]
pub(super) struct RequestedNetwork<'a> {
    pub(super) network: Option<NetworkPolicy>,
    pub(super) policy: Option<&'a RawPolicy>,
}

impl RequestedNetwork<'_> {
    /// Returns the network that the gateway and the key permit, and its hosts.
    pub(super) async fn permitted(
        self,
        gateway: &Gateway,
        caller: &Caller,
        toolset: ToolsetKind,
    ) -> Result<(NetworkPolicy, Option<EgressPolicy>), Problem> {
        let allowed = AllowedNetwork::parse(gateway, &caller.owner, self.policy, "network_policy").await?;
        let Some(allowed) = allowed else {
            let asked = self.network.unwrap_or_default();
            if self.policy.is_some() && !asked.is_none() {
                return Err(conflict("disabled", asked));
            }
            check(gateway, caller, toolset, asked).await?;
            return Ok((asked, gateway.options.egress.clone()));
        };
        if let Some(other) = self.network.filter(|network| *network != NetworkPolicy::Egress) {
            return Err(conflict("allowlist", other));
        }
        check(gateway, caller, toolset, NetworkPolicy::Egress).await?;
        Ok((NetworkPolicy::Egress, Some(allowed.egress)))
    }
}

fn conflict(kind: &str, network: NetworkPolicy) -> Problem {
    let message = format!(
        "it is {kind:?}, and `network` is {:?}; leave one of them out",
        network.name()
    );
    Problem::invalid("network_policy", message)
}

async fn check(
    gateway: &Gateway,
    caller: &Caller,
    toolset: ToolsetKind,
    asked: NetworkPolicy,
) -> Result<(), Problem> {
    if asked.is_none() {
        return Ok(());
    }
    if toolset.on_results {
        let message = format!(
            "it is {:?}, and a derivation never has a network; leave it out",
            asked.name()
        );
        return Err(Problem::invalid("network", message));
    }
    let most = gateway.max_network(&caller.owner).await?;
    if asked > most {
        let message = format!(
            "it is {:?}, and this gateway allows {:?} at most to this caller; the operator sets \
             `limits.max_network`, the key's `--max-network` and the image's `policy.max_network`",
            asked.name(),
            most.name()
        );
        return Err(Problem::invalid("network", message));
    }
    Ok(())
}
