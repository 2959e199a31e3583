//! The section `kubernetes` of a configuration. It is here so that a build without the crate of
//! that backend reads it, too.

use std::path::PathBuf;
use std::time::Duration;

use cellblock_settings::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pods for sandboxes, with `backend: kubernetes`. The cluster needs agent-sandbox 1.0 or newer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KubernetesOptions {
    /// Kubeconfig file. Default: the files in `KUBECONFIG`, otherwise `~/.kube/config` if it
    /// exists, otherwise the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: its current one.
    pub context: Option<String>,
    /// Namespace of claims and pods. Default: the namespace of the context or of the gateway's pod.
    pub namespace: Option<String>,
    /// `SandboxWarmPool` from which pods are claimed. Either this or `template` is required.
    pub warm_pool: Option<String>,
    /// `SandboxTemplate` from which a pod is started for each claim, without a warm pool. The
    /// gateway creates a `SandboxWarmPool` named `cellblock-TEMPLATE` with 0 replicas, because a
    /// claim must name one.
    pub template: Option<String>,
    /// Service that the pods provide: `sandboxes` (another Cellblock with `remote: {serve: true}`), or
    /// `execute` (any server with `/execute` and `/health`, which keeps nothing between calls; each call
    /// claims a pod).
    pub serves: Serves,
    /// Port of the server in a pod.
    pub port: u16,
    /// Value of the label `cellblock.dev/owner` of claims: gateways with the same value delete each
    /// other's claims after a crash.
    pub owner: String,
    /// Maximum time from a claim to a pod that is ready. Must be less than `pool.acquire_timeout`.
    #[serde(with = "Time")]
    pub claim_timeout: Duration,
    /// Time after which the cluster deletes a claim that the gateway no longer renews. It is
    /// renewed three times as often.
    #[serde(with = "Time")]
    pub shutdown_after: Duration,
    /// Time without a sign of life after which other gateways delete this gateway's claims.
    #[serde(with = "Time")]
    pub lease: Duration,
}

/// Service that pods provide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Serves {
    /// Sandboxes of a Cellblock, over the remote protocol.
    #[default]
    Sandboxes,
    /// `POST /execute` and `GET /health`, and nothing else.
    Execute,
}

impl Default for KubernetesOptions {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            namespace: None,
            warm_pool: None,
            template: None,
            serves: Serves::default(),
            port: 8080,
            owner: "default".to_owned(),
            claim_timeout: Duration::from_secs(25),
            shutdown_after: Duration::from_mins(15),
            lease: Duration::from_secs(30),
        }
    }
}

/// Shortest time that claims and holders may be renewed in.
const SHORTEST: Duration = Duration::from_secs(1);
/// Maximum length of a value of a label.
const LABEL: usize = 63;

impl KubernetesOptions {
    /// Returns the key that is wrong, and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        match (&self.warm_pool, &self.template) {
            (None, None) => Err((
                "warm_pool",
                "required with `backend: kubernetes`: name a SandboxWarmPool, or a `template`".to_owned(),
            )),
            (Some(_), Some(_)) => Err((
                "template",
                "cannot be combined with `warm_pool`, which has its own template; remove one of the two"
                    .to_owned(),
            )),
            _ => Ok(()),
        }?;
        for (key, name) in [
            ("namespace", &self.namespace),
            ("warm_pool", &self.warm_pool),
            ("template", &self.template),
        ] {
            if name.as_deref().is_some_and(|name| !is_name(name)) {
                let reason =
                    "must be a name of Kubernetes: lowercase letters, digits, `-` and `.`".to_owned();
                return Err((key, reason));
            }
        }
        if !is_name(&self.owner) || self.owner.len() > LABEL {
            let reason = format!("must be at most {LABEL} lowercase letters, digits, `-` and `.`");
            return Err(("owner", reason));
        }
        for (key, time) in [
            ("claim_timeout", self.claim_timeout),
            ("shutdown_after", self.shutdown_after),
            ("lease", self.lease),
        ] {
            if time < SHORTEST {
                return Err((key, "must be at least 1 second".to_owned()));
            }
        }
        Ok(())
    }
}

/// Returns whether a text is a DNS subdomain, as names of resources are.
fn is_name(name: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=253).contains(&bytes.len())
        && bytes.iter().all(|&c| inner(c) || c == b'-' || c == b'.')
        && bytes.first().copied().is_some_and(inner)
        && bytes.last().copied().is_some_and(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str) -> KubernetesOptions {
        KubernetesOptions {
            warm_pool: Some(name.to_owned()),
            ..KubernetesOptions::default()
        }
    }

    #[test]
    fn exactly_one_of_pool_and_template_is_required() {
        assert_eq!(KubernetesOptions::default().check().unwrap_err().0, "warm_pool");
        let both = KubernetesOptions {
            template: Some("python".to_owned()),
            ..pool("warm")
        };
        assert_eq!(both.check().unwrap_err().0, "template");
        pool("warm").check().unwrap();
    }

    #[test]
    fn invalid_names_and_times_are_rejected_with_their_key() {
        for name in ["Warm", "", "-a", "a/b", "a_b"] {
            assert_eq!(pool(name).check().unwrap_err().0, "warm_pool", "{name}");
        }
        let hasty = KubernetesOptions {
            lease: Duration::from_millis(10),
            ..pool("warm")
        };
        assert_eq!(hasty.check().unwrap_err().0, "lease");
        let long = KubernetesOptions {
            owner: "o".repeat(64),
            ..pool("warm")
        };
        assert_eq!(long.check().unwrap_err().0, "owner");
    }
}
