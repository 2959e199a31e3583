//! Meaning of a claim's status.

use std::net::IpAddr;

use cellblock_protocol::text::or_space;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::error::ClaimError;
use crate::resources::SandboxClaim;

/// Maximum length of a message of the cluster in an error, in characters.
const MESSAGE: usize = 300;

/// Next step for a claim.
#[derive(Debug)]
pub(crate) enum Judgement {
    /// Its pod is at this address.
    Ready(IpAddr),
    /// Nothing yet, with the reason, if the controller has given one.
    Wait(Option<Reason>),
    /// It never will be ready.
    Failed(ClaimError),
}

/// Reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Judges a claim by its condition `Ready`.
pub(crate) fn judge(claim: &SandboxClaim, loopback: bool) -> Judgement {
    let status = claim.status.clone().unwrap_or_default();
    let conditions = &status.conditions;
    let Some(ready) = conditions.iter().find(|it| it.type_ == "Ready") else {
        return Judgement::Wait(None);
    };
    let said = Reason::of(ready);
    if ready.status == "True" {
        let sandbox = status.sandbox.unwrap_or_default();
        let Some(address) = sandbox.pod_ips.first() else {
            return Judgement::Wait(Some(said));
        };
        return match address.parse() {
            Ok(address) if is_pod(address, loopback) => Judgement::Ready(address),
            _ => Judgement::Failed(ClaimError::Address {
                sandbox: shown(&sandbox.name),
                address: shown(address),
            }),
        };
    }
    match ClaimError::of_reason(&said.reason, &said.message) {
        Some(error) => Judgement::Failed(error),
        None => Judgement::Wait(Some(said)),
    }
}

impl Reason {
    fn of(condition: &Condition) -> Self {
        Self {
            reason: shown(&condition.reason),
            message: shown(&condition.message),
        }
    }
}

/// Returns whether an address may be that of a pod. A key is sent there, and must not reach the
/// metadata service of a cloud. Loopback is this machine, which only a cluster on this machine can
/// mean.
fn is_pod(address: IpAddr, loopback: bool) -> bool {
    let linked = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.to_ipv4_mapped().is_some(),
    };
    !linked && !address.is_unspecified() && !address.is_multicast() && (loopback || !address.is_loopback())
}

/// Returns a text of the cluster without characters that act, and not too long.
pub(crate) fn shown(text: &str) -> String {
    let visible: String = text.chars().take(MESSAGE).map(or_space).collect();
    visible.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(status: &str, reason: &str, ips: &[&str]) -> SandboxClaim {
        let text = serde_json::json!({
            "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
            "kind": "SandboxClaim",
            "metadata": {"name": "cellblock-a"},
            "spec": {"warmPoolRef": {"name": "warm"}},
            "status": {
                "conditions": [{
                    "type": "Ready", "status": status, "reason": reason, "message": "as\u{1b}[31m said",
                    "lastTransitionTime": "2026-11-25T00:00:00Z",
                }],
                "sandbox": {"name": "warm-x", "podIPs": ips},
            },
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn a_ready_claim_needs_an_address_of_a_pod() {
        for (address, loopback) in [("10.0.0.7", false), ("fd00::7", false), ("127.0.0.3", true)] {
            let judged = judge(&claim("True", "DependenciesReady", &[address]), loopback);
            let expected: IpAddr = address.parse().unwrap();
            assert!(
                matches!(judged, Judgement::Ready(it) if it == expected),
                "{address}"
            );
        }
        for address in [
            "169.254.169.254",
            "fe80::1",
            "::ffff:169.254.169.254",
            "0.0.0.0",
            "224.0.0.1",
            "127.0.0.1",
            "::1",
            "pod.example",
        ] {
            let judged = judge(&claim("True", "DependenciesReady", &[address]), false);
            assert!(
                matches!(judged, Judgement::Failed(ClaimError::Address { .. })),
                "{address}"
            );
        }
        let judged = judge(&claim("True", "DependenciesReady", &[]), false);
        assert!(matches!(judged, Judgement::Wait(_)));
    }

    #[test]
    fn reasons_that_last_are_errors_and_others_are_waited_for() {
        for reason in [
            "ClaimExpired",
            "SandboxExpired",
            "InvalidConfiguration",
            "InvalidMetadata",
            "EnvVarsInjectionRejected",
            "VolumeClaimTemplatesError",
            "PodFailed",
            "PodSucceeded",
            "TemplateNotFound",
            "WarmPoolNotFound",
        ] {
            let Judgement::Failed(error) = judge(&claim("False", reason, &[]), false) else {
                panic!("{reason} is not waited for");
            };
            let message = error.to_string();
            assert!(
                message.contains(reason) && message.contains("as [31m said"),
                "{message}"
            );
        }
        for reason in [
            "SandboxCreatePending",
            "SandboxNotReady",
            "AdoptionConflict",
            "ReconcilerError",
        ] {
            assert!(
                matches!(
                    judge(&claim("False", reason, &[]), false),
                    Judgement::Wait(Some(_))
                ),
                "{reason}"
            );
        }
    }
}
