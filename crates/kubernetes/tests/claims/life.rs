//! A claim from its creation to its deletion.

use std::sync::Arc;
use std::time::Duration;

use cellblock_kubernetes::{Claims, KubernetesOptions, permissions};
use cellblock_testkit::wait::until;
use serde_json::json;

use crate::support::{POOL, claims, cluster, grant, misbehaving, nothing_is_left, only, options};

#[tokio::test]
async fn a_claim_names_pool_owner_and_holder_and_is_deleted_when_it_is_released() {
    let cluster = cluster(2).await;
    let claims = claims(&cluster).await;
    let pod = claims.claim().await.unwrap();

    let claim = only(&cluster);
    let name = claim["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("cellblock-"), "{name}");
    assert_eq!(claim["metadata"]["namespace"], cluster.namespace());
    assert_eq!(claim["spec"]["warmPoolRef"], json!({"name": POOL}));
    assert_eq!(claim["spec"]["lifecycle"]["shutdownPolicy"], "Delete");
    let labels = &claim["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/managed-by"], "cellblock");
    assert_eq!(labels["cellblock.dev/owner"], "default");
    let lease = cluster.all("leases").remove(0);
    assert_eq!(labels["cellblock.dev/holder"], lease["spec"]["holderIdentity"]);
    // The sandbox has the pool's name, and the address is that of its pod.
    let sandbox = &claim["status"]["sandbox"];
    assert!(
        sandbox["name"].as_str().unwrap().starts_with("python-"),
        "{claim}"
    );
    let ip = sandbox["podIPs"][0].as_str().unwrap();
    assert_eq!(pod.url, format!("http://{ip}:8080"));

    drop(pod);
    nothing_is_left(&cluster, 2).await;
    drop(claims);
    assert_eq!(cluster.count("leases"), 0);
}

#[tokio::test]
async fn a_claim_is_watched_from_its_own_version_and_not_polled() {
    let cluster = misbehaving(0, &json!({"fake.cellblock.dev/start-after-ms": "700"})).await;
    let claims = claims(&cluster).await;
    let pod = claims.claim().await.unwrap();
    assert_eq!(cluster.requests("WATCH", "sandboxclaims"), 1);
    assert_eq!(cluster.requests("GET", "sandboxclaims"), 0);
    drop(pod);
}

#[tokio::test]
async fn dropping_the_last_handle_waits_until_the_claim_is_gone() {
    let cluster = cluster(1).await;
    let claims = claims(&cluster).await;
    let pod = claims.claim().await.unwrap();
    drop(claims);
    assert_eq!(cluster.count("sandboxclaims"), 1);
    drop(pod);
    assert_eq!(cluster.count("sandboxclaims"), 0);
}

#[tokio::test]
async fn a_canceled_claim_is_deleted() {
    let cluster = misbehaving(1, &json!({"fake.cellblock.dev/never-ready": "1"})).await;
    let claims = claims(&cluster).await;
    let claiming = tokio::spawn({
        let claims = Arc::clone(&claims);
        async move { claims.claim().await.map(drop) }
    });
    until("the claim exists", || cluster.count("sandboxclaims") == 1).await;
    claiming.abort();
    nothing_is_left(&cluster, 1).await;
}

#[tokio::test]
async fn a_claim_is_renewed_while_it_is_held_and_expires_by_itself_afterward() {
    let cluster = cluster(1).await;
    let options = KubernetesOptions {
        shutdown_after: Duration::from_secs(2),
        ..options(&cluster)
    };
    let claims = Claims::start(&options).await.unwrap();
    let pod = claims.claim().await.unwrap();
    let first = only(&cluster);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let later = only(&cluster);
    assert_eq!(first["metadata"]["uid"], later["metadata"]["uid"]);
    assert_ne!(
        first["spec"]["lifecycle"]["shutdownTime"],
        later["spec"]["lifecycle"]["shutdownTime"]
    );
    // Nobody is left to delete it.
    cluster.stop_api();
    drop(pod);
    until("the cluster deletes it", || cluster.count("sandboxclaims") == 0).await;
    cluster.start_api();
}

#[tokio::test]
async fn direct_mode_starts_a_pod_per_claim_through_a_pool_without_pods() {
    let cluster = misbehaving(0, &json!({})).await;
    cluster.create_template("direct", &json!({}));
    let options = KubernetesOptions {
        warm_pool: None,
        template: Some("direct".to_owned()),
        ..options(&cluster)
    };
    // The Role for warm pools is not enough.
    let error = Claims::start(&options).await.unwrap_err();
    let text = cellblock_sandbox::jail::error::chain(&error);
    assert!(
        text.starts_with(
            "create a warm pool without pods: RBAC denies `create` on \
             `sandboxwarmpools.extensions.agents.x-k8s.io`"
        ),
        "{text}"
    );
    grant(&cluster, &permissions(&options));
    let claims = Claims::start(&options).await.unwrap();
    let again = Claims::start(&options).await.unwrap();
    let pools = cluster.all("sandboxwarmpools");
    let pool = pools
        .iter()
        .find(|it| it["metadata"]["name"] == "cellblock-direct")
        .unwrap();
    assert_eq!(
        pool["spec"],
        json!({"replicas": 0, "sandboxTemplateRef": {"name": "direct"}})
    );
    let pod = claims.claim().await.unwrap();
    let other = again.claim().await.unwrap();
    assert_eq!(cluster.counts(), (2, 2, 2));
    assert_ne!(pod.url, other.url);
    drop((pod, other));
    nothing_is_left(&cluster, 0).await;
}

#[tokio::test]
async fn a_claim_of_another_object_with_the_same_name_is_not_deleted() {
    let cluster = cluster(1).await;
    let claims = claims(&cluster).await;
    let pod = claims.claim().await.unwrap();
    let claim = only(&cluster);
    let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.replace("sandboxclaims", &name);
    drop(pod);
    until("it was tried", || {
        cluster.requests("DELETE", "sandboxclaims") == 1
    })
    .await;
    drop(claims);
    let left = only(&cluster);
    assert_eq!(left["metadata"]["name"], name.as_str());
    assert_ne!(left["metadata"]["uid"], claim["metadata"]["uid"]);
}
