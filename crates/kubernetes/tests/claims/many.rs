//! Many claims, after each other and at once.

use std::sync::Arc;

use crate::support::{claims, cluster, nothing_is_left};

#[tokio::test]
async fn a_hundred_claims_in_a_row_leave_nothing() {
    let cluster = cluster(4).await;
    let claims = claims(&cluster).await;
    for _ in 0..100 {
        drop(claims.claim().await.unwrap());
    }
    nothing_is_left(&cluster, 4).await;
    assert_eq!(cluster.requests("POST", "sandboxclaims"), 100);
    drop(claims);
    assert_eq!(cluster.count("leases"), 0);
}

#[tokio::test]
async fn two_hundred_claims_at_once_get_a_pod_each() {
    let cluster = cluster(0).await;
    let claims = claims(&cluster).await;
    let claiming: Vec<_> = (0..200)
        .map(|_| {
            let claims = Arc::clone(&claims);
            tokio::spawn(async move { claims.claim().await })
        })
        .collect();
    let mut pods = Vec::new();
    for claim in claiming {
        pods.push(claim.await.unwrap().unwrap());
    }
    let mut urls: Vec<_> = pods.iter().map(|pod| pod.url.clone()).collect();
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 200);
    drop(pods);
    drop(claims);
    assert_eq!(cluster.count("sandboxclaims"), 0);
    nothing_is_left(&cluster, 0).await;
}
