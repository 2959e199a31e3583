//! Holders of claims: a Lease for each process, and the sweep of claims whose holder's Lease is no longer
//! renewed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use metrics::counter;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, interval};

use crate::KubernetesOptions;
use crate::access::CREATE_LEASE;
use crate::api::{Cluster, START_LIMIT, random_name};
use crate::claim::delete;
use crate::error::ClaimError;
use crate::retry::{retry, status};

/// Value of `app.kubernetes.io/managed-by`, and the beginning of names.
pub(crate) const OWNED_BY: &str = "cellblock";
const MANAGED: &str = "app.kubernetes.io/managed-by";
const OWNER: &str = "cellblock.dev/owner";
/// Label of a claim with the holder's ID.
pub(crate) const HOLDER: &str = "cellblock.dev/holder";

/// Returns the labels of everything that gateways of an owner create.
pub(crate) fn labels(owner: &str) -> BTreeMap<String, String> {
    [(MANAGED, OWNED_BY), (OWNER, owner)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// This process as a holder of claims.
pub(crate) struct Holder {
    pub(crate) id: String,
    cluster: Cluster,
    owner: String,
    lease: Duration,
    shutdown_after: Duration,
    /// The version of each other holder's Lease, and since when it is that. Clocks of other
    /// machines are not trusted.
    seen: Mutex<HashMap<String, (String, Instant)>>,
}

impl Holder {
    /// Creates this process's Lease, before any claim names it.
    pub(crate) async fn register(cluster: &Cluster, options: &KubernetesOptions) -> Result<Self, ClaimError> {
        let holder = Self {
            id: random_name(),
            cluster: cluster.clone(),
            owner: options.owner.clone(),
            lease: options.lease,
            shutdown_after: options.shutdown_after,
            seen: Mutex::default(),
        };
        let began = Instant::now();
        let created = holder.create(began + START_LIMIT).await;
        created.map_err(|error| ClaimError::of_api(CREATE_LEASE, began.elapsed(), error))?;
        Ok(holder)
    }

    /// Renews the Lease and sweeps, forever.
    pub(crate) async fn keep(self: std::sync::Arc<Self>) {
        let mut ticks = interval(self.lease / 3);
        loop {
            ticks.tick().await;
            if let Err(error) = self.renew().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "renew the Lease of this process"
                );
            }
            if let Err(error) = self.sweep().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "look for claims without a holder"
                );
            }
        }
    }

    /// Deletes the Lease. All claims have been deleted before.
    pub(crate) async fn release(&self) {
        let name = lease_name(&self.id);
        let params = DeleteParams::default();
        let _ = self.cluster.leases.delete(&name, &params).await;
    }

    async fn create(&self, until: Instant) -> kube::Result<()> {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(lease_name(&self.id)),
                labels: Some(labels(&self.owner)),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.id.clone()),
                lease_duration_seconds: i32::try_from(self.lease.as_secs().max(1)).ok(),
                renew_time: Some(now()),
                ..LeaseSpec::default()
            }),
        };
        let params = PostParams::default();
        match retry(until, || self.cluster.leases.create(&params, &lease)).await {
            // The answer to an earlier attempt was lost: nobody else has this name.
            Err(error) if status(&error) == Some(409) => Ok(()),
            other => other.map(drop),
        }
    }

    async fn renew(&self) -> kube::Result<()> {
        let patch = json!({"spec": {"renewTime": now()}});
        let (name, params, patch) = (lease_name(&self.id), PatchParams::default(), Patch::Merge(&patch));
        let until = Instant::now() + self.lease / 3;
        match retry(until, || self.cluster.leases.patch(&name, &params, &patch)).await {
            // Others took this process for dead, or somebody deleted it.
            Err(error) if status(&error) == Some(404) => self.create(until).await,
            other => other.map(drop),
        }
    }

    /// Deletes claims and Leases of holders that are gone.
    async fn sweep(&self) -> kube::Result<()> {
        let ours = ListParams::default().labels(&format!("{MANAGED}={OWNED_BY},{OWNER}={}", self.owner));
        // A holder's Lease is older than its claims: listed in this order, a claim without one has no holder.
        let claims = self.cluster.claims.list(&ours).await?.items;
        let leases = self.cluster.leases.list(&ours).await?.items;
        let leases: HashMap<String, Lease> = leases.into_iter().map(|it| (it.name_any(), it)).collect();
        let dead: HashSet<&str> = leases
            .iter()
            .filter(|(name, lease)| **name != lease_name(&self.id) && self.is_dead(name, lease))
            .map(|(name, _)| name.as_str())
            .collect();
        for claim in &claims {
            let holder = claim.labels().get(HOLDER).cloned().unwrap_or_default();
            let name = lease_name(&holder);
            if holder != self.id && (dead.contains(name.as_str()) || !leases.contains_key(&name)) {
                tracing::warn!(
                    claim = claim.name_any(),
                    holder,
                    "deleting a claim whose holder is gone"
                );
                delete(&self.cluster, claim, self.lease.min(self.shutdown_after)).await;
                counter!("cellblock_claims_swept_total").increment(1);
            }
        }
        for name in dead {
            let Some(lease) = leases.get(name) else { continue };
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: lease.uid(),
                    resource_version: lease.resource_version(),
                }),
                ..DeleteParams::default()
            };
            let _ = self.cluster.leases.delete(name, &params).await;
        }
        let mut seen = self.seen.lock();
        seen.retain(|name, _| leases.contains_key(name));
        Ok(())
    }

    /// Returns whether a Lease has not changed for as long as it lasts, while this process watched it.
    fn is_dead(&self, name: &str, lease: &Lease) -> bool {
        let version = lease.resource_version().unwrap_or_default();
        let seconds = lease.spec.as_ref().and_then(|it| it.lease_duration_seconds);
        let lasts = seconds
            .and_then(|it| u64::try_from(it).ok())
            .map_or(self.lease, Duration::from_secs);
        let mut seen = self.seen.lock();
        let (known, since) = seen
            .entry(name.to_owned())
            .or_insert_with(|| (version.clone(), Instant::now()));
        if *known != version {
            (*known, *since) = (version, Instant::now());
        }
        since.elapsed() >= lasts
    }
}

fn lease_name(holder: &str) -> String {
    format!("{OWNED_BY}-{holder}")
}

fn now() -> MicroTime {
    MicroTime(Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::MIN))
}
