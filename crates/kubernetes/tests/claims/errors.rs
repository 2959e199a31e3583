//! Errors name the cluster's reason and what to do, and leave nothing behind.

use std::sync::Arc;
use std::time::Duration;

use cellblock_kubernetes::{ClaimError, Claims, KubernetesOptions, permissions};
use cellblock_sandbox::error::{Blame, Retry};
use cellblock_testkit::kubernetes::{NOBODY, TestCluster};
use cellblock_testkit::wait::until;
use serde_json::json;

use crate::support::{claims, cluster, grant, misbehaving, nothing_is_left, only, options, permit, refused};

async fn start_fails(options: &KubernetesOptions) -> (cellblock_sandbox::Error, String) {
    let error = Claims::start(options).await.unwrap_err();
    let text = cellblock_sandbox::jail::error::chain(&error);
    (error, text)
}

#[tokio::test]
async fn an_exhausted_pool_is_an_error_of_capacity_after_the_time_limit() {
    let cluster = misbehaving(0, &json!({"fake.cellblock.dev/never-ready": "1"})).await;
    let options = KubernetesOptions {
        claim_timeout: Duration::from_secs(1),
        ..options(&cluster)
    };
    let claims = Claims::start(&options).await.unwrap();
    let (error, text) = refused(&claims).await;
    assert!(
        text.starts_with(
            "no pod of the warm pool `python` became ready within 1.0s (DependenciesNotReady: Pod "
        ),
        "{text}"
    );
    assert!(text.contains("raise its `replicas`"), "{text}");
    assert_eq!(error.blame(), Blame::Capacity);
    assert_eq!(error.retry(), Retry::After(Duration::from_secs(1)));
    nothing_is_left(&cluster, 0).await;
}

/// Claims while no pod is ready, and has the controller say a reason.
async fn told(reason: &str) -> (cellblock_sandbox::Error, String, TestCluster) {
    let cluster = misbehaving(1, &json!({"fake.cellblock.dev/never-ready": "1"})).await;
    let claims = claims(&cluster).await;
    let claiming = tokio::spawn({
        let claims = Arc::clone(&claims);
        async move { refused(&claims).await }
    });
    until("the claim exists", || cluster.count("sandboxclaims") == 1).await;
    let name = only(&cluster)["metadata"]["name"].as_str().unwrap().to_owned();
    let condition = json!({
        "type": "Ready", "status": "False", "reason": reason, "message": "as the controller says",
        "lastTransitionTime": "2026-11-25T00:00:00Z",
    });
    cluster.patch(
        "sandboxclaims",
        &name,
        &json!({"status": {"conditions": [condition]}}),
    );
    let (error, text) = claiming.await.unwrap();
    nothing_is_left(&cluster, 1).await;
    (error, text, cluster)
}

#[tokio::test]
async fn an_expired_claim_is_named_with_its_reason_and_the_clocks_to_check() {
    let (error, text, _cluster) = told("ClaimExpired").await;
    assert!(
        text.starts_with(
            "the claim failed: ClaimExpired: as the controller says; its shutdown time \
             passed: check the clocks"
        ),
        "{text}"
    );
    assert_eq!((error.blame(), error.retry()), (Blame::Backend, Retry::Fresh));
}

#[tokio::test]
async fn an_invalid_configuration_names_the_template_as_the_place_to_correct() {
    let (error, text, _cluster) = told("InvalidConfiguration").await;
    assert!(
        text.contains("InvalidConfiguration") && text.contains("correct the SandboxTemplate"),
        "{text}"
    );
    assert_eq!((error.blame(), error.retry()), (Blame::Policy, Retry::Never));
}

#[tokio::test]
async fn a_pod_that_fails_while_it_is_waited_for_is_named() {
    let cluster = TestCluster::start(FailingPods);
    permit(&cluster);
    cluster.create_pool("python", 0, &json!({}));
    let claims = claims(&cluster).await;
    let (error, text) = refused(&claims).await;
    assert!(
        text.starts_with("the claim failed: PodFailed: Pod failed; look at the pod's events"),
        "{text}"
    );
    assert_eq!((error.blame(), error.retry()), (Blame::Backend, Retry::Fresh));
    nothing_is_left(&cluster, 0).await;
}

/// Pods that cannot be started.
struct FailingPods;

impl cellblock_testkit::kubernetes::PodRunner for FailingPods {
    fn start(
        &self,
        _: &cellblock_testkit::kubernetes::PodRequest,
    ) -> std::io::Result<Box<dyn cellblock_testkit::kubernetes::PodProcess>> {
        Err(std::io::Error::other("no such image"))
    }
}

#[tokio::test]
async fn a_pool_that_does_not_exist_is_found_at_the_start() {
    let cluster = cluster(0).await;
    let options = KubernetesOptions {
        warm_pool: Some("nowhere".to_owned()),
        ..options(&cluster)
    };
    let (error, text) = start_fails(&options).await;
    assert!(
        text.contains(&format!(
            "WarmPoolNotFound: no SandboxWarmPool `nowhere` in namespace `{}`",
            cluster.namespace()
        )),
        "{text}"
    );
    assert_eq!(error.blame(), Blame::Policy);
    assert_eq!(cluster.count("leases"), 0);
}

