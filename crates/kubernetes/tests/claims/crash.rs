//! Remains of a dead process are deleted by the living, and nothing of theirs is.

use cellblock_testkit::wait::until;
use serde_json::{Value, json};

use crate::support::{POOL, claims, cluster, nothing_is_left};

/// A claim of another process.
fn claim(holder: &str, owner: &str) -> Value {
    json!({
        "metadata": {
            "generateName": "cellblock-",
            "labels": {
                "app.kubernetes.io/managed-by": "cellblock",
                "cellblock.dev/owner": owner,
                "cellblock.dev/holder": holder,
            },
        },
        "spec": {"warmPoolRef": {"name": POOL}},
    })
}

fn lease(holder: &str, seconds: u32) -> Value {
    json!({
        "metadata": {
            "name": format!("cellblock-{holder}"),
            "labels": {"app.kubernetes.io/managed-by": "cellblock", "cellblock.dev/owner": "default"},
        },
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds},
    })
}

#[tokio::test]
async fn claims_of_a_holder_that_no_longer_renews_its_lease_are_deleted() {
    let cluster = cluster(3).await;
    cluster.create("leases", lease("dead", 1));
    cluster.create("sandboxclaims", claim("dead", "default"));
    // A holder without a Lease is dead, too: a Lease is older than its claims.
    cluster.create("sandboxclaims", claim("unknown", "default"));
    let claims = claims(&cluster).await;
    let pod = claims.claim().await.unwrap();
    until("the claims of others are swept", || {
        cluster.count("sandboxclaims") == 1 && cluster.count("leases") == 1
    })
    .await;
    drop(pod);
    nothing_is_left(&cluster, 3).await;
}

#[tokio::test]
async fn claims_of_the_living_and_of_other_owners_stay() {
    let cluster = cluster(3).await;
    cluster.create("leases", lease("paused", 3600));
    cluster.create("sandboxclaims", claim("paused", "default"));
    cluster.create("sandboxclaims", claim("foreign", "somebody-else"));
    let first = claims(&cluster).await;
    let second = claims(&cluster).await;
    let pods = (first.claim().await.unwrap(), second.claim().await.unwrap());
    // Longer than the lease of both, which they renew.
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    assert_eq!(cluster.count("sandboxclaims"), 4);
    drop(pods);
    until("only those of others are left", || {
        cluster.count("sandboxclaims") == 2
    })
    .await;
}
