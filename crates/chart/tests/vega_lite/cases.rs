//! Charts of every type, and the colors that must be visible in each.

use serde_json::{Value, json};

pub(super) const BLUE: &str = "#3f90da";
pub(super) const ORANGE: &str = "#e76300";
pub(super) const PURPLE: &str = "#832db6";
/// Blue and orange behind lines.
pub(super) const PALE: [&str; 2] = ["#a9cdef", "#f4b98c"];
/// Bars that are context.
pub(super) const CONTEXT: &str = "#c3cad1";
pub(super) const RISING: &str = "#2a9d8f";
pub(super) const FALLING: &str = "#bd1f01";
const MARKED: &str = "#c0ffee";

/// A chart to draw.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) spec: Value,
    pub(super) rows: Value,
    /// Colors with their minimum number of pixels.
    pub(super) seen: Vec<(&'static str, u64)>,
}

fn case(name: &'static str, spec: Value, rows: Value, seen: &[(&'static str, u64)]) -> Case {
    Case {
        name,
        spec,
        rows,
        seen: seen.to_vec(),
    }
}

fn days(values: &[(Value, Value)]) -> Value {
    let row = |(at, (one, two)): (usize, &(Value, Value))| {
        json!({ "day": format!("2024-03-{:02}",
        at + 1), "one": one, "two": two, "error": 0.5 })
    };
    values.iter().enumerate().map(row).collect()
}

fn week() -> Value {
    let pair = |one, two| (json!(one), json!(two));
    days(&[
        pair(3, 30.5),
        pair(5, 32.0),
        (json!(null), json!(28.25)),
        pair(4, 35.0),
        (json!(6), json!(null)),
        pair(7, 31.0),
        pair(2, 29.0),
    ])
}

fn shops() -> Value {
    json!([
        { "shop": "north", "sales": 12, "returns": -3, "error": 1.5 },
        { "shop": "south", "sales": 7, "returns": -1, "error": 1 },
        { "shop": "a \"quoted\".name[0]", "sales": 9, "returns": null, "error": 2 },
    ])
}

pub(super) fn line() -> Vec<Case> {
    let series = json!([{ "key": "one", "label": "One" }, { "key": "two", "label": "Two" }]);
    vec![
        case(
            "line_over_days_with_gaps",
            json!({ "type": "line", "xKey": "day", "series": series }),
            week(),
            &[(BLUE, 150), (ORANGE, 150)],
        ),
        case(
            "line_with_errors_a_limit_and_a_marked_span",
            json!({
                "type": "line", "xKey": "day", "brush": true,
                "series": [{ "key": "one", "errorKey": "error" }],
                "xAxis": { "type": "time", "label": "Day" }, "yAxis": { "label": "Load", "format": "number" },
                "referenceLines": [{ "y": 6.5, "label": "limit", "color": "#ff00ff" },
                    { "x": "2024-03-04", "label": "release" }],
                "referenceAreas": [{ "x1": "2024-03-05", "x2": "2024-03-06", "label": "outage",
                    "color": MARKED }, { "y1": 1, "fill": "gold" }],
            }),
            week(),
            &[(BLUE, 200), ("#ff00ff", 100), ("#5b6770", 100)],
        ),
        case(
            "line_over_epoch_seconds_with_both_axes",
            json!({
                "type": "line", "xKey": "ts", "legend": false, "brush": true,
                "series": [{ "key": "price" }, { "key": "share", "yAxis": "right" }],
                "xAxis": { "type": "time" }, "yAxis": { "format": "currency" },
                "yAxisRight": { "label": "share", "format": "percent", "valueScale": "percent_points" },
                "referenceLines": [{ "y": 40, "yAxis": "right", "color": "#ff00ff" }],
            }),
            json!([
                { "ts": 1_709_251_200, "price": 61_000.5, "share": 12.5 },
                { "ts": 1_709_337_600, "price": 62_400, "share": 80 },
                { "ts": 1_709_424_000, "price": 61_900, "share": 42 },
            ]),
            &[(BLUE, 300), (ORANGE, 300), ("#ff00ff", 100)],
        ),
        case(
            "line_over_ordered_names",
            json!({ "type": "line", "xKey": "step", "series": [{ "key": "n" }],
                "xAxis": { "type": "category" } }),
            json!([{ "step": "seen", "n": 1000 }, { "step": "clicked", "n": 120 },
                { "step": "bought", "n": 9 }]),
            &[(BLUE, 300)],
        ),
    ]
}

