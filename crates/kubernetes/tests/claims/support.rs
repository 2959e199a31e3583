//! A cluster with a pool, and options for it.

use std::sync::Arc;
use std::time::Duration;

use cellblock_kubernetes::{Claims, KubernetesOptions, Permission, permissions};
use cellblock_testkit::kubernetes::{GATEWAY, PretendedPods, TestCluster};
use cellblock_testkit::wait::until;
use serde_json::{Value, json};

pub(crate) const POOL: &str = "python";

/// A cluster with a warm pool of pods that are ready at once.
pub(crate) async fn cluster(replicas: u32) -> TestCluster {
    misbehaving(replicas, &json!({})).await
}

/// A cluster whose pods have these annotations.
pub(crate) async fn misbehaving(replicas: u32, annotations: &Value) -> TestCluster {
    let cluster = TestCluster::start(PretendedPods);
    permit(&cluster);
    cluster.create_pool(POOL, replicas, annotations);
    let never = annotations.get("fake.cellblock.dev/never-ready").is_some();
    until("the pool is filled", || never || ready(&cluster) == replicas).await;
    cluster
}

/// Permits exactly what the chart permits gateways that use the pool.
pub(crate) fn permit(cluster: &TestCluster) {
    grant(cluster, &permissions(&options(cluster)));
}

pub(crate) fn grant(cluster: &TestCluster, permissions: &[Permission]) {
    let rules = permissions.iter().map(|it| (it.group, it.resource, it.verb));
    let rules: Vec<_> = rules.collect();
    cluster.grant(&rules);
}

/// Returns the number of ready pods of the pool.
pub(crate) fn ready(cluster: &TestCluster) -> u32 {
    let pools = cluster.all("sandboxwarmpools");
    let ready = pools[0]["status"]["readyReplicas"].as_u64().unwrap_or(0);
    u32::try_from(ready).unwrap()
}

/// Options with times that are short enough to be waited for.
pub(crate) fn options(cluster: &TestCluster) -> KubernetesOptions {
    KubernetesOptions {
        kubeconfig: Some(cluster.kubeconfig(GATEWAY)),
        warm_pool: Some(POOL.to_owned()),
        claim_timeout: Duration::from_mins(2),
        lease: Duration::from_secs(1),
        ..KubernetesOptions::default()
    }
}

pub(crate) async fn claims(cluster: &TestCluster) -> Arc<Claims> {
    Claims::start(&options(cluster)).await.unwrap()
}

/// Waits until nothing but the pool's own pods is left.
pub(crate) async fn nothing_is_left(cluster: &TestCluster, replicas: usize) {
    until("claims, sandboxes and pods are gone", || {
        cluster.counts() == (0, replicas, replicas)
    })
    .await;
}

/// The only claim.
pub(crate) fn only(cluster: &TestCluster) -> Value {
    let mut all = cluster.all("sandboxclaims");
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The error of a claim, as it is shown.
pub(crate) async fn refused(claims: &Arc<Claims>) -> (cellblock_sandbox::Error, String) {
    let error = claims.claim().await.unwrap_err();
    let text = cellblock_sandbox::jail::error::chain(&error);
    (error, text)
}
