//! Properties that are not visible in a picture: stacking, and that nothing of the rows becomes
//! code.

use serde_json::{Value, json};

use crate::{CheckedChart, Rows};

fn vega(spec: &Value, rows: &Value) -> Value {
    let rows = Rows::parse(rows.to_string().as_bytes()).unwrap();
    CheckedChart::new(spec, rows, Some("T".into()), Some("A".into()))
        .unwrap()
        .vega_lite()
}

#[test]
fn stacks_grow_from_zero_both_ways_for_each_place() {
    let rows = json!([{ "x": "p", "a": 2, "b": -1, "c": 3, "d": -4 },
        { "x": "q", "a": null, "b": 1, "c": 1, "d": 1 }]);
    let series = json!([{ "key": "a" }, { "key": "b" }, { "key": "c" }, { "key": "d" }]);
    let drawn = vega(
        &json!({ "type": "bar", "xKey": "x", "series": series, "stacked": true }),
        &rows,
    );
    let stacked: Vec<_> = drawn["data"]["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["from"], it["to"]]))
        .collect();
    assert_eq!(
        json!(stacked),
        json!([
            [0.0, 2.0],
            [0.0, -1.0],
            [2.0, 5.0],
            [-1.0, -5.0],
            [0.0, null],
            [0.0, 1.0],
            [1.0, 2.0],
            [2.0, 3.0]
        ])
    );
}

#[test]
fn no_key_or_name_of_the_rows_is_part_of_an_expression_or_a_path() {
    let key = "a'];alert(1)//.b[0]\\";
    let rows = json!([{ key: "2024-01-01", "v": 1 }, { key: "2024-01-02", "v": 2 }]);
    let spec = json!({ "type": "line", "xKey": key, "series": [{ "key": "v", "label": "l'+alert(2)+'" }],
        "yAxis": { "format": "compact" } });
    let drawn = vega(&spec, &rows);
    let mut places = Vec::new();
    texts(&drawn, "", &mut places);
    let hostile = places.iter().filter(|(_, text)| text.contains("alert"));
    for (at, _) in hostile {
        assert!(
            at.rsplit('.').next() == Some("title")
                || at.rsplit('.').next() == Some("series")
                || at.contains(".domain")
                || at.contains(".oneOf"),
            "{at}"
        );
    }
}

fn texts(value: &Value, at: &str, into: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => into.push((at.to_owned(), text.clone())),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(n, it)| texts(it, &format!("{at}[{n}]"), into)),
        Value::Object(map) => map
            .iter()
            .for_each(|(key, it)| texts(it, &format!("{at}.{key}"), into)),
        _ => {}
    }
}

#[test]
fn title_and_text_alternative_are_kept() {
    let drawn = vega(&json!({ "type": "histogram", "xKey": "v" }), &json!([{ "v": 1 }]));
    assert_eq!(
        (&drawn["title"]["text"], &drawn["description"]),
        (&json!(["T"]), &json!("A"))
    );
}

#[test]
fn a_brush_zooms_where_the_axis_is_to_scale() {
    let rows = json!([{ "x": 1, "v": 1 }, { "x": 2, "v": 2 }]);
    let brush = |kind: &str| {
        let spec = json!({
            "type": "bar", "xKey": "x", "yKey": "v", "brush": true, "xAxis": { "type": kind },
            "referenceAreas": [{ "y1": 1 }],
        });
        vega(&spec, &rows)["layer"][1]["params"].clone()
    };
    let select = json!({ "type": "interval", "encodings": ["x"] });
    assert_eq!(
        brush("number"),
        json!([{ "name": "brush", "select": select, "bind": "scales" }])
    );
    assert_eq!(brush("category"), json!([{ "name": "brush", "select": select }]));
}

/// Returns the marks of a view from bottom to top, each with the side of its y axis.
fn marks(view: &Value, into: &mut Vec<String>) {
    if let Some(mark) = view["mark"]["type"].as_str() {
        let title = view["encoding"]["y"]["title"].as_str().unwrap_or_default();
        into.push(format!("{mark} {title}"));
    }
    for layer in view["layer"].as_array().into_iter().flatten() {
        marks(layer, into);
    }
}

#[test]
fn lines_are_above_bars_on_any_axes() {
    let rows = json!([{ "x": "2024-01-01", "a": 1, "b": 20 }, { "x": "2024-01-02", "a": 2, "b": 30 }]);
    let drawn = |line: &str, bars: &str| {
        let series = json!([{ "key": "a", "type": "line", "yAxis": line },
            { "key": "b", "type": "bar", "yAxis": bars }]);
        let spec = json!({ "type": "composed", "xKey": "x", "series": series });
        let mut found = Vec::new();
        marks(&vega(&spec, &rows), &mut found);
        found
    };
    assert_eq!(drawn("left", "right"), ["rect b", "line a"]);
    assert_eq!(drawn("right", "left"), ["rect b", "line a"]);
}

#[test]
fn an_axis_drawn_in_two_parts_has_one_range_and_is_shown_once() {
    let rows = json!([{ "x": "p", "a": 50, "b": 20, "c": 7 }, { "x": "q", "a": 60, "b": 30, "c": 8 }]);
    let series = json!([
        { "key": "a", "type": "line" }, { "key": "b", "type": "bar" },
        { "key": "c", "type": "bar", "yAxis": "right" },
    ]);
    let spec = json!({
        "type": "composed", "xKey": "x", "xAxis": { "type": "category" }, "series": series,
        "referenceLines": [{ "y": 75 }],
    });
    let drawn = vega(&spec, &rows);
    let mut found = Vec::new();
    marks(&drawn, &mut found);
    assert_eq!(found[..2], ["bar ", "bar c"]);
    assert_eq!(found[2], "line ");
    let of = |at: usize| drawn["layer"][at]["layer"][0]["encoding"]["y"].clone();
    let range = json!({ "domain": [0.0, 80.0], "nice": false });
    assert_eq!((&of(0)["scale"], &of(2)["scale"]), (&range, &range));
    assert!(of(0)["axis"].is_object() && of(2)["axis"].is_null());
    assert_eq!(of(1)["scale"], json!({ "domain": [0.0, 8.0], "nice": false }));
    assert_eq!(
        (&of(0)["axis"]["grid"], &of(1)["axis"]["grid"]),
        (&json!(true), &json!(false))
    );
}

#[test]
fn an_axis_of_many_times_names_the_year() {
    let rows: Value = (1..=28)
        .map(|day| json!({ "x": format!("2024-02-{day:02}"), "v": day }))
        .collect();
    let drawn = vega(&json!({ "type": "line", "xKey": "x", "yKey": "v" }), &rows);
    let label = drawn["layer"][0]["encoding"]["x"]["axis"]["labelExpr"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(label.contains("\"2024\""), "{label}");
}
