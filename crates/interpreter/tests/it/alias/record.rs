//! Aliases and what is kept under them.

use std::error::Error;
use std::io::Write;

use cellblock_artifact::{ArtifactId, Kind};
use cellblock_interpreter::alias::AliasError;
use cellblock_interpreter::input::InputFormat;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{file, in_memory, local, read};

#[tokio::test]
async fn results_of_a_tool_are_numbered_and_kept_byte_for_byte() {
    let (_folder, store) = local();
    let first = store.record("get_price", &json!({"price": 1})).await.unwrap();
    let second = store.record_json("get_price", " [1, 2.50]\n").await.unwrap();
    let other = store.record("get.flows", &json!(null)).await.unwrap();
    assert_eq!(store.aliases(), ["get_price_1", "get_price_2", "get_flows_1"]);
    assert_eq!((first.bytes, second.bytes, other.bytes), (11, 11, 4));
    assert_eq!(first.sha256, ArtifactId::of(br#"{"price":1}"#));
    assert_eq!(
        (first.tool.as_str(), first.format),
        ("get_price", InputFormat::Value)
    );
    let content = store.content("get_price_2").await.unwrap();
    assert_eq!(content.len(), 11);
    assert_eq!(read(content), b" [1, 2.50]\n");
    let mut reader = store.reader("get_flows_1").await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), "null");
    assert_eq!(reader.next().await.unwrap(), None);
    let metadata = store.artifacts().metadata(first.sha256).await.unwrap();
    assert_eq!(
        (metadata.kind, metadata.media_type.as_str()),
        (Kind::Result, "application/json")
    );
    assert_eq!(metadata.origins[0].name.as_deref(), Some("get_price_1"));
}

#[tokio::test]
async fn tools_whose_names_clean_to_the_same_share_their_numbers() {
    let store = in_memory();
    for tool in ["get price", "get.price", "get__price"] {
        store.record(tool, &json!(tool)).await.unwrap();
    }
    assert_eq!(store.aliases(), ["get_price_1", "get_price_2", "get_price_3"]);
}

