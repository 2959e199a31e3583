//! Several results as one document.

use std::fs;
use std::io::Read;

use cellblock_interpreter::alias::AliasError;
use serde_json::{Value, json};

use super::{in_memory, local, read};

#[tokio::test]
async fn the_document_contains_each_recorded_value_at_its_span() {
    let (_folder, here) = local();
    for store in [here, in_memory()] {
        store.record_json("a", "[1.50, \"é\"]").await.unwrap();
        store.record("b", &json!({"k": null})).await.unwrap();
        let names = [("a_1", "a_1"), ("x", "a_1"), ("b_1", "b_1"), ("quo\"te", "b_1")];
        let splice = store.splice(&names).await.unwrap();
        let length = splice.content.len();
        let document = read(splice.content);
        assert_eq!(
            String::from_utf8(document.clone()).unwrap(),
            "{\"a_1\": [1.50, \"é\"],\n\"x\": [1.50, \"é\"],\n\
             \"b_1\": {\"k\":null},\n\"quo\\\"te\": {\"k\":null}}\n"
        );
        assert_eq!(length, document.len() as u64);
        let places: Vec<_> = splice
            .spans
            .iter()
            .map(|span| (span.offset, span.length))
            .collect();
        assert_eq!(places, [(8, 12), (27, 12), (48, 10), (71, 10)]);
        for span in &splice.spans {
            let from = usize::try_from(span.offset).unwrap();
            let value = &document[from..from + usize::try_from(span.length).unwrap()];
            assert_eq!(value, read(store.content(&span.alias).await.unwrap()));
        }
    }
}

#[tokio::test]
async fn no_names_give_an_empty_document() {
    let store = in_memory();
    let splice = store.splice::<&str, &str>(&[]).await.unwrap();
    assert_eq!(splice.content.len(), 3);
    assert_eq!(
        serde_json::from_slice::<Value>(&read(splice.content)).unwrap(),
        json!({})
    );
}

#[tokio::test]
async fn an_unknown_alias_and_a_name_given_twice_are_rejected() {
    let store = in_memory();
    store.record("a", &json!(1)).await.unwrap();
    let error = store.splice(&[("x", "a_1"), ("y", "a_2")]).await.unwrap_err();
    assert!(matches!(error, AliasError::Unknown { .. }), "{error}");
    let error = store.splice(&[("x", "a_1"), ("x", "a_1")]).await.unwrap_err();
    assert!(error.to_string().starts_with("`x` is given twice;"), "{error}");
}

#[tokio::test]
async fn damaged_and_missing_bytes_are_noticed_before_the_last_one_is_given() {
    let (folder, store) = local();
    let entry = store.record("a", &json!("x".repeat(100_000))).await.unwrap();
    let path = store.artifacts().local_path(entry.sha256).unwrap();
    let whole = fs::read(&path).unwrap();
    let mut changed = whole.clone();
    changed[5] = b'y';
    for damaged in [&changed[..], &whole[..50_000]] {
        fs::write(&path, damaged).unwrap();
        let mut content = store.splice(&[("a", "a_1")]).await.unwrap().content;
        let error = content.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("recorded result {} is damaged: record it again", entry.sha256)
        );
    }
    let mut content = store.content("a_1").await.unwrap();
    fs::remove_file(&path).unwrap();
    let error = content.read_to_end(&mut Vec::new()).unwrap_err().to_string();
    assert!(!error.contains(folder.path().to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_document_is_read_in_pieces_of_any_size() {
    let (_folder, store) = local();
    for number in 0..20 {
        store.record("a", &json!("x".repeat(number * 7))).await.unwrap();
    }
    let names: Vec<_> = store
        .aliases()
        .into_iter()
        .map(|alias| (alias.clone(), alias))
        .collect();
    let whole = read(store.splice(&names).await.unwrap().content);
    for size in [1, 2, 3, 7, 1024] {
        let mut content = store.splice(&names).await.unwrap().content;
        let (mut pieces, mut buffer) = (Vec::new(), vec![0; size]);
        loop {
            let read = content.read(&mut buffer).unwrap();
            if read == 0 {
                break;
            }
            pieces.extend_from_slice(&buffer[..read]);
            assert_eq!(content.len(), (whole.len() - pieces.len()) as u64);
        }
        assert!(pieces == whole, "{size}");
        assert!(content.is_empty());
    }
}
