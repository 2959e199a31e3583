//! Rows from untrusted bytes.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{ChartProblem, ColumnKind};

fn problems(json: &str) -> Vec<ChartProblem> {
    Rows::parse(json.as_bytes()).unwrap_err().problems
}

fn only(json: &str) -> ChartProblem {
    let [problem] = <[ChartProblem; 1]>::try_from(problems(json)).unwrap();
    problem
}

#[test]
fn flat_rows_are_kept_as_they_are() {
    let text = r#"[{"day":"2024-01-01","n":1},{"day":null,"n":2.5},{}]"#;
    let rows = Rows::parse(text.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&rows).unwrap(), text);
    assert_eq!(
        Rows::from_value(&serde_json::from_str(text).unwrap(), "data").unwrap(),
        rows
    );
    assert_eq!(Rows::parse(b"[]").unwrap().len(), 0);
}

#[test]
fn each_wrong_value_is_reported_once_with_its_key_and_first_row() {
    let found = problems(r#"[{"a":1,"b":[1]},{"a":true,"b":{}},{"a":false,"b":2},7]"#);
    let found: Vec<_> = found.iter().map(|it| (it.code, it.field.as_str())).collect();
    assert_eq!(
        found,
        [
            (code::DATA_MALFORMED, "data[0].b"),
            (code::DATA_MALFORMED, "data[1].a"),
            (code::DATA_MALFORMED, "data[3]"),
        ]
    );
    let nested = only(r#"[{"a":{"b":{"c":[]}}}]"#);
    assert!(nested.message.contains("flatten"), "{nested}");
}

#[test]
fn data_that_is_not_an_array_of_objects_is_reported_with_its_location() {
    for text in [
        "",
        "{}",
        "7",
        "[",
        "[{]",
        "[] x",
        "[{\"a\":NaN}]",
        "[{\"a\":1e999}]",
        "\u{0}",
    ] {
        let problem = only(text);
        assert_eq!(
            (problem.code, problem.field.as_str()),
            (code::DATA_MALFORMED, "data"),
            "{text}"
        );
        assert!(problem.message.contains("line 1, column"), "{problem}");
    }
    assert_eq!(only("[7]").field, "data[0]");
}

#[test]
fn rows_over_the_limit_are_rejected_and_counted() {
    let rows = |count: usize| json!(vec![json!({ "a": 1 }); count]).to_string();
    assert_eq!(Rows::parse(rows(MAX_ROWS).as_bytes()).unwrap().len(), 5000);
    let problem = only(&rows(MAX_ROWS + 2));
    assert_eq!(problem.code, code::ROW_COUNT_TRUNCATION);
    assert!(
        problem.message.contains("5002 rows are over the limit of 5000"),
        "{problem}"
    );
    assert!(
        problem
            .message
            .contains("aggregate or sample to at most 5000 rows"),
        "{problem}"
    );
}

#[test]
fn bytes_keys_and_texts_have_limits() {
    let large = only(&" ".repeat(MAX_BYTES + 1));
    assert_eq!(large.code, code::TOO_LARGE);
    assert!(large.message.contains("4194305 bytes"), "{large}");

    let keys = |count: usize| {
        let row: serde_json::Map<_, _> = (0..count).map(|at| (format!("k{at}"), json!(at))).collect();
        json!([row]).to_string()
    };
    assert_eq!(Rows::parse(keys(64).as_bytes()).unwrap().summary().keys.len(), 64);
    assert!(only(&keys(65)).message.contains("more than 64 different keys"));

    let text = |length: usize| json!([{ "a": "é".repeat(length) }]).to_string();
    assert!(Rows::parse(text(1000).as_bytes()).is_ok());
    let long = only(&text(1001));
    assert_eq!((long.code, long.field.as_str()), (code::TOO_LARGE, "data[0].a"));
}

#[test]
fn a_key_with_control_characters_is_rejected_and_escaped() {
    for key in ["", "a\nb", "\u{202e}x", &"k".repeat(101)] {
        let problem = only(&json!([{ key: 1 }]).to_string());
        assert_eq!(
            (problem.code, problem.field.as_str()),
            (code::DATA_MALFORMED, "data[0]")
        );
        assert!(!problem.to_string().chars().any(acts), "{problem}");
    }
}

#[test]
fn the_summary_contains_kinds_nulls_and_ranges() {
    let text = r#"[{"n":1,"t":"2024-01-01","s":"x","m":1,"z":null},{"n":-2.5,"t":"2024","s":"2024","m":"y"},{"t":null}]"#;
    let columns = Rows::parse(text.as_bytes()).unwrap().summary();
    assert_eq!(columns.rows, 3);
    let told: Vec<_> = columns
        .keys
        .iter()
        .map(|(key, it)| (key.as_str(), it.kind, it.nulls, it.distinct.unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("m", ColumnKind::Mixed, 1, 2),
            ("n", ColumnKind::Number, 1, 2),
            ("s", ColumnKind::Text, 1, 2),
            ("t", ColumnKind::Time, 1, 2),
            ("z", ColumnKind::Null, 3, 0),
        ]
    );
    assert_eq!(
        (columns.keys["n"].min, columns.keys["n"].max),
        (Some(-2.5), Some(1.0))
    );
    assert_eq!(columns.keys["s"].sample.as_deref(), Some("x"));
}

#[test]
fn a_summary_with_only_kinds_and_nulls_can_be_read() {
    let text = r#"{"rows":120,"keys":{"date":{"kind":"time","nulls":3},"v":{"kind":"number"}}}"#;
    let columns: Columns = serde_json::from_str(text).unwrap();
    assert_eq!(
        (columns.rows, columns.keys["date"].nulls, columns.keys["v"].nulls),
        (120, 3, 0)
    );
    assert_eq!(columns.keys["v"].kind, ColumnKind::Number);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Rows::parse(&bytes);
    }

    #[test]
    fn rows_that_were_read_round_trip(
        rows in proptest::collection::vec(
            proptest::collection::btree_map("[a-c]", prop_oneof![
                Just(json!(null)), any::<i64>().prop_map(|it| json!(it)),
                (-1e300..1e300).prop_map(|it: f64| json!(it)),
                "[ -~]{0,5}".prop_map(|it| json!(it)),
            ], 0..3),
            0..5,
        )
    ) {
        let text = json!(rows).to_string();
        let read = Rows::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
