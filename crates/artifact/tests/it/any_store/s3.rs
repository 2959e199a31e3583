//! Stores in a bucket.

use cellblock_artifact::{About, ArtifactError, Kind, S3, Store};
use cellblock_testkit::require;

use super::server::Server;
use super::suite;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_in_a_bucket_passes_the_suite() {
    require!(S3Server);
    let server = Server::start();
    let mut stores = Vec::new();
    for n in 0..12 {
        stores.push(
            Store::s3(server.bucket(&format!("bucket-{n}"), "some/prefix"))
                .await
                .unwrap(),
        );
    }
    suite::run(|| stores.pop().unwrap()).await;
}

#[tokio::test]
async fn prefixes_of_one_bucket_are_separate_persistent_stores() {
    require!(S3Server);
    let server = Server::start();
    let about = About {
        kind: Kind::File,
        media_type: "text/plain".into(),
        origin: None,
    };
    let first = Store::s3(server.bucket("bucket", "a")).await.unwrap();
    let other = Store::s3(server.bucket("bucket", "b")).await.unwrap();
    let root = Store::s3(server.bucket("bucket", "")).await.unwrap();
    let id = first.put("x", &about).await.unwrap();
    assert!(!other.exists(id).await.unwrap() && !root.exists(id).await.unwrap());
    let again = Store::s3(server.bucket("bucket", "a")).await.unwrap();
    assert_eq!(again.get(id).await.unwrap(), "x");
    assert_eq!(again.local_path(id), None);
}

#[tokio::test]
async fn a_missing_bucket_is_an_error() {
    require!(S3Server);
    let server = Server::start();
    let place = S3 {
        bucket: "absent".into(),
        ..server.bucket("bucket", "")
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
