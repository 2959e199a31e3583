//! The API server fails, restarts or forgets in the middle, and nothing is lost or doubled.

use std::sync::Arc;

use cellblock_kubernetes::{ClaimedPod, Claims};
use cellblock_sandbox::Result;
use cellblock_testkit::kubernetes::{Fault, FaultKind, TestCluster};
use cellblock_testkit::wait::until;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::support::{claims, cluster, misbehaving, nothing_is_left};

fn fault(method: &'static str, times: usize, kind: FaultKind) -> Fault {
    Fault {
        method,
        plural: "sandboxclaims",
        times,
        kind,
    }
}

/// A claim whose pod starts after so many milliseconds, when it is watched.
async fn watched(start_after_ms: &str) -> (TestCluster, Arc<Claims>, JoinHandle<Result<ClaimedPod>>) {
    let cluster = misbehaving(0, &json!({"fake.cellblock.dev/start-after-ms": start_after_ms})).await;
    let claims = claims(&cluster).await;
    let claiming = tokio::spawn({
        let claims = Arc::clone(&claims);
        async move { claims.claim().await }
    });
    until("it is watched", || {
        cluster.requests("WATCH", "sandboxclaims") == 1
    })
    .await;
    (cluster, claims, claiming)
}

#[tokio::test]
async fn overload_and_server_errors_are_waited_out() {
    let cluster = cluster(1).await;
    let claims = claims(&cluster).await;
    cluster.inject(fault("POST", 1, FaultKind::Status(429)));
    cluster.inject(fault("POST", 2, FaultKind::Status(503)));
    cluster.inject(fault("WATCH", 2, FaultKind::Status(500)));
    let pod = claims.claim().await.unwrap();
    assert_eq!(cluster.count("sandboxclaims"), 1);
    cluster.inject(fault("DELETE", 3, FaultKind::Status(504)));
    drop(pod);
    nothing_is_left(&cluster, 1).await;
    assert_eq!(cluster.requests("DELETE", "sandboxclaims"), 4);
}

#[tokio::test]
async fn a_server_that_does_not_know_its_roles_yet_is_waited_for() {
    let cluster = cluster(1).await;
    let claims = claims(&cluster).await;
    for method in ["POST", "WATCH", "GET"] {
        cluster.inject(fault(method, 1, FaultKind::Status(403)));
    }
    let pod = claims.claim().await.unwrap();
    assert_eq!(cluster.count("sandboxclaims"), 1);
    cluster.inject(fault("DELETE", 1, FaultKind::Status(403)));
    drop(pod);
    nothing_is_left(&cluster, 1).await;
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_found_and_not_made_twice() {
    let cluster = cluster(2).await;
    let claims = claims(&cluster).await;
    cluster.inject(fault("POST", 1, FaultKind::Cut));
    let pod = claims.claim().await.unwrap();
    assert_eq!(cluster.count("sandboxclaims"), 1);
    assert_eq!(cluster.requests("POST", "sandboxclaims"), 1);
    // A lost answer to the deletion is repeated, and the claim that is gone is no error.
    cluster.inject(fault("DELETE", 1, FaultKind::Cut));
    drop(pod);
    nothing_is_left(&cluster, 2).await;
}

#[tokio::test]
async fn a_watch_whose_version_is_forgotten_begins_again() {
    let (cluster, _claims, claiming) = watched("500").await;
    cluster.inject(fault("WATCH", 1, FaultKind::Status(410)));
    cluster.compact();
    // The watch is at a version that is gone now, and learns of it with the next change.
    let pod = claiming.await.unwrap().unwrap();
    assert!(cluster.requests("WATCH", "sandboxclaims") >= 2);
    drop(pod);
    nothing_is_left(&cluster, 0).await;
}

#[tokio::test]
async fn an_api_server_that_restarts_in_the_middle_delays_a_claim() {
    let (cluster, _claims, claiming) = watched("300").await;
    cluster.stop_api();
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    cluster.start_api();
    let pod = claiming.await.unwrap().unwrap();
    assert_eq!(cluster.count("sandboxclaims"), 1);
    cluster.stop_api();
    drop(pod);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    cluster.start_api();
    nothing_is_left(&cluster, 0).await;
}