#[tokio::test]
async fn numbers_follow_the_calls_whichever_finishes_first_and_are_never_used_again() {
    let store = in_memory();
    let first = store.record("tool", &json!(1));
    let failing = store.record_json("tool", "{");
    let dropped = store.record("tool", &json!(3));
    let last = store.record("tool", &json!(4));
    drop(dropped);
    assert_eq!(last.await.unwrap().alias, "tool_4");
    assert!(failing.await.is_err());
    assert_eq!(store.aliases(), ["tool_4"]);
    assert_eq!(first.await.unwrap().alias, "tool_1");
    assert_eq!(store.record("tool", &json!(5)).await.unwrap().alias, "tool_5");
    assert_eq!(store.aliases(), ["tool_1", "tool_4", "tool_5"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_results_get_distinct_aliases_in_the_order_of_the_calls() {
    let (_folder, store) = local();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=100_usize {
        let size = (100 - number) * 500;
        let recording = store.record("tool", &json!([number, "x".repeat(size)]));
        tasks.spawn(async move { (number, recording.await.unwrap().alias.clone()) });
    }
    for (number, alias) in tasks.join_all().await {
        assert_eq!(alias, format!("tool_{number}"));
    }
    let expected: Vec<_> = (1..=100).map(|number| format!("tool_{number}")).collect();
    assert_eq!(store.aliases(), expected);
}

#[tokio::test]
async fn equal_results_are_stored_once() {
    let (_folder, store) = local();
    let first = store.record("a", &json!([1])).await.unwrap();
    let second = store.record("b", &json!([1])).await.unwrap();
    assert_eq!(first.sha256, second.sha256);
    assert_eq!(store.artifacts().list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_is_recorded_from_its_first_byte() {
    let (_folder, store) = local();
    let rows = format!("[{}0]", "123456789,".repeat(300_000));
    let mut source = file(&rows);
    source.write_all(b"").unwrap();
    let recorded = store.record_file("rows", source).await.unwrap();
    assert_eq!(recorded.bytes, rows.len() as u64);
    assert_eq!(recorded.shape.count, Some(300_001));
    assert!(read(store.content("rows_1").await.unwrap()) == rows.as_bytes());
    let text = store.record_json("rows", rows).await.unwrap();
    assert_eq!((&text.shape, text.sha256), (&recorded.shape, recorded.sha256));
}

#[tokio::test]
async fn invalid_json_is_rejected_by_name_and_not_kept() {
    let store = in_memory();
    let deep = "[".repeat(200) + &"]".repeat(200);
    for text in [
        "",
        "{",
        "[1,]",
        "NaN",
        "[1] 2",
        "\"\u{1}\"",
        "'a'",
        "\u{feff}1",
        "1e999",
        &deep,
    ] {
        let error = store.record_json("tool", text.to_owned()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not record the result of `tool`: it is not a JSON document; values nested deeper than \
             127 levels, NaN and infinities are none",
            "{text}"
        );
        assert_eq!(error.code(), Some("unreadable_result"));
        assert!(error.source().is_some());
        let error = store.record_file("tool", file(text)).await.unwrap_err();
        assert!(matches!(error, AliasError::Json { .. }), "{text}: {error}");
    }
    let error = store.record_json("tool", &b"\"\xff\""[..]).await.unwrap_err();
    assert!(matches!(error, AliasError::Json { .. }), "{error}");
    assert_eq!(store.artifacts().list().await.unwrap(), []);
    assert!(store.entries().is_empty());
}

#[tokio::test]
async fn the_error_for_an_unknown_alias_lists_the_known_ones() {
    let store = in_memory();
    let error = store.entry("x\x1b[31m").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no result is recorded as `x\\u{1b}[31m`; none is recorded yet"
    );
    for number in 0..25 {
        store.record("tool", &json!(number)).await.unwrap();
    }
    let error = store.content("nothing").await.unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with(
            "no result is recorded as `nothing`; recorded are 5 earlier ones and tool_6, tool_7,"
        ),
        "{told}"
    );
    let rejection = error.into_rejection("inputAliases[0]").unwrap();
    assert_eq!(
        (rejection.code.as_str(), rejection.valid.len()),
        ("unknown_alias", 25)
    );
    assert_eq!(rejection.field.as_deref(), Some("inputAliases[0]"));
}

#[tokio::test]
async fn a_named_result_keeps_its_name_and_takes_no_others() {
    let store = in_memory();
    let named = store
        .insert_named("tool_2", file("[1]"), InputFormat::Value)
        .await
        .unwrap();
    assert_eq!((named.alias.as_str(), named.tool.as_str()), ("tool_2", "tool_2"));
    store.record("tool", &json!(1)).await.unwrap();
    assert_eq!(store.record("tool", &json!(3)).await.unwrap().alias, "tool_3");
    for (name, told) in [
        (
            "tool_3",
            "`tool_3` is the alias of another result; use a name such as `sales_2024`",
        ),
        ("print", "`print` is a builtin of Python;"),
        ("lambda", "`lambda` is a keyword of Python;"),
        ("set_result", "`set_result` is a library or a helper in cells;"),
        ("../x", "`../x` is not a valid Python identifier;"),
    ] {
        let error = store
            .insert_named(name, file("1"), InputFormat::Value)
            .await
            .unwrap_err();
        assert!(error.to_string().starts_with(told), "{error}");
        assert_eq!(error.code(), Some("invalid_name"));
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_value_is_read_back_equal(recorded in prop::collection::vec((any::<String>(), values()), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = in_memory();
            let mut names = Vec::new();
            for (index, (tool, value)) in recorded.iter().enumerate() {
                let entry = store.record(tool, value).await.unwrap();
                names.push((format!("name_{index}"), entry.alias.clone()));
            }
            let splice = store.splice(&names).await.unwrap();
            let document = read(splice.content);
            let parsed: Value = serde_json::from_slice(&document).unwrap();
            prop_assert_eq!(parsed.as_object().unwrap().len(), recorded.len());
            for (span, (_, value)) in splice.spans.iter().zip(&recorded) {
                let at = usize::try_from(span.offset).unwrap();
                let bytes = &document[at..at + usize::try_from(span.length).unwrap()];
                prop_assert_eq!(bytes, serde_json::to_vec(value).unwrap());
                prop_assert_eq!(&parsed[&span.name].to_string(),
                    &serde_json::from_slice::<Value>(bytes).unwrap().to_string());
            }
            Ok(())
        })?;
    }
}
