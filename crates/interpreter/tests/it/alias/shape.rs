//! Description of a result without its values.

use std::fmt::Write;

use cellblock_interpreter::alias::{Shape, ShapeKind};
use serde_json::{Value, json};

use super::in_memory;

async fn shape_of(value: &Value) -> Shape {
    in_memory().record("tool", value).await.unwrap().shape.clone()
}

#[tokio::test]
async fn rows_are_a_table_with_types_nulls_and_the_first_and_last_values() {
    let rows = json!([
        {"price": 1, "tags": ["a", "b"], "time": "2024-01-01"},
        {"price": null, "time": "2024-01-02"},
        {"price": 2.5, "tags": [], "time": "2024-01-03"},
    ]);
    let shape = shape_of(&rows).await;
    assert_eq!(
        (shape.kind, shape.count, shape.unlisted),
        (ShapeKind::Table, Some(3), 0)
    );
    let columns: Vec<_> = shape
        .columns
        .iter()
        .map(|column| {
            let types = column.types.join("|");
            let (first, last) = (column.first.as_deref().unwrap(), column.last.as_deref().unwrap());
            (
                column.name.as_str(),
                types,
                column.nulls,
                column.missing,
                first,
                last,
            )
        })
        .collect();
    // The order of keys is that of the document.
    assert_eq!(
        columns,
        [
            ("price", "integer|number".to_owned(), Some(1), 0, "1", "2.5"),
            ("tags", "array".to_owned(), Some(0), 1, "[2 items]", "[0 items]"),
            (
                "time",
                "string".to_owned(),
                Some(0),
                0,
                "\"2024-01-01\"",
                "\"2024-01-03\""
            ),
        ]
    );
    let tags = shape.columns[1].inner.as_deref().unwrap();
    assert_eq!((tags.kind, tags.count), (ShapeKind::Array, Some(2)));
    assert_eq!(tags.columns[0].types, ["string"]);
}

#[tokio::test]
async fn rows_below_a_key_are_described_too() {
    let shape = shape_of(&json!({"data": [{"x": 1}, {"x": 2}], "ok": true})).await;
    assert_eq!((shape.kind, shape.count), (ShapeKind::Object, Some(2)));
    let rows = shape.columns[0].inner.as_deref().unwrap();
    assert_eq!((rows.kind, rows.count), (ShapeKind::Table, Some(2)));
    assert_eq!(rows.columns[0].name, "x");
    assert_eq!(shape.columns[1].types, ["boolean"]);
}

#[tokio::test]
async fn other_values_are_arrays_objects_and_scalars() {
    for (value, kind, count, sample) in [
        (json!([1, "a", null]), ShapeKind::Array, Some(3), None),
        (json!([]), ShapeKind::Array, Some(0), None),
        (json!([[1], [2]]), ShapeKind::Array, Some(2), None),
        (json!({}), ShapeKind::Object, Some(0), None),
        (json!(null), ShapeKind::Scalar, None, Some("null")),
        (json!(-3), ShapeKind::Scalar, None, Some("-3")),
        (json!(1.0), ShapeKind::Scalar, None, Some("1.0")),
        (json!("a\u{1b}"), ShapeKind::Scalar, None, Some("\"a\\u001b\"")),
    ] {
        let shape = shape_of(&value).await;
        assert_eq!(
            (shape.kind, shape.count, shape.sample.as_deref()),
            (kind, count, sample),
            "{value}"
        );
    }
}

#[tokio::test]
async fn a_shape_stays_small_whatever_the_result_is() {
    let mut wide = String::from("[");
    for row in 0..200 {
        let _ = write!(wide, "{}{{", if row > 0 { "," } else { "" });
        for key in 0..200 {
            let _ = write!(
                wide,
                "{}\"k{row}_{key}\":[{{\"a\":{{\"b\":[[1]]}}}}]",
                if key > 0 { "," } else { "" }
            );
        }
        wide.push('}');
    }
    wide.push(']');
    let store = in_memory();
    let shape = store.record_json("wide", wide).await.unwrap().shape.clone();
    assert_eq!(shape.columns.len(), 64);
    assert_eq!(shape.unlisted, 200 * 200 - 64);
    let json = serde_json::to_string(&shape).unwrap();
    assert!(json.len() < 300_000, "{}", json.len());
    let deep = "[".repeat(120) + &"]".repeat(120);
    let long = format!("{{\"{}\": \"{}\"}}", "k".repeat(10_000), "é".repeat(10_000));
    for text in [deep, long] {
        let shape = store.record_json("odd", text).await.unwrap().shape.clone();
        assert!(serde_json::to_string(&shape).unwrap().len() < 2_000);
    }
}
