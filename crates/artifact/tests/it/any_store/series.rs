//! Series of versions in every store.

use std::collections::BTreeSet;

use cellblock_artifact::{ArtifactError, ArtifactId, Store, VersionSeries};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::suite::{ALL, about};

pub(super) async fn run(mut fresh: impl FnMut() -> Store) {
    versions_are_added_and_the_head_moves(&fresh()).await;
    publishers_at_the_same_time_lose_no_version(&fresh()).await;
    a_version_needs_its_artifact(&fresh()).await;
    versions_are_not_collected_until_their_series_is_removed(&fresh()).await;
}

async fn publish(store: &Store, series: &VersionSeries, text: &str) -> ArtifactId {
    let id = store.put(text.to_owned(), &about(1)).await.unwrap();
    let made = series.append(id, 5, |unix_ms| json!({"text": text, "at": unix_ms}));
    let at = made.await.unwrap();
    let moved = series.move_head(|head: Option<Value>| {
        let count = head.map_or(0, |head| head["count"].as_u64().unwrap());
        json!({"current": text, "at": at, "count": count + 1})
    });
    moved.await.unwrap();
    id
}

async fn versions_are_added_and_the_head_moves(store: &Store) {
    let series = store.series(&["me", "macro", "gdp"]);
    assert_eq!(series.head::<Value>().await.unwrap(), None);
    assert_eq!(series.versions::<Value>().await.unwrap(), [Value::Null; 0]);
    publish(store, &series, "one").await;
    publish(store, &series, "two").await;
    // Equal bytes are a version of their own.
    publish(store, &series, "one").await;
    let versions = series.versions::<Value>().await.unwrap();
    let times: BTreeSet<_> = versions.iter().map(|it| it["at"].as_u64().unwrap()).collect();
    assert_eq!((versions.len(), times.contains(&5)), (3, true));
    let head: Value = series.head().await.unwrap().unwrap();
    assert_eq!((&head["current"], &head["count"]), (&json!("one"), &json!(3)));
    publish(store, &store.series(&["me", "macro", "cpi"]), "x").await;
    publish(store, &store.series(&["me", "other", "cpi"]), "x").await;
    let names = store.series_below(&["me", "macro"]).await.unwrap();
    assert_eq!(names, ["cpi", "gdp"]);
    assert_eq!(store.series_below(&["nobody"]).await.unwrap(), [""; 0]);
}

async fn publishers_at_the_same_time_lose_no_version(store: &Store) {
    const PUBLISHERS: u64 = 12;
    let mut publishers = JoinSet::new();
    for number in 0..PUBLISHERS {
        let store = store.clone();
        // Half of them publish the same.
        let text = (number / 2 * 2).to_string();
        publishers.spawn(async move {
            let series = store.series(&["me", "p", "race"]);
            publish(&store, &series, &text).await
        });
    }
    let ids: BTreeSet<_> = publishers.join_all().await.into_iter().collect();
    let series = store.series(&["me", "p", "race"]);
    let head: Value = series.head().await.unwrap().unwrap();
    let versions = series.versions::<Value>().await.unwrap();
    assert_eq!(
        (head["count"].as_u64(), versions.len() as u64, ids.len() as u64),
        (Some(PUBLISHERS), PUBLISHERS, PUBLISHERS / 2)
    );
}

async fn a_version_needs_its_artifact(store: &Store) {
    let series = store.series(&["me", "p", "gone"]);
    let absent = ArtifactId::of(b"absent");
    let error = series.append(absent, 1, |_| json!({})).await.unwrap_err();
    assert!(
        matches!(error, ArtifactError::NotFound { id } if id == absent),
        "{error}"
    );
    assert_eq!(series.versions::<Value>().await.unwrap(), [Value::Null; 0]);
}

async fn versions_are_not_collected_until_their_series_is_removed(store: &Store) {
    let series = store.series(&["me", "p", "kept"]);
    let first = publish(store, &series, "first").await;
    let second = publish(store, &series, "second").await;
    let other = store.put("other", &about(1)).await.unwrap();
    store.collect(&ALL, |_| false).await.unwrap();
    assert!(store.exists(first).await.unwrap() && store.exists(second).await.unwrap());
    assert!(!store.exists(other).await.unwrap());
    assert!(series.remove().await.unwrap());
    assert!(!series.remove().await.unwrap());
    assert_eq!(series.head::<Value>().await.unwrap(), None);
    store.collect(&ALL, |_| false).await.unwrap();
    assert!(!store.exists(first).await.unwrap() && !store.exists(second).await.unwrap());
}