pub(super) fn bar() -> Vec<Case> {
    let two = json!([{ "key": "sales", "label": "Sales" }, { "key": "returns", "label": "Returns" }]);
    vec![
        case(
            "bars_beside_each_other",
            json!({ "type": "bar", "xKey": "shop", "series": two, "yAxis": { "format": "compact" } }),
            shops(),
            &[(BLUE, 5000), (ORANGE, 1000)],
        ),
        case(
            "bars_on_each_other",
            json!({
                "type": "bar", "xKey": "shop", "series": two, "stacked": true,
                "referenceLines": [{ "x": "south", "label": "new" }],
                "referenceAreas": [{ "x1": "north", "x2": "south", "y1": 0, "y2": 5 }],
            }),
            shops(),
            &[(BLUE, 5000), (ORANGE, 1000), ("#5b6770", 50)],
        ),
        case(
            "bars_over_months_with_errors",
            json!({
                "type": "bar", "xKey": "month", "series": [{ "key": "a", "errorKey": "e" }, { "key": "b" }],
                "yAxis": { "format": "percent" },
            }),
            json!([
                { "month": "2024-01", "a": 0.25, "b": 0.5, "e": 0.05 },
                { "month": "2024-02", "a": 0.5, "b": 0.25, "e": 0.1 },
                { "month": "2024-03", "a": 1, "b": null, "e": null },
            ]),
            &[(BLUE, 5000), (ORANGE, 5000)],
        ),
        case(
            "bars_over_numbers_on_each_other",
            json!({ "type": "bar", "xKey": "n", "yKey": "v",
                "xAxis": { "label": "Size", "format": "compact" } }),
            json!([{ "n": 1000, "v": 1 }, { "n": 2000, "v": 3 }, { "n": 4000, "v": 2 }]),
            &[(BLUE, 5000)],
        ),
    ]
}

pub(super) fn area() -> Vec<Case> {
    let series = json!([{ "key": "one" }, { "key": "two" }]);
    vec![
        case(
            "areas_before_each_other",
            json!({ "type": "area", "xKey": "day", "series": series }),
            week(),
            &[(BLUE, 150), (ORANGE, 150)],
        ),
        case(
            "areas_on_each_other",
            json!({ "type": "area", "xKey": "day", "series": series, "stacked": true }),
            week(),
            &[(BLUE, 150), (ORANGE, 150)],
        ),
    ]
}

pub(super) fn scatter() -> Vec<Case> {
    let rows: Value = (0..40)
        .map(|at| json!({ "x": f64::from(at * 7 % 40), "y": f64::from(at * at % 41), "e": 2 }))
        .collect();
    vec![
        case(
            "points_over_numbers",
            json!({ "type": "scatter", "xKey": "x", "yKey": "y", "yAxis": { "label": "Y" } }),
            rows.clone(),
            &[],
        ),
        case(
            "points_with_errors",
            json!({ "type": "scatter", "xKey": "x", "series": [{ "key": "y", "errorKey": "e" }],
                "legend": true }),
            rows,
            &[(BLUE, 100)],
        ),
    ]
}

pub(super) fn composed() -> Vec<Case> {
    vec![
        case(
            "bars_with_a_line_on_the_right_over_names",
            json!({
                "type": "composed", "xKey": "shop", "brush": true,
                "series": [{ "key": "sales", "type": "bar" },
                    { "key": "error", "type": "line", "yAxis": "right" }],
                "xAxis": { "type": "category" },
            }),
            shops(),
            &[(PALE[0], 5000), (ORANGE, 100)],
        ),
        case(
            "all_four_marks_over_days",
            json!({
                "type": "composed", "xKey": "day", "brush": true,
                "series": [
                    { "key": "one", "type": "bar", "label": "bars" },
                    { "key": "two", "type": "area", "label": "area" },
                    { "key": "two", "type": "line", "label": "line" },
                    { "key": "one", "type": "scatter", "label": "points" },
                ],
            }),
            week(),
            &[(PALE[0], 3000), (PURPLE, 200)],
        ),
    ]
}