#[tokio::test]
async fn a_missing_template_is_named_by_the_controller() {
    let cluster = cluster(0).await;
    cluster.delete("sandboxtemplates", "python");
    let claims = claims(&cluster).await;
    let (error, text) = refused(&claims).await;
    assert!(text.contains("TemplateNotFound"), "{text}");
    assert_eq!(error.blame(), Blame::Policy);
    nothing_is_left(&cluster, 0).await;
}

#[tokio::test]
async fn rbac_that_denies_is_named_with_verb_resource_and_role() {
    let cluster = cluster(0).await;
    let options = KubernetesOptions {
        kubeconfig: Some(cluster.kubeconfig(NOBODY)),
        ..options(&cluster)
    };
    let (error, text) = start_fails(&options).await;
    assert!(
        text.contains(
            "look at the warm pool: RBAC denies `get` on `sandboxwarmpools.extensions.agents.x-k8s.io` \
             (403 Forbidden: sandboxwarmpools.extensions.agents.x-k8s.io \"python\" is forbidden: User \
             \"dev\" cannot get"
        ),
        "{text}"
    );
    assert!(
        text.contains("add this verb to the Role of this account"),
        "{text}"
    );
    assert_eq!((error.blame(), error.retry()), (Blame::Policy, Retry::Never));
}

#[tokio::test]
async fn a_missing_permission_to_watch_is_not_an_exhausted_pool() {
    // Both where the time for a claim ends before the time in which denials may pass, and after it.
    for seconds in [2, 60] {
        let cluster = misbehaving(1, &json!({"fake.cellblock.dev/never-ready": "1"})).await;
        let options = KubernetesOptions {
            claim_timeout: Duration::from_secs(seconds),
            ..options(&cluster)
        };
        let mut granted = permissions(&options);
        granted.retain(|it| it.verb != "watch");
        grant(&cluster, &granted);
        let claims = Claims::start(&options).await.unwrap();
        let (error, text) = refused(&claims).await;
        assert!(
            text.starts_with(
                "watch a claim: RBAC denies `watch` on `sandboxclaims.extensions.agents.x-k8s.io` (403 \
                 Forbidden: "
            ) && text.contains("add this verb to the Role of this account"),
            "{text}"
        );
        assert_eq!((error.blame(), error.retry()), (Blame::Policy, Retry::Never));
        nothing_is_left(&cluster, 1).await;
    }
}

#[tokio::test]
async fn an_unknown_token_is_not_taken_for_a_missing_right() {
    let cluster = cluster(0).await;
    let options = KubernetesOptions {
        kubeconfig: Some(cluster.kubeconfig("stale")),
        ..options(&cluster)
    };
    let (error, text) = start_fails(&options).await;
    assert!(
        text.contains("401 Unauthorized") && text.contains("renew the token"),
        "{text}"
    );
    assert_eq!(error.blame(), Blame::Policy);
}

#[tokio::test]
async fn an_old_version_of_agent_sandbox_is_named() {
    let cluster = cluster(0).await;
    cluster.serve_old_version();
    let (error, text) = start_fails(&options(&cluster)).await;
    assert_eq!(
        text,
        "the cluster does not serve `extensions.agents.x-k8s.io/v1beta1`, but `v1alpha1`; install \
         agent-sandbox 1.0 or newer with its extensions"
    );
    assert!(matches!(error.backend_error(), Some(ClaimError::Version { .. })));
    assert_eq!(error.blame(), Blame::Policy);
}

#[tokio::test]
async fn a_claim_that_somebody_deletes_is_not_waited_for() {
    let cluster = misbehaving(1, &json!({"fake.cellblock.dev/never-ready": "1"})).await;
    let claims = claims(&cluster).await;
    let claiming = tokio::spawn({
        let claims = Arc::clone(&claims);
        async move { refused(&claims).await }
    });
    until("the claim exists", || cluster.count("sandboxclaims") == 1).await;
    let name = only(&cluster)["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.delete("sandboxclaims", &name);
    let (_, text) = claiming.await.unwrap();
    assert!(text.contains("was deleted before its pod was ready"), "{text}");
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_an_error_after_a_while() {
    let cluster = cluster(1).await;
    let options = KubernetesOptions {
        claim_timeout: Duration::from_secs(1),
        ..options(&cluster)
    };
    let claims = Claims::start(&options).await.unwrap();
    cluster.stop_api();
    let (error, text) = refused(&claims).await;
    // What it was asked last, it may still have answered.
    assert!(
        text.contains(" a claim: the API server cannot be reached"),
        "{text}"
    );
    assert_eq!(error.retry(), Retry::After(Duration::from_secs(1)));
    cluster.start_api();
    drop(claims);
    nothing_is_left(&cluster, 1).await;
}
