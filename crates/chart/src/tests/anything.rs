//! Random specifications over random rows: accepted or rejected, never worse.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::super::{ChartSpec, CheckedChart, Rows, check, coverage, read, to_vega_lite};

/// Words with a meaning in some field.
const WORDS: &[&str] = &[
    "t",
    "n",
    "m",
    "s",
    "z",
    "line",
    "bar",
    "area",
    "scatter",
    "left",
    "right",
    "time",
    "category",
    "number",
    "percent",
    "currency",
    "compact",
    "fraction",
    "percent_points",
    "2024-01-02",
    "red",
    "#abc",
    "",
];

/// A value that some fields can have, and others cannot.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => select(WORDS).prop_map(|it| json!(it)),
        1 => any::<bool>().prop_map(|it| json!(it)),
        1 => number(),
        1 => Just(json!([])),
        1 => Just(Value::Null),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-5..5_i64).prop_map(|it| json!(it)),
        select(&[1.7e308, -1.7e308, 5e-324, 1_704_067_200.0, 1e13, 0.5][..]).prop_map(|it| json!(it)),
    ]
}

/// An object that has some of these fields.
fn some(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(key, value)| proptest::option::weighted(0.4, value).prop_map(move |value| Some((key, value?))))
        .collect();
    fields.prop_map(|it| object(it.into_iter().flatten())).boxed()
}

fn object(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn one_of(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(|it| json!(it)).boxed()
}

fn place() -> BoxedStrategy<Value> {
    prop_oneof![one_of(&["2024-01-01", "s0"]), number()].boxed()
}

fn series() -> impl Strategy<Value = Value> {
    let more = some(vec![
        ("label", one_of(&["One", "Two"])),
        ("type", one_of(&["line", "bar", "area", "scatter"])),
        ("errorKey", one_of(&["e"])),
        ("yAxis", one_of(&["left", "right"])),
    ]);
    (select(&["n", "e", "m"][..]), any::<bool>(), more).prop_map(|(key, plain, more)| {
        let mut series = if plain { json!({}) } else { more };
        series["key"] = json!(key);
        series
    })
}

fn axis() -> BoxedStrategy<Value> {
    some(vec![
        ("label", one_of(&["A"])),
        ("format", one_of(&["number", "currency", "compact"])),
        ("type", one_of(&["number"])),
    ])
}

fn spec() -> impl Strategy<Value = Value> {
    let whole = (
        select(super::ChartType::NAMES),
        select(&["t", "ts", "s", "e"][..]),
        vec(series(), 1..4),
    );
    let more = some(vec![
        ("legend", any::<bool>().prop_map(|it| json!(it)).boxed()),
        ("stacked", any::<bool>().prop_map(|it| json!(it)).boxed()),
        ("brush", any::<bool>().prop_map(|it| json!(it)).boxed()),
        (
            "xAxis",
            some(vec![
                ("type", one_of(&["time", "category"])),
                ("label", one_of(&["X"])),
            ]),
        ),
        ("yAxis", axis()),
        ("yAxisRight", axis()),
        (
            "referenceLines",
            vec(
                prop_oneof![
                    number().prop_map(|y| json!({ "y": y, "label": "l" })),
                    place().prop_map(|x| json!({ "x": x }))
                ],
                0..3,
            )
            .prop_map(|it| json!(it))
            .boxed(),
        ),
        (
            "referenceAreas",
            vec(
                some(vec![
                    ("x1", place()),
                    ("y1", number().boxed()),
                    ("y2", number().boxed()),
                    ("color", one_of(&["red", "#abc"])),
                ]),
                0..3,
            )
            .prop_map(|it| json!(it))
            .boxed(),
        ),
    ]);
    // Occasionally a field that does not belong there.
    let odd = proptest::option::weighted(0.15, (select(read::keys::SPEC), value()));
    (whole, more, odd).prop_map(|((kind, x, series), mut spec, odd)| {
        spec["type"] = json!(kind);
        spec["xKey"] = json!(x);
        match kind {
            "heatmap" => spec["yKey"] = json!("s"),
            "histogram" if series.len() > 1 => {}
            _ => spec["series"] = json!(series),
        }
        if kind == "heatmap" {
            spec["valueKey"] = json!("n");
        }
        if kind == "candlestick" {
            spec["ohlc"] = json!({ "openKey": "n", "highKey": "e", "lowKey": "n", "closeKey": "m" });
        }
        if let Some((key, value)) = odd {
            spec[key] = value;
        }
        spec
    })
}

fn rows() -> impl Strategy<Value = Value> {
    let row = |at: usize| {
        (
            number(),
            prop_oneof![1 => Just(Value::Null), 4 => number()],
            0..9_u32,
        )
            .prop_map(move |(n, m, e)| {
                let index = f64::from(u32::try_from(at).unwrap());
                let day = format!("2024-01-{:02}", at + 1);
                json!({ "t": day, "ts": 1_704_067_200 + at * 86_400, "s": format!("s{at}"), "n": n, "m": m,
                "e": f64::from(e) + index / 100.0, "z": null })
            })
    };
    (0..8_usize).prop_flat_map(move |count| {
        (0..count)
            .map(row)
            .collect::<Vec<_>>()
            .prop_map(|rows| json!(rows))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_chart_is_rejected_or_equals_its_own_document(spec in spec(), rows in rows()) {
        let rows = Rows::parse(rows.to_string().as_bytes()).unwrap();
        if let Ok(unchecked) = serde_json::from_value::<ChartSpec>(spec.clone()) {
            to_vega_lite(&unchecked, &rows, None);
            coverage(&unchecked, &rows);
        }
        match CheckedChart::new(&spec, rows.clone(), None, None) {
            Ok(chart) => {
                prop_assert_eq!(&check(&spec, &rows.summary()).unwrap(), &chart.spec);
                let again = CheckedChart::new(&json!(chart.spec), rows, None, None).unwrap();
                prop_assert_eq!(again.document(), chart.document());
                let drawn = chart.vega_lite();
                let layers = drawn["layer"].as_array().map_or(0, Vec::len);
                prop_assert!(layers > 0 || drawn.get("mark").is_some(), "{}", drawn);
            }
            Err(error) => {
                prop_assert!((1..=10).contains(&error.problems.len()));
                prop_assert!(error.problems.iter().all(|it| !it.field.is_empty() && !it.message.is_empty()));
            }
        }
    }
}
