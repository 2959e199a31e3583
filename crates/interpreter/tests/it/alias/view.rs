//! View that a model rereads: within a budget, and never without the alias.

use cellblock_interpreter::alias::{AliasStore, Level};
use cellblock_interpreter::input::InputFormat;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{file, in_memory};

fn rows(count: usize) -> Value {
    let row = |n| {
        json!({"price": if n == 2 { Value::Null } else { json!(n) },
        "time": format!("2024-01-{n:02}"), "venue": "a"})
    };
    (1..=count).map(row).collect()
}

#[tokio::test]
async fn a_small_value_is_shown_whole() {
    let store = in_memory();
    store.record("price", &json!({"usd": 1.5})).await.unwrap();
    store
        .insert_named("pretty", file("{\n  \"a\": 1\n}"), InputFormat::Value)
        .await
        .unwrap();
    assert_eq!(
        store.model_view("price_1", 100).unwrap(),
        "price_1: object, 1 key, 11 bytes\n  value: {\"usd\":1.5}"
    );
    assert_eq!(
        store.model_view("pretty", 100).unwrap(),
        "pretty: object, 1 key, 12 bytes\n  value: {\n  \"a\": 1\n}"
    );
}

#[tokio::test]
async fn a_large_value_is_shown_by_its_keys_types_nulls_and_first_and_last_values() {
    let store = in_memory();
    store
        .record("rows", &json!({"data": rows(99), "ok": true}))
        .await
        .unwrap();
    assert_eq!(
        store.model_view("rows_1", 1000).unwrap(),
        "rows_1: object, 2 keys, 4469 bytes\n  \
           data: array of up to 99; [99 items]\n  \
           data[].price: integer, 1 null; first 1, last 99\n  \
           data[].time: string; first \"2024-01-01\", last \"2024-01-99\"\n  \
           data[].venue: string; \"a\"\n  \
           ok: boolean; true"
    );
}

#[tokio::test]
async fn less_budget_shows_less_and_always_the_alias() {
    let store = in_memory();
    store.record("rows", &rows(99)).await.unwrap();
    let line = "rows_1: table, 99 rows × 3 columns, 4450 bytes";
    for (tokens, text) in [
        (0, "rows_1".to_owned()),
        (10, "rows_1".to_owned()),
        (12, line.to_owned()),
        (20, format!("{line}\n  price: integer\n  … 2 more lines")),
        (
            25,
            format!("{line}\n  price: integer\n  time: string\n  venue: string"),
        ),
        (
            31,
            format!("{line}\n  price: integer, 1 null; first 1, last 99\n  time: string\n  venue: string"),
        ),
    ] {
        assert_eq!(store.model_view("rows_1", tokens).unwrap(), text, "{tokens}");
    }
}

#[tokio::test]
async fn hostile_text_is_made_visible_and_cut() {
    let store = in_memory();
    let long = "x".repeat(5000);
    let key = "k\u{1b}[2J\u{202e}".repeat(12);
    store
        .record("evil", &json!({key: "\u{1b}]0;t\u{7}\n\r\u{202e}", "long": long}))
        .await
        .unwrap();
    store.record("small", &json!("\u{202e}\u{1b}")).await.unwrap();
    let shown = store.model_view("evil_1", 10_000).unwrap() + &store.model_view("small_1", 10_000).unwrap();
    assert!(
        shown
            .chars()
            .all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}')),
        "{shown:?}"
    );
    assert!(shown.chars().count() < 1000, "{shown}");
    assert!(shown.contains("…"));
}

#[tokio::test]
async fn an_unknown_alias_has_no_view() {
    let error = in_memory().model_view("x", 10).unwrap_err();
    assert_eq!(error.code(), Some("unknown_alias"));
}

#[tokio::test]
async fn newer_results_are_shown_at_greater_length() {
    let store = in_memory();
    for _ in 0..5 {
        store.record("rows", &rows(99)).await.unwrap();
    }
    let levels = |tokens| {
        store
            .model_views(tokens)
            .iter()
            .map(|view| view.level)
            .collect::<Vec<_>>()
    };
    assert_eq!(levels(0), [Level::Reference; 5]);
    assert_eq!(levels(10_000), [Level::Full; 5]);
    assert_eq!(
        levels(50),
        [
            Level::Reference,
            Level::Reference,
            Level::Reference,
            Level::Line,
            Level::Full
        ]
    );
    assert_eq!(
        levels(120),
        [Level::Line, Level::Line, Level::Shape, Level::Full, Level::Full]
    );
}

async fn recorded(values: &[(u8, usize)]) -> AliasStore {
    let store = in_memory();
    for (kind, size) in values {
        let value = match kind % 4 {
            0 => rows(*size),
            1 => json!({"data": rows(*size), "text": "é".repeat(*size)}),
            2 => json!("y".repeat(*size * 10)),
            _ => (0..*size).map(|n| json!([n, null, {"deep": [n]}])).collect(),
        };
        store
            .record(&format!("tool{}", "_long".repeat(usize::from(*kind) % 3)), &value)
            .await
            .unwrap();
    }
    store
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn views_fit_name_every_alias_and_only_grow_with_the_budget(
        values in prop::collection::vec((any::<u8>(), 0_usize..60), 0..12),
        mut budgets in prop::collection::vec(0_usize..1500, 2..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = runtime.block_on(recorded(&values));
        budgets.sort_unstable();
        let aliases = store.aliases();
        let least = aliases.join("\n").chars().count();
        let mut before: Vec<(Level, usize)> = Vec::new();
        for tokens in budgets {
            let views = store.model_views(tokens);
            let shown: Vec<_> = views.iter().map(|view| view.alias.clone()).collect();
            prop_assert_eq!(&shown, &aliases);
            let texts: Vec<_> = views.iter().map(|view| view.text.as_str()).collect();
            let spent = texts.join("\n").chars().count();
            prop_assert!(spent <= (tokens * 4).max(least), "{} of {}", spent, tokens * 4);
            let now: Vec<_> = views.iter().map(|view| (view.level, view.text.chars().count())).collect();
            for (view, (was, is)) in views.iter().zip(before.iter().zip(&now)) {
                prop_assert!(was.0 <= is.0 && was.1 <= is.1, "{} shrank", view.alias);
            }
            before = now;
            for view in &views {
                prop_assert!(view.text.starts_with(&view.alias));
                let single = store.model_view(&view.alias, tokens).unwrap();
                prop_assert!(single.starts_with(&view.alias));
                prop_assert!(single.chars().count() <= (tokens * 4).max(view.alias.len()));
                // Alone it has the whole budget.
                prop_assert!(single.chars().count() >= view.text.chars().count());
            }
        }
    }
}
