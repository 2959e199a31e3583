//! Limits of a record.

use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_interpreter::alias::{AliasStore, Bounds};
use cellblock_interpreter::input::InputFormat;
use object_store::memory::InMemory;
use serde_json::json;

use super::file;

fn bounded(bounds: Bounds) -> AliasStore {
    AliasStore::new(Store::new(Arc::new(InMemory::new())), "turn-1", bounds)
}

#[tokio::test]
async fn a_result_that_is_too_large_is_rejected_by_name_and_the_next_is_recorded() {
    let bounds = Bounds {
        bytes_each: 10,
        ..Bounds::default()
    };
    let store = bounded(bounds);
    let error = store.record("get_rows", &json!("0123456789")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the result of `get_rows` has 12 bytes, the limit for one result is 10; request a smaller part of it"
    );
    assert_eq!(error.code(), Some("result_too_large"));
    let too_large = store
        .insert_named("x", file("\"0123456789\""), InputFormat::Value)
        .await;
    assert_eq!(too_large.unwrap_err().code(), Some("result_too_large"));
    let recorded = store.record("get_rows", &json!("01234567")).await.unwrap();
    assert_eq!(recorded.alias, "get_rows_1");
    assert!(
        store
            .insert_named("x", file("1"), InputFormat::Value)
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn the_total_size_is_limited_without_failed_results() {
    let bounds = Bounds {
        bytes_all: 10,
        ..Bounds::default()
    };
    let store = bounded(bounds);
    store.record("a", &json!("1234")).await.unwrap();
    assert_eq!(
        store.record_json("a", "{{{{").await.unwrap_err().code(),
        Some("unreadable_result")
    );
    let error = store.record("a", &json!("123")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "with the result of `a` all results would have 11 bytes, the limit is 10; continue with the \
         recorded results"
    );
    assert_eq!(error.code(), Some("results_full"));
    let waiting = store.record("a", &json!("12"));
    assert!(store.record("a", &json!(1)).await.is_err());
    drop(waiting);
    store.record("a", &json!("12")).await.unwrap();
}

#[tokio::test]
async fn the_number_of_results_is_bounded() {
    let bounds = Bounds {
        count: 2,
        ..Bounds::default()
    };
    let store = bounded(bounds);
    store.record("a", &json!(1)).await.unwrap();
    store.record("b", &json!(1)).await.unwrap();
    let error = store.record("c", &json!(1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 results are recorded, which is the limit; continue with the recorded results"
    );
}
