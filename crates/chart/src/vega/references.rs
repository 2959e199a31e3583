//! Reference lines and areas. Each has its own data, as a mark without data would be drawn once for
//! each row.

use serde_json::{Value, json};

use crate::Side;

use super::layers::{Layers, with};
use super::theme::{AREA, INK, REFERENCE};

/// Draws areas that are limited only along x.
pub(super) fn areas_over_x(layers: &mut Layers<'_>) {
    draw_areas(layers, true);
}

/// Draws areas that are limited along the y axis of these layers.
pub(super) fn areas(layers: &mut Layers<'_>) {
    draw_areas(layers, false);
}

fn draw_areas(layers: &mut Layers<'_>, over_x: bool) {
    let plot = layers.plot;
    for area in &plot.spec.reference_areas {
        let side = area.y_axis.unwrap_or(Side::Left);
        let along_x = area.y1.is_none() && area.y2.is_none();
        if along_x != over_x || (!along_x && side != layers.side) {
            continue;
        }
        let mut encoding = json!({});
        if area.x1.is_some() || area.x2.is_some() {
            let at = |place: &Option<_>| plot.reference(place.as_ref()?);
            bounds(
                &mut encoding,
                "x",
                &plot.channel,
                at(&area.x1),
                at(&area.x2),
                [json!(0), json!("width")],
            );
        }
        if !along_x {
            let at = |number: &Option<_>| number.as_ref().map(|it| json!(it));
            let base = layers.y_axis();
            bounds(
                &mut encoding,
                "y",
                &base,
                at(&area.y1),
                at(&area.y2),
                [json!("height"), json!(0)],
            );
        }
        let color = area.color.as_deref().unwrap_or(AREA);
        layers.list.push(json!({
            "data": { "values": [{}] },
            "mark": { "type": "rect", "color": color, "opacity": 0.18 },
            "encoding": encoding,
        }));
        if let Some(label) = &area.label {
            let mut encoding = encoding;
            for end in ["x2", "y2"] {
                encoding.as_object_mut().map(|channels| channels.remove(end));
            }
            let mark = json!({ "align": "left", "dx": 4, "dy": -6, "color": REFERENCE });
            text(layers, label, encoding, mark);
        }
    }
}

/// Returns both ends of an area along one axis; an omitted end is the edge.
fn bounds(
    encoding: &mut Value,
    channel: &str,
    base: &Value,
    from: Option<Value>,
    to: Option<Value>,
    [first, last]: [Value; 2],
) {
    let at = |datum| with(base.clone(), "datum", datum);
    // The first channel must be the one with a scale.
    let (here, there) = match (from, to) {
        (Some(from), Some(to)) => (at(from), json!({ "datum": to })),
        (Some(from), None) => (at(from), json!({ "value": last })),
        (None, Some(to)) => (at(to), json!({ "value": first })),
        (None, None) => return,
    };
    encoding[channel] = here;
    encoding[format!("{channel}2")] = there;
}

/// Draws lines across the x axis.
pub(super) fn lines_over_x(layers: &mut Layers<'_>) {
    let plot = layers.plot;
    for line in &plot.spec.reference_lines {
        let Some(place) = line.x.as_ref().and_then(|place| plot.reference(place)) else {
            continue;
        };
        let x = with(plot.channel.clone(), "datum", place);
        let color = line.color.as_deref().unwrap_or(REFERENCE);
        rule(layers, color, &json!({ "x": x }));
        if let Some(label) = &line.label {
            let encoding = json!({ "x": x, "y": { "value": 0 } });
            text(
                layers,
                label,
                encoding,
                json!({ "align": "left", "dx": 4, "dy": 8, "color": color }),
            );
        }
    }
}

/// Draws lines across the y axis of these layers.
pub(super) fn lines(layers: &mut Layers<'_>) {
    let plot = layers.plot;
    for line in &plot.spec.reference_lines {
        let Some(y) = line
            .y
            .as_ref()
            .filter(|_| line.y_axis.unwrap_or(Side::Left) == layers.side)
        else {
            continue;
        };
        let y = with(layers.y_axis(), "datum", json!(y));
        let color = line.color.as_deref().unwrap_or(REFERENCE);
        rule(layers, color, &json!({ "y": y }));
        if let Some(label) = &line.label {
            let encoding = json!({ "y": y, "x": { "value": "width" } });
            text(
                layers,
                label,
                encoding,
                json!({ "align": "right", "dx": -4, "dy": -6, "color": color }),
            );
        }
    }
}

fn rule(layers: &mut Layers<'_>, color: &str, encoding: &Value) {
    layers.list.push(json!({
        "data": { "values": [{}] },
        "mark": { "type": "rule", "color": color, "strokeDash": [4, 3], "strokeWidth": 2 },
        "encoding": encoding,
    }));
}

/// Draws the line at zero, from which values go both ways.
pub(super) fn zero(layers: &mut Layers<'_>) {
    if layers.plot.crosses_zero(layers.side) {
        let y = with(layers.y_axis(), "datum", json!(0));
        layers.list.push(json!({
            "data": { "values": [{}] },
            "mark": { "type": "rule", "color": INK, "strokeWidth": 1 },
            "encoding": { "y": y },
        }));
    }
}

fn text(layers: &mut Layers<'_>, label: &str, encoding: Value, mut mark: Value) {
    mark["type"] = json!("text");
    let encoding = with(encoding, "text", json!({ "value": label }));
    // A light edge keeps the letters apart from lines behind them.
    let mut edge = mark.clone();
    for (key, value) in [
        ("stroke", json!("white")),
        ("strokeWidth", json!(3)),
        ("strokeJoin", json!("round")),
    ] {
        edge[key] = value;
    }
    for mark in [edge, mark] {
        layers
            .list
            .push(json!({ "data": { "values": [{}] }, "mark": mark, "encoding": encoding }));
    }
}
