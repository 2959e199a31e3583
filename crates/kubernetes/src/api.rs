//! The API server: how it is reached, and which of its resources are used.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use cellblock_sandbox::random_bytes;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, Time};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use tokio::time::Instant;

use crate::access::DISCOVER;
use crate::error::{ClaimError, innermost};
use crate::resources::{GROUP, SandboxClaim, SandboxTemplate, SandboxWarmPool, VERSION};
use crate::retry::{retry, status};
use crate::{KubernetesOptions, config};

/// Maximum time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Maximum time for an API server to answer while a gateway starts.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(20);

/// A namespace of a cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) claims: Api<SandboxClaim>,
    pub(crate) pools: Api<SandboxWarmPool>,
    pub(crate) templates: Api<SandboxTemplate>,
    pub(crate) leases: Api<Lease>,
    pub(crate) namespace: String,
    pub(crate) server: String,
    /// Whether the API server is on this machine, so that pods may be, too.
    pub(crate) loopback: bool,
}

impl Cluster {
    /// Reads the configuration; the API server is not asked yet. The client belongs to the runtime
    /// that calls this.
    pub(crate) async fn open(options: &KubernetesOptions) -> Result<Self, ClaimError> {
        let mut config = config::read(options).await?;
        config.connect_timeout = Some(CONNECT_LIMIT);
        // Repeating is up to `retry`, which knows how long a claim may take, and repeats after a
        // lost connection, too.
        config.default_retry = false;
        let host = config.cluster_url.host().unwrap_or_default();
        let loopback = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => host == "localhost",
        };
        let server = config.cluster_url.to_string();
        let named = options.namespace.clone();
        let namespace = named.unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| {
            let reason = innermost(&error);
            ClaimError::Config(format!(
                "connect to the cluster at `{server}`: {reason}; correct its cluster and user \
                 in the kubeconfig"
            ))
        })?;
        Ok(Self {
            claims: Api::namespaced(client.clone(), &namespace),
            pools: Api::namespaced(client.clone(), &namespace),
            templates: Api::namespaced(client.clone(), &namespace),
            leases: Api::namespaced(client.clone(), &namespace),
            client,
            namespace,
            server,
            loopback,
        })
    }

    /// Checks that claims are served in the version that is known here.
    pub(crate) async fn check_version(&self) -> Result<(), ClaimError> {
        let began = Instant::now();
        let group = retry(began + START_LIMIT, || async {
            let request = http::Request::get(format!("/apis/{GROUP}")).body(Vec::new());
            let request = request.map_err(kube::Error::HttpError)?;
            self.client.request::<APIGroup>(request).await
        });
        let served = match group.await {
            Ok(group) => group.versions.into_iter().map(|it| it.version).collect(),
            Err(error) if status(&error) == Some(404) => Vec::new(),
            Err(error) => {
                return Err(ClaimError::of_api(DISCOVER, began.elapsed(), error));
            }
        };
        if served.iter().any(|version| version == VERSION) {
            Ok(())
        } else {
            Err(ClaimError::Version { served })
        }
    }
}

/// Returns the time in so long, as the API writes it.
pub(crate) fn in_future(duration: Duration) -> Time {
    Time(Timestamp::try_from(SystemTime::now() + duration).unwrap_or(Timestamp::MAX))
}

/// Returns 64 random bits as text for names and labels.
pub(crate) fn random_name() -> String {
    format!("{:016x}", u64::from_le_bytes(random_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn open(server: &str) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "of-context"}}],
        });
        std::fs::write(&path, config.to_string()).unwrap();
        let options = KubernetesOptions {
            kubeconfig: Some(path),
            ..KubernetesOptions::default()
        };
        Cluster::open(&options).await.unwrap()
    }

    #[tokio::test]
    async fn a_cluster_is_opened_over_tls_and_only_one_on_this_machine_has_pods_here() {
        for (server, loopback) in [
            ("https://10.0.0.1:6443", false),
            ("https://api.example", false),
            ("https://127.0.0.1:16443", true),
            ("https://localhost:6443", true),
        ] {
            let cluster = open(server).await;
            assert_eq!(
                (cluster.loopback, &*cluster.namespace),
                (loopback, "of-context"),
                "{server}"
            );
        }
    }
}
