//! The dataset of an answer.

use cellblock_artifact::{Kind, Urls};
use cellblock_interpreter::alias::AliasError;
use serde_json::{Value, json};

use super::{in_memory, local};

#[tokio::test]
async fn a_dataset_holds_every_used_result_whole_and_has_a_url() {
    let (_folder, here) = local();
    for store in [here, in_memory()] {
        store.record_json("a", "[1.50, {\"x\": 2}]").await.unwrap();
        store.record("unused", &json!(0)).await.unwrap();
        let last = store.record("b", &json!("é")).await.unwrap();
        let urls = Urls::below("https://host/data").unwrap();
        let result = json!([{"total": 3}, {"total": 4}]);
        let dataset = store
            .canonical_dataset(&["b_1", "a_1", "b_1"], Some(&result), &urls)
            .await
            .unwrap();
        let document = store.artifacts().get(dataset.sha256).await.unwrap();
        assert_eq!(
            String::from_utf8(document.to_vec()).unwrap(),
            "{\"aliases\": {\"a_1\": [1.50, {\"x\": 2}],\n\"b_1\": \"é\"},\n\
             \"result\": [{\"total\":3},{\"total\":4}]}\n"
        );
        assert_eq!(dataset.bytes, document.len() as u64);
        assert_eq!(dataset.aliases, ["a_1", "b_1"]);
        assert_eq!(dataset.rows, Some(2));
        assert_eq!(dataset.url, format!("https://host/data/{}.json", dataset.sha256));
        assert_eq!(
            dataset.dataset_id,
            format!("dataset_{}", &dataset.sha256.to_string()[..16])
        );
        let metadata = store.artifacts().metadata(dataset.sha256).await.unwrap();
        assert_eq!(metadata.kind, Kind::Dataset);
        assert_eq!(metadata.origins[0].inputs.len(), 2);
        assert!(metadata.origins[0].inputs.contains(&last.sha256));
        let again = store
            .canonical_dataset(&["a_1", "b_1"], Some(&result), &urls)
            .await
            .unwrap();
        assert_eq!(again, dataset);
        let owners = store.artifacts().owners().await.unwrap();
        assert!(owners[0].pins.contains(&dataset.sha256));
    }
}

#[tokio::test]
async fn a_dataset_of_nothing_or_without_a_result_is_still_a_document() {
    let store = in_memory();
    store.record("a", &json!([{"x": 1}, {"x": 2}])).await.unwrap();
    for (aliases, result, document, rows) in [
        (&[][..], None, json!({"aliases": {}}), None),
        (
            &[],
            Some(json!(null)),
            json!({"aliases": {}, "result": null}),
            None,
        ),
        (
            &["a_1"],
            None,
            json!({"aliases": {"a_1": [{"x": 1}, {"x": 2}]}}),
            Some(2),
        ),
    ] {
        let dataset = store
            .canonical_dataset(aliases, result.as_ref(), &Urls::default())
            .await
            .unwrap();
        let bytes = store.artifacts().get(dataset.sha256).await.unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), document);
        assert_eq!(dataset.rows, rows);
        assert_eq!(dataset.url, format!("artifact:{}", dataset.sha256));
    }
    let error = store
        .canonical_dataset(&["b_1"], None, &Urls::default())
        .await
        .unwrap_err();
    assert!(matches!(error, AliasError::Unknown { .. }), "{error}");
}