pub(super) fn histogram() -> Vec<Case> {
    let rows: Value = (0..200)
        .map(|at| json!({ "a": f64::from(at * at % 97) / 10.0, "b": f64::from(at % 30) }))
        .collect();
    vec![
        case(
            "counts_of_one_key",
            json!({
                "type": "histogram", "xKey": "a",
                "referenceLines": [{ "x": 4.5, "label": "mean", "color": "#ff00ff" }, { "y": 10 }],
                "referenceAreas": [{ "x1": 2, "x2": 3 }],
            }),
            rows.clone(),
            &[(BLUE, 5000), ("#ff00ff", 100)],
        ),
        case(
            "counts_of_two_keys",
            json!({ "type": "histogram", "series": [{ "key": "a" }, { "key": "b" }],
                "yAxis": { "label": "rows" } }),
            rows,
            &[],
        ),
        case(
            "rows_that_are_bins",
            json!({ "type": "histogram", "xKey": "from", "series": [{ "key": "count" }] }),
            json!([{ "from": 0, "count": 4 }, { "from": 10, "count": 9 }, { "from": 20, "count": 2 }]),
            &[(BLUE, 20_000)],
        ),
    ]
}

pub(super) fn heatmap() -> Vec<Case> {
    let grid = |x: fn(i32) -> Value, y: fn(i32) -> Value| -> Value {
        (0..12)
            .map(|at| {
                json!({ "x": x(at % 4), "y": y(at / 4),
                "v": if at == 5 { Value::Null } else { json!(at) } })
            })
            .collect()
    };
    vec![
        case(
            "cells_of_names",
            json!({ "type": "heatmap", "xKey": "x", "yKey": "y", "valueKey": "v",
                "xAxis": { "label": "Hour" } }),
            grid(|x| json!(format!("h{x}")), |y| json!(format!("d{y}"))),
            &[("#440154", 5000), ("#fde725", 5000)],
        ),
        case(
            "cells_of_numbers_and_times",
            json!({ "type": "heatmap", "xKey": "x", "yKey": "y", "valueKey": "v",
                "yAxis": { "type": "time" } }),
            grid(
                |x| json!(30 - 10 * x),
                |y| json!(format!("2024-03-{:02}T06:00:00Z", 9 - y)),
            ),
            &[("#440154", 5000), ("#fde725", 5000)],
        ),
    ]
}

pub(super) fn candlestick() -> Vec<Case> {
    let ohlc = json!({ "openKey": "o", "highKey": "h", "lowKey": "l", "closeKey": "c" });
    let rows = json!([
        { "day": "2024-03-01", "o": 100, "h": 112, "l": 97, "c": 110, "sma": null, "vol": 5000 },
        { "day": "2024-03-04", "o": 110, "h": 111, "l": 101, "c": 103, "sma": 106.5, "vol": 9000 },
        { "day": "2024-03-05", "o": 103, "h": 104, "l": 103, "c": 103, "sma": 105, "vol": 1000 },
        { "day": "2024-03-06", "o": null, "h": null, "l": null, "c": null, "sma": 104, "vol": null },
        { "day": "2024-03-07", "o": 103, "h": 120, "l": 102, "c": 118, "sma": 108, "vol": 12000 },
    ]);
    vec![
        case(
            "candles_over_days",
            json!({ "type": "candlestick", "xKey": "day", "ohlc": ohlc, "yAxis": { "format": "currency" } }),
            rows.clone(),
            &[(RISING, 1000), (FALLING, 500)],
        ),
        case(
            "candles_with_an_average_and_volume",
            json!({
                "type": "candlestick", "xKey": "day", "ohlc": ohlc, "xAxis": { "type": "category" },
                "series": [{ "key": "sma", "label": "average" },
                    { "key": "vol", "type": "bar", "yAxis": "right" }],
                "yAxisRight": { "format": "compact", "label": "volume" },
            }),
            rows,
            &[(BLUE, 200), (RISING, 1000), (CONTEXT, 1000)],
        ),
    ]
}

