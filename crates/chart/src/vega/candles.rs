//! Candles: a thin line from the lowest to the highest price, and a body from the opening to the closing one.

use serde_json::{Value, json};

use crate::{Row, RowValue};

use super::layers::Layers;
use super::names::humanized;
use super::theme::{FALLING, RISING};

pub(super) fn draw(layers: &mut Layers<'_>) {
    let plot = layers.plot;
    let values: Vec<_> = plot.rows.iter().filter_map(|row| candle(layers, row)).collect();
    let color = json!({ "condition": { "test": "datum.rises", "value": RISING }, "value": FALLING });
    let x = layers.x("x");
    let price = |field: &str| json!({ "field": field, "type": "quantitative", "title": humanized(field) });
    let tooltip = json!([price("open"), price("high"), price("low"), price("close")]);
    let wick = json!({
        "mark": { "type": "rule", "strokeWidth": 1.2 },
        "encoding": { "x": x, "y": layers.y("low"), "y2": { "field": "high" }, "color": color },
    });
    let mut body = json!({
        "mark": { "type": "bar", "strokeWidth": 1 },
        "encoding": {
            "x": x,
            "y": layers.y("open"),
            "y2": { "field": "close" },
            "color": color,
            // A body without height is a line, which only an outline shows.
            "stroke": color,
            "tooltip": tooltip,
        },
    });
    if plot.is_continuous() {
        body["mark"]["type"] = json!("rect");
        body["encoding"]["x"] = layers.x("begin");
        body["encoding"]["x2"] = json!({ "field": "end" });
    }
    layers
        .list
        .push(json!({ "data": { "values": values }, "layer": [wick, body] }));
}

/// Returns one candle; none if a price is missing.
fn candle(layers: &Layers<'_>, row: &Row) -> Option<Value> {
    let (plot, keys) = (layers.plot, layers.plot.spec.ohlc.as_ref()?);
    let price = |key: &str| row.get(key).and_then(RowValue::number);
    let (open, close) = (price(&keys.open_key)?, price(&keys.close_key)?);
    let mut candle = json!({
        "x": plot.place(row)?,
        "open": open,
        "high": price(&keys.high_key)?,
        "low": price(&keys.low_key)?,
        "close": close,
        "rises": close >= open,
    });
    if let Some((begin, end)) = plot.extent(row, 0, 1) {
        candle["begin"] = json!(begin);
        candle["end"] = json!(end);
    }
    Some(candle)
}
