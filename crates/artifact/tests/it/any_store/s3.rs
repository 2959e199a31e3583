//! Stores in a bucket.

use cellblock_artifact::{ArtifactDescription, ArtifactError, Credentials, Kind, S3, Store};
use cellblock_testkit::{S3Server, require};

use super::suite;

/// Creates a bucket, and returns its address.
fn bucket(server: &S3Server, name: &str, prefix: &str) -> S3 {
    server.create_bucket(name);
    S3 {
        endpoint: Some(server.endpoint()),
        region: Some("us-east-1".into()),
        credentials: Some(Credentials {
            key_id: "test".into(),
            secret: "test".into(),
        }),
        ..S3::at(&format!("s3://{name}/{prefix}")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_in_a_bucket_passes_the_suite() {
    require!(S3Server);
    let server = S3Server::start();
    let mut stores = Vec::new();
    for n in 0..12 {
        stores.push(
            Store::s3(bucket(&server, &format!("bucket-{n}"), "some/prefix"))
                .await
                .unwrap(),
        );
    }
    suite::run(|| stores.pop().unwrap()).await;
}

#[tokio::test]
async fn prefixes_of_one_bucket_are_separate_persistent_stores() {
    require!(S3Server);
    let server = S3Server::start();
    let about = ArtifactDescription {
        kind: Kind::File,
        media_type: "text/plain".into(),
        origin: None,
    };
    let first = Store::s3(bucket(&server, "bucket", "a")).await.unwrap();
    let other = Store::s3(bucket(&server, "bucket", "b")).await.unwrap();
    let root = Store::s3(bucket(&server, "bucket", "")).await.unwrap();
    let id = first.put("x", &about).await.unwrap();
    assert!(!other.exists(id).await.unwrap() && !root.exists(id).await.unwrap());
    let again = Store::s3(bucket(&server, "bucket", "a")).await.unwrap();
    assert_eq!(again.get(id).await.unwrap(), "x");
    assert_eq!(again.local_path(id), None);
}

#[tokio::test]
async fn a_missing_bucket_is_an_error() {
    require!(S3Server);
    let server = S3Server::start();
    let place = S3 {
        bucket: "absent".into(),
        ..bucket(&server, "bucket", "")
    };
    let error = Store::s3(place).await.unwrap_err();
    assert!(
        matches!(
            error,
            ArtifactError::Store {
                action: "write to S3",
                ..
            }
        ),
        "{error}"
    );
}