/// Days with a price, a volume and a rate, over the end of a year.
fn trades() -> Value {
    let row = |at: i32| {
        let date = if at < 17 {
            format!("2023-12-{:02}", at + 15)
        } else {
            format!("2024-01-{:02}", at - 16)
        };
        let price = f64::from(100 + at / 2 + at * 7 % 11);
        json!({
            "day": date, "close_price": price, "volume": 1_000_000 + at * 370_000 % 2_900_000,
            "cost_usd": 90 + at * 5 % 17,
            "rate_pct": 5.25 - f64::from(at / 9) * 0.25,
            "o": price, "h": price + 3.0 + f64::from(at % 5), "l": price - 3.0 - f64::from(at % 3),
            "c": price + f64::from(at * 3 % 7) - 3.0,
        })
    };
    (0..36).map(row).collect()
}

/// Months with an inflow and an outflow.
fn flows(count: i32) -> Value {
    (0..count)
        .map(|at| {
            let month = format!("{}-{:02}", 2022 + (at + 9) / 12, (at + 9) % 12 + 1);
            json!({ "month": month, "net_flow_usd": (at * 29 % 41 - 18) * 100_000, "total": at * at % 23 })
        })
        .collect()
}

/// A small picture that people have looked at, which is kept.
pub(super) struct GoldenPicture {
    pub(super) case: Case,
    /// Width and height of the picture in pixels.
    pub(super) size: [u32; 2],
}

/// The main kinds of charts, from the width of a phone to that of a page.
pub(super) fn golden() -> Vec<GoldenPicture> {
    let ohlc = json!({ "openKey": "o", "highKey": "h", "lowKey": "l", "closeKey": "c" });
    let regions = json!([
        { "region": "North America", "revenue_usd": 41_300_000, "profit_usd": 6_200_000 },
        { "region": "Europe", "revenue_usd": 28_900_000, "profit_usd": -3_100_000 },
        { "region": "Asia Pacific", "revenue_usd": 33_000_000, "profit_usd": 4_700_000 },
        { "region": "Latin America", "revenue_usd": 12_400_000, "profit_usd": 900_000 },
        { "region": "Africa", "revenue_usd": 7_800_000, "profit_usd": 1_200_000 },
    ]);
    let of = |name, size, spec, rows| GoldenPicture {
        case: case(name, spec, rows, &[]),
        size,
    };
    let first = |name, size, cases: Vec<Case>| {
        let found = cases.into_iter().next().map(|case| GoldenPicture {
            case: Case { name, ..case },
            size,
        });
        found.expect("each kind has a case")
    };
    vec![
        of(
            "line",
            [560, 340],
            json!({
                "type": "line", "xKey": "day", "series": [{ "key": "close_price" }, { "key": "cost_usd" }],
                "referenceLines": [{ "y": 110, "label": "limit" }],
            }),
            trades(),
        ),
        of(
            "two_axes",
            [560, 340],
            json!({ "type": "line", "xKey": "day", "series": [{ "key": "close_price" },
                { "key": "rate_pct", "yAxis": "right" }] }),
            trades(),
        ),
        of(
            "price_and_volume",
            [390, 300],
            json!({
                "type": "composed", "xKey": "day",
                "series": [{ "key": "close_price", "type": "line" },
                    { "key": "volume", "type": "bar", "yAxis": "right" }],
            }),
            trades(),
        ),
        of(
            "candles",
            [560, 340],
            json!({
                "type": "candlestick", "xKey": "day", "ohlc": ohlc, "xAxis": { "type": "category" },
                "yAxis": { "format": "currency" },
                "series": [{ "key": "volume", "type": "bar", "yAxis": "right" }],
            }),
            trades(),
        ),
        of(
            "bars",
            [390, 300],
            json!({ "type": "bar", "xKey": "region",
                "series": [{ "key": "revenue_usd" }, { "key": "profit_usd" }] }),
            regions,
        ),
        of(
            "flows",
            [560, 340],
            json!({
                "type": "composed", "xKey": "month",
                "series": [{ "key": "net_flow_usd", "type": "bar" },
                    { "key": "total", "type": "line", "yAxis": "right" }],
            }),
            flows(12),
        ),
        of(
            "months",
            [1280, 400],
            json!({ "type": "area", "xKey": "month", "yKey": "total", "xAxis": { "type": "time" } }),
            flows(30),
        ),
        first("histogram", [390, 300], histogram()),
        first("heatmap", [560, 340], heatmap()),
    ]
}
