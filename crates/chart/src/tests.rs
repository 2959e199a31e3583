//! Accepted charts, and the errors of others.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;

mod anything;

fn rows() -> Value {
    json!([
        { "day": "2024-01-01", "name": "a", "n": 1, "m": 10.5, "none": null, "e": -1,
            "ts": 1_704_067_200, "year": 2023 },
        { "day": "2024-01-02", "name": "b", "n": 2, "m": 20, "none": null, "e": 1, "ts": 1_704_153_600,
            "year": 2024 },
        { "day": "2024-01-03", "name": "c", "n": null, "m": 30, "none": null, "e": 1,
            "ts": 1_704_240_000, "year": 2025 },
    ])
}

fn parsed(rows: &Value) -> Rows {
    Rows::parse(rows.to_string().as_bytes()).unwrap()
}

fn made(spec: &Value) -> Result<CheckedChart, ChartError> {
    CheckedChart::new(spec, parsed(&rows()), None, None)
}

/// Returns a line chart over days with some keys added or changed.
fn line(more: &Value) -> Value {
    let mut spec = json!({ "type": "line", "xKey": "day", "series": [{ "key": "n" }] });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

fn found(spec: &Value) -> Vec<(&'static str, String)> {
    let problems = made(spec).err().map(|error| error.problems).unwrap_or_default();
    problems.into_iter().map(|it| (it.code, it.field)).collect()
}

#[track_caller]
fn refused(spec: &Value, code: &'static str, field: &str) -> ChartProblem {
    assert_eq!(found(spec), [(code, field.to_owned())], "{spec}");
    made(spec).unwrap_err().problems.remove(0)
}

#[test]
fn a_valid_chart_is_normalized() {
    let chart = made(&json!({ "type": "line", "xKey": "day", "yKey": "n",
            "yAxis": { "format": "percent", "valueScale": null } }));
    // Two is either 2 % or 200 %.
    assert_eq!(chart.unwrap_err().problems[0].field, "yAxis.valueScale");
    let chart =
        made(&json!({ "type": "line", "xKey": "day", "yKey": "n", "stacked": false, "legend": false }))
            .unwrap();
    assert_eq!(
        json!(chart.spec),
        json!({ "type": "line", "xKey": "day", "series": [{ "key": "n" }], "xAxis": { "type": "time" },
            "legend": false })
    );
    assert_eq!(
        serde_json::from_value::<ChartSpec>(json!(chart.spec)).unwrap(),
        chart.spec
    );
}

#[test]
fn a_document_is_the_same_bytes_for_the_same_chart() {
    let spec = json!({ "xKey": "name", "type": "bar", "series": [{ "key": "n", "label": "N" }] });
    let rows = |text: &str| Rows::parse(text.as_bytes()).unwrap();
    let one = CheckedChart::new(&spec, rows(r#"[{"name":"a","n":1}]"#), Some("T".into()), None).unwrap();
    let other = CheckedChart::new(&spec, rows(r#"[ {"n":1, "name":"a"} ]"#), Some("T".into()), None).unwrap();
    let text = r#"{"kind":"chart","title":"T","alt":null,"spec":{"type":"bar","xKey":"name","series":[{"key":"n","label":"N"}],"xAxis":{"type":"category"}},"data":[{"n":1,"name":"a"}]}"#;
    assert_eq!(String::from_utf8(one.document()).unwrap(), text);
    assert_eq!(Sha256::digest(one.document()), Sha256::digest(other.document()));
}

#[test]
fn all_problems_are_reported_at_once() {
    let error = made(&json!({
        "type": "line", "x_key": "day", "xKey": "day",
        "series": [{ "key": "price" }, { "key": "name", "yAxis": "middle" }], "stacked": true,
    }))
    .unwrap_err();
    let text = error.to_string();
    assert_eq!(
        text,
        "chart was not accepted: 5 problems\n\
         - x_key: \"x_key\" is not a key here; write xKey [chart_unknown_key]; valid: type, xKey, yKey, \
         valueKey, series, expectedMeasures, xAxis, yAxis, yAxisRight, legend, stacked, brush, \
         referenceLines, referenceAreas, ohlc\n\
         - series[1].yAxis: \"middle\" is not valid; choose another [chart_invalid_value]; valid: left, \
         right\n\
         - stacked: means nothing in a line chart; leave it out (it is for bar and area, or composed of \
         such) [chart_meaningless_key]\n\
         - series[0].key: no row has the key \"price\"; name one that the rows have \
         [chart_unknown_column]; valid: day, e, m, n, name, none, ts, year\n\
         - series[1].key: the values of \"name\" are texts such as \"a\"; convert them to numbers, or \
         name another key [chart_not_numeric]; valid: e, m, n, ts, year"
    );
}

#[test]
fn more_than_ten_problems_are_counted() {
    let series: Vec<_> = (0..15).map(|at| json!({ "key": format!("k{at}") })).collect();
    let error = made(&line(&json!({ "series": series }))).unwrap_err();
    assert_eq!((error.problems.len(), error.more), (10, 5));
    assert!(error.to_string().ends_with("- and 5 more"), "{error}");
    let many: Vec<_> = (0..21).map(|_| json!({ "key": "n" })).collect();
    let error = made(&line(&json!({ "series": many }))).unwrap_err();
    assert_eq!(
        (error.problems[0].code, error.problems[0].field.as_str()),
        (code::TOO_LARGE, "series")
    );
}

#[test]
fn a_specification_has_the_form_that_is_documented() {
    refused(&json!(7), code::SPEC_MALFORMED, "spec");
    refused(&json!({}), code::MISSING_KEY, "type");
    refused(&line(&json!({ "": 1 })), code::UNKNOWN_KEY, "\"\"");
    let pie = refused(
        &json!({ "type": "pie", "xKey": "day" }),
        code::INVALID_VALUE,
        "type",
    );
    assert_eq!(pie.valid, ChartType::NAMES);
    refused(&line(&json!({ "series": {} })), code::SPEC_MALFORMED, "series");
    refused(&line(&json!({ "legend": "yes" })), code::SPEC_MALFORMED, "legend");
    refused(
        &line(&json!({ "xAxis": { "kind": "time" } })),
        code::UNKNOWN_KEY,
        "xAxis.kind",
    );
    refused(
        &line(&json!({ "series": [{ "key": "n", "colour": 1 }] })),
        code::UNKNOWN_KEY,
        "series[0].colour",
    );
    refused(
        &line(&json!({ "series": [{ "key": "n" }, {}] })),
        code::MISSING_KEY,
        "series[1].key",
    );
    refused(
        &line(&json!({ "yAxis": { "label": "x".repeat(101) } })),
        code::TOO_LARGE,
        "yAxis.label",
    );
    refused(
        &line(&json!({ "yAxis": { "label": "a\u{1b}[0m" } })),
        code::INVALID_VALUE,
        "yAxis.label",
    );
    refused(
        &line(&json!({ "referenceLines": [{ "y": 1, "color": "url(x)" }] })),
        code::INVALID_VALUE,
        "referenceLines[0].color",
    );
}

#[test]
fn each_type_needs_its_keys() {
    refused(
        &json!({ "type": "line", "series": [{ "key": "n" }] }),
        code::MISSING_KEY,
        "xKey",
    );
    refused(
        &json!({ "type": "bar", "xKey": "day" }),
        code::MISSING_KEY,
        "series",
    );
    refused(&json!({ "type": "histogram" }), code::MISSING_KEY, "xKey");
    refused(
        &json!({ "type": "heatmap", "xKey": "day", "yKey": "name" }),
        code::MISSING_KEY,
        "valueKey",
    );
    refused(
        &json!({ "type": "candlestick", "xKey": "day" }),
        code::MISSING_KEY,
        "ohlc",
    );
    refused(
        &json!({ "type": "candlestick", "xKey": "day",
            "ohlc": { "openKey": "n", "highKey": "n", "lowKey": "n" } }),
        code::MISSING_KEY,
        "ohlc.closeKey",
    );
    refused(
        &line(&json!({ "valueKey": "n" })),
        code::MEANINGLESS_KEY,
        "valueKey",
    );
    refused(&line(&json!({ "yKey": "n" })), code::MEANINGLESS_KEY, "yKey");
    refused(
        &line(&json!({ "stacked": true })),
        code::MEANINGLESS_KEY,
        "stacked",
    );
    let bar = refused(
        &line(&json!({ "series": [{ "key": "n", "type": "bar" }] })),
        code::INVALID_VALUE,
        "series[0].type",
    );
    assert!(bar.message.contains("composed"), "{bar}");
}

#[test]
fn series_must_exist_be_numeric_and_differ() {
    let series = |series: Value| line(&json!({ "series": series }));
    refused(
        &series(json!([{ "key": "x" }])),
        code::UNKNOWN_COLUMN,
        "series[0].key",
    );
    refused(
        &series(json!([{ "key": "day" }])),
        code::NOT_NUMERIC,
        "series[0].key",
    );
    refused(
        &series(json!([{ "key": "none" }])),
        code::EMPTY_SERIES,
        "series[0].key",
    );
    refused(
        &series(json!([{ "key": "n" }, { "key": "n", "label": "N" }])),
        code::DUPLICATE_SERIES,
        "series[1].key",
    );
    refused(
        &series(json!([{ "key": "n" }, { "key": "m", "label": "n" }])),
        code::DUPLICATE_SERIES,
        "series[1].label",
    );
    refused(
        &series(json!([{ "key": "n", "errorKey": "name" }])),
        code::NOT_NUMERIC,
        "series[0].errorKey",
    );
    refused(
        &series(json!([{ "key": "n", "errorKey": "e" }])),
        code::INVALID_VALUE,
        "series[0].errorKey",
    );
    refused(
        &line(&json!({ "yAxisRight": {} })),
        code::UNUSED_AXIS,
        "yAxisRight",
    );
    refused(&line(&json!({ "xKey": "date" })), code::UNKNOWN_COLUMN, "xKey");
}

#[test]
fn a_line_joins_names_only_if_they_are_declared_ordered() {
    let code = code::CATEGORICAL_RENDERED_AS_LINE;
    refused(&line(&json!({ "xKey": "name" })), code, "xAxis.type");
    refused(
        &line(&json!({ "xKey": "name", "xAxis": { "type": "time" } })),
        code,
        "xAxis.type",
    );
    refused(
        &line(&json!({ "xKey": "name", "type": "area" })),
        code,
        "xAxis.type",
    );
    assert!(made(&line(&json!({ "xKey": "name", "xAxis": { "type": "category" } }))).is_ok());
    assert!(made(&line(&json!({ "xKey": "name", "type": "bar" }))).is_ok());
}

#[test]
fn a_line_over_times_has_an_axis_of_times() {
    let code = code::TIME_SERIES_NO_DATE_AXIS;
    refused(
        &line(&json!({ "xAxis": { "type": "category" } })),
        code,
        "xAxis.type",
    );
    refused(&line(&json!({ "xKey": "ts" })), code, "xAxis.type");
    assert!(made(&line(&json!({ "xKey": "ts", "xAxis": { "type": "time" } }))).is_ok());
    assert!(made(&line(&json!({ "xKey": "ts", "xAxis": { "type": "number" } }))).is_ok());
    assert!(made(&line(&json!({ "xKey": "year" }))).is_ok());
    let mismatch = code::AXIS_TYPE_MISMATCH;
    let year = refused(
        &line(&json!({ "xKey": "year", "xAxis": { "type": "time" } })),
        mismatch,
        "xAxis.type",
    );
    assert!(year.message.contains("from 2023 to 2025"), "{year}");
    refused(
        &line(&json!({ "type": "bar", "xKey": "name", "xAxis": { "type": "time" } })),
        mismatch,
        "xAxis.type",
    );
    refused(
        &line(&json!({ "yAxis": { "type": "time" } })),
        mismatch,
        "yAxis.type",
    );
}

#[test]
fn expected_measures_need_a_series() {
    let code = code::SERIES_METRIC_MISMATCH;
    let spec = |satisfies: Value| {
        line(&json!({ "expectedMeasures": ["net flow"], "series": [{ "key": "n", "satisfies": satisfies }] }))
    };
    refused(&spec(json!(null)), code, "expectedMeasures[0]");
    assert!(made(&spec(json!("Net_Flow"))).is_ok());
    let other = spec(json!("price"));
    assert_eq!(
        found(&other),
        [
            (code, "series[0].satisfies".to_owned()),
            (code, "expectedMeasures[0]".to_owned())
        ]
    );
    assert!(made(&line(&json!({ "expectedMeasures": ["N"] }))).is_ok());
}

#[test]
fn ambiguous_percentages_need_a_scale() {
    let spec = |axis: Value| line(&json!({ "series": [{ "key": "m" }], "yAxis": axis }));
    let problem = refused(
        &spec(json!({ "format": "percent" })),
        code::MISSING_KEY,
        "yAxis.valueScale",
    );
    assert_eq!(problem.valid, ["fraction", "percent_points"]);
    assert!(
        made(&spec(
            json!({ "format": "percent", "valueScale": "percent_points" })
        ))
        .is_ok()
    );
    refused(
        &spec(json!({ "format": "number", "valueScale": "fraction" })),
        code::MEANINGLESS_KEY,
        "yAxis.valueScale",
    );
}

#[test]
fn no_row_is_left_out_silently() {
    let truncated = code::ROW_COUNT_TRUNCATION;
    let columns = Columns {
        rows: 5001,
        ..parsed(&rows()).summary()
    };
    let error = check(&line(&json!({})), &columns).unwrap_err();
    assert_eq!(
        (error.problems[1].code, error.problems[1].field.as_str()),
        (truncated, "data")
    );
    let nulls = parsed(&json!([{ "day": null, "n": 1 }, { "day": "2024-01-01", "n": 2 }]));
    let error = CheckedChart::new(&line(&json!({})), nulls, None, None).unwrap_err();
    assert_eq!(
        (error.problems[0].code, error.problems[0].field.as_str()),
        (truncated, "xKey")
    );
    let counted = parsed(&json!([{ "v": null }, { "v": 1 }]));
    assert!(CheckedChart::new(&json!({ "type": "histogram", "xKey": "v" }), counted, None, None).is_ok());
    let error = CheckedChart::new(&line(&json!({})), Rows::default(), None, None).unwrap_err();
    assert_eq!(error.problems.len(), 1);
    assert_eq!(error.problems[0].code, code::NO_ROWS);
}

#[test]
fn a_duplicate_series_is_reported_with_the_other_mistakes() {
    let twice = line(&json!({ "series": [{ "key": "n" }, { "key": "n" }] }));
    let error = CheckedChart::new(&twice, Rows::default(), None, None).unwrap_err();
    let found: Vec<_> = error.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(found, [code::DUPLICATE_SERIES, code::NO_ROWS]);
}

#[test]
fn the_number_of_values_is_bounded() {
    let series: Vec<_> = (0..9).map(|at| json!({ "key": format!("k{at}") })).collect();
    let keys: serde_json::Map<_, _> = (0..9)
        .map(|at| (format!("k{at}"), json!({ "kind": "number" })))
        .collect();
    let with = |rows: u64| {
        let mut keys = json!(keys);
        keys["day"] = json!({ "kind": "time" });
        let columns = serde_json::from_value(json!({ "rows": rows, "keys": keys })).unwrap();
        check(&line(&json!({ "series": series })), &columns)
    };
    assert!(with(4444).is_ok());
    let error = with(4445).unwrap_err();
    assert_eq!(
        (error.problems[0].code, error.problems[0].field.as_str()),
        (code::TOO_LARGE, "series")
    );
    assert!(
        error.problems[0]
            .message
            .contains("40005 values, over the limit of 40000"),
        "{error}"
    );
}

#[test]
fn rows_that_would_cover_each_other_are_rejected() {
    let long = json!([
        { "day": "2024-01-01", "who": "a", "n": 1 }, { "day": "2024-01-01", "who": "b", "n": 2 },
        { "day": "2024-01-02", "who": "a", "n": 3 },
    ]);
    let of = |spec: &Value, rows: &Value| {
        CheckedChart::new(spec, parsed(rows), None, None)
            .err()
            .map(|it| it.problems[0].code)
    };
    assert_eq!(of(&line(&json!({})), &long), Some(code::DUPLICATE_ROWS));
    assert_eq!(
        of(&json!({ "type": "scatter", "xKey": "day", "yKey": "n" }), &long),
        None
    );
    let zones = json!([{ "day": "2024-01-01T00:00Z", "n": 1 }, { "day": "2024-01-01 01:00+01:00", "n": 2 }]);
    assert_eq!(of(&line(&json!({})), &zones), Some(code::DUPLICATE_ROWS));
    let heat = json!({ "type": "heatmap", "xKey": "day", "yKey": "day", "valueKey": "n" });
    assert_eq!(of(&heat, &long), Some(code::DUPLICATE_ROWS));
}

#[test]
fn references_need_a_position_on_the_axis() {
    let line_at = |it: Value| line(&json!({ "referenceLines": [it] }));
    refused(&line_at(json!({})), code::MISSING_KEY, "referenceLines[0]");
    refused(
        &line_at(json!({ "x": "2024-01-01", "y": 1 })),
        code::INVALID_VALUE,
        "referenceLines[0]",
    );
    refused(
        &line_at(json!({ "x": "soon" })),
        code::INVALID_VALUE,
        "referenceLines[0].x",
    );
    refused(
        &line_at(json!({ "y": "1" })),
        code::SPEC_MALFORMED,
        "referenceLines[0].y",
    );
    refused(
        &line_at(json!({ "y": 1, "yAxis": "right" })),
        code::UNUSED_AXIS,
        "referenceLines[0].yAxis",
    );
    refused(
        &line(&json!({ "referenceAreas": [{ "label": "x" }] })),
        code::MISSING_KEY,
        "referenceAreas[0]",
    );
    let bars = json!({ "type": "bar", "xKey": "name", "yKey": "n", "referenceLines": [{ "x": "z" }] });
    assert_eq!(
        refused(&bars, code::INVALID_VALUE, "referenceLines[0].x").valid,
        ["a", "b", "c"]
    );
}

#[test]
fn a_specification_is_also_checked_without_rows() {
    let columns: Columns = serde_json::from_value(json!({
        "rows": 120, "keys": { "date": { "kind": "time", "nulls": 0 },
            "v": { "kind": "number", "nulls": 7 }, "t": { "kind": "text", "nulls": 0 } }
    }))
    .unwrap();
    let spec = check(
        &json!({ "type": "line", "xKey": "date", "yKey": "v", "yAxis": { "format": "percent" } }),
        &columns,
    )
    .unwrap();
    assert_eq!(spec.x_axis.unwrap().kind, Some(AxisType::Time));
    assert_eq!(spec.y_axis.unwrap().value_scale, Some(ValueScale::Fraction));
    let error = check(&json!({ "type": "line", "xKey": "date", "yKey": "t" }), &columns).unwrap_err();
    assert_eq!(error.problems[0].code, code::NOT_NUMERIC);
}

#[test]
fn titles_are_bounded() {
    let spec = line(&json!({}));
    let with = |title: String, alt: String| {
        CheckedChart::new(&spec, parsed(&rows()), Some(title), Some(alt)).map(|_| ())
    };
    assert_eq!(with("t".repeat(300), "a".repeat(2000)), Ok(()));
    let error = with("t".repeat(301), "a\u{202e}".to_owned()).unwrap_err();
    let found: Vec<_> = error
        .problems
        .iter()
        .map(|it| (it.code, it.field.as_str()))
        .collect();
    assert_eq!(found, [(code::TOO_LARGE, "title"), (code::INVALID_VALUE, "alt")]);
}

#[test]
fn the_keys_that_are_read_are_those_of_the_schema() {
    let schema = schema();
    let of = |value: &Value| -> BTreeSet<String> {
        value["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let set = |keys: &[&str]| keys.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(of(&schema), set(read::keys::SPEC));
    let objects = [
        ("Series", read::keys::SERIES),
        ("Axis", read::keys::AXIS),
        ("ReferenceLine", read::keys::LINE),
        ("ReferenceArea", read::keys::AREA),
        ("Ohlc", read::keys::OHLC),
    ];
    for (name, keys) in objects {
        assert_eq!(of(&schema["$defs"][name]), set(keys), "{name}");
    }
}

#[test]
fn every_code_is_documented() {
    let page = include_str!("../../../docs/reference/chart.md");
    for code in code::ALL {
        assert!(page.contains(&format!("`{code}`")), "{code}");
    }
}

#[test]
fn the_examples_of_the_documentation_are_accepted_and_cover_every_type() {
    let page = include_str!("../../../docs/reference/chart.md");
    let blocks = page
        .split("```json")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let mut types = BTreeSet::new();
    for block in blocks {
        let example: Value = serde_json::from_str(block).unwrap();
        let chart = CheckedChart::new(&example["spec"], parsed(&example["data"]), None, None);
        types.insert(
            chart
                .unwrap_or_else(|error| panic!("{block}\n{error}"))
                .spec
                .kind
                .name(),
        );
    }
    assert_eq!(types, ChartType::NAMES.iter().copied().collect());
}
