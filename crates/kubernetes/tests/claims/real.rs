//! A real API server with the real controllers, where `CELLBLOCK_TEST_KUBE` names their programs.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cellblock_kubernetes::Claims;
use cellblock_testkit::kubernetes::{PLANE, Plane, PretendedPods, TestCluster};
use cellblock_testkit::require;
use cellblock_testkit::wait::until;
use serde_json::json;

use crate::support::{POOL, nothing_is_left, options, permit};

/// Tests that only a fake cluster can run.
const FAKE_ONLY: [&str; 2] = [
    // Its definitions have one version.
    "an_old_version_of_agent_sandbox_is_named",
    // A real API server forgets events when it restarts, which `a_killed_api_server…` does.
    "a_watch_whose_version_is_forgotten_begins_again",
];

#[test]
fn every_other_test_holds_in_a_real_cluster() {
    require!(Kubernetes);
    let plane = Plane::start();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests
        .env(PLANE, plane.connection())
        .args(["--test-threads=2", "--skip", "real::"]);
    for name in FAKE_ONLY {
        tests.args(["--skip", name]);
    }
    let status = tests.status().unwrap();
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_killed_api_server_and_a_killed_store_lose_no_claim() {
    require!(Kubernetes);
    let mut plane = Plane::start();
    let cluster = TestCluster::in_plane(Path::new(&plane.connection()), PretendedPods);
    permit(&cluster);
    cluster.create_pool(POOL, 0, &json!({"fake.cellblock.dev/start-after-ms": "4000"}));
    let claims = Claims::start(&options(&cluster)).await.unwrap();
    let claim = || {
        let claims = Arc::clone(&claims);
        tokio::spawn(async move { claims.claim().await })
    };

    let claiming = claim();
    until("it is watched", || {
        cluster.requests("WATCH", "sandboxclaims") == 1
    })
    .await;
    plane.kill("kube-apiserver");
    // The version of the watch is one that the next server does not know.
    plane.compact();
    plane.start_api();
    let first = claiming.await.unwrap().unwrap();
    assert_eq!(cluster.requests("POST", "sandboxclaims"), 1);

    let claiming = claim();
    until("it is watched", || {
        cluster.requests("WATCH", "sandboxclaims") >= 3
    })
    .await;
    plane.kill("etcd");
    drop(first);
    plane.start_store();
    let second = claiming.await.unwrap().unwrap();
    until("the first claim is deleted", || {
        cluster.count("sandboxclaims") == 1
    })
    .await;
    drop(second);
    nothing_is_left(&cluster, 0).await;
    drop(claims);
    assert_eq!(cluster.count("leases"), 0);
}
