//! Opening stores by their addresses.

use cellblock_artifact::{ArtifactDescription, Kind, Store};
use tempfile::TempDir;

#[tokio::test]
async fn an_address_names_memory_or_a_folder() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    let about = ArtifactDescription {
        kind: Kind::File,
        media_type: "text/plain".into(),
        origin: None,
    };
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    let id = store.put("x", &about).await.unwrap();
    let same = Store::open(&format!("file://{}", path.display())).await.unwrap();
    assert_eq!(same.get(id).await.unwrap(), "x");
    let memory = Store::open("memory:").await.unwrap();
    assert!(!memory.exists(id).await.unwrap());
}

#[tokio::test]
async fn the_error_for_an_invalid_address_names_valid_ones() {
    for address in [
        "",
        "store",
        "file://host/x",
        "gs://bucket",
        "memory",
        "https://host",
    ] {
        let error = Store::open(address).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "could not open the store {address}: expected memory:, an absolute path, file:///path or \
                 s3://bucket/prefix"
            )
        );
    }
}

#[cfg(not(feature = "s3"))]
#[tokio::test]
async fn a_bucket_needs_the_feature() {
    let error = Store::open("s3://bucket/x").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not open the store s3://bucket/x: this build lacks `s3`: rebuild with `--features s3` (or \
         `--features full`)"
    );
}
