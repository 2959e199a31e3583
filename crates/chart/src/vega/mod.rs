//! A chart as a Vega-Lite specification with its data, for other renderers.
//!
//! The data has its own form: one object for each row and series, under fixed names (`x`, `series`,
//! `value`), so that no key or name of the rows becomes part of an expression or of a path. Times
//! are milliseconds in UTC. Stacked values are computed here.

mod axes;
mod bins;
mod candles;
mod grid;
mod layers;
mod names;
mod references;
mod scale;
mod sides;
mod theme;
mod times;
mod values;

use serde_json::{Value, json};

use super::{ChartSpec, ChartType, Mark, Rows, Side};
use layers::Layers;
pub use theme::PALETTE;
use values::Plot;

const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v5.json";
const WIDTH: u32 = 720;
const HEIGHT: u32 = 420;

/// Converts a checked specification; succeeds for every input.
pub fn to_vega_lite(spec: &ChartSpec, rows: &Rows, title: Option<&str>) -> Value {
    let columns = rows.summary();
    let mut plot = Plot::new(spec, rows, &columns);
    let mut whole = match spec.kind {
        ChartType::Heatmap => grid::draw(&plot),
        ChartType::Histogram if !plot.is_binned() => bins::draw(&plot),
        _ => over_x(&plot),
    };
    whole["$schema"] = json!(SCHEMA);
    whole["width"] = json!(WIDTH);
    whole["height"] = json!(HEIGHT);
    // Of the whole picture, not of the plot.
    whole["autosize"] = json!({ "type": "fit", "contains": "padding" });
    whole["background"] = json!("white");
    whole["config"] = theme::config();
    if whole.get("data").is_none() {
        whole["data"] = json!({ "values": std::mem::take(&mut plot.values) });
    }
    if let Some(title) = title {
        whole["title"] = theme::title(title);
    }
    whole
}

/// Returns all marks over an x axis, on one or two y axes.
fn over_x(plot: &Plot<'_>) -> Value {
    let mut groups: Vec<Layers<'_>> = Vec::new();
    for part in parts(plot) {
        let mut layers = Layers::new(plot, part.side, part.axis);
        layers.part(part.marks);
        match groups.last_mut() {
            // Consecutive layers of one axis share its scale.
            Some(before) if before.side == part.side => before.list.append(&mut layers.list),
            _ if layers.list.is_empty() => {}
            _ => groups.push(layers),
        }
    }
    let mut areas = Layers::new(plot, Side::Left, true);
    references::areas_over_x(&mut areas);
    let mut lines = Layers::new(plot, Side::Left, true);
    references::lines_over_x(&mut lines);
    if let Some(first) = groups.first_mut() {
        first.list.splice(0..0, areas.list);
    }
    if let Some(last) = groups.last_mut() {
        last.list.append(&mut lines.list);
    }
    let mut whole = if plot.is_double() {
        let groups: Vec<_> = groups.into_iter().map(|it| json!({ "layer": it.list })).collect();
        json!({
            "layer": groups,
            "resolve": { "scale": { "y": "independent" } },
        })
    } else {
        let layers: Vec<_> = groups.into_iter().flat_map(|it| it.list).collect();
        json!({ "layer": layers })
    };
    if !plot.is_continuous()
        && let Some(scale) = first_scale(&mut whole)
    {
        // Explicit settings of one layer apply to all, and the names may be many.
        scale["domain"] = json!(plot.names);
    }
    if plot.spec.brush {
        brush(&mut whole, plot);
    }
    whole
}

/// Layers of one y axis that are drawn together.
struct ChartLayers {
    side: Side,
    marks: &'static [Mark],
    /// Whether they draw the axis; an axis in two parts is drawn once.
    axis: bool,
}

/// Returns the parts of both y axes from bottom to top: no bar or area covers a line or a point of
/// the other axis.
fn parts(plot: &Plot<'_>) -> Vec<ChartLayers> {
    let part = |side, marks, axis| ChartLayers { side, marks, axis };
    if plot.spec.kind == ChartType::Candlestick {
        // Volume is drawn behind candles.
        return vec![
            part(Side::Right, &layers::ALL, true),
            part(Side::Left, &layers::ALL, true),
        ];
    }
    let mut parts = Vec::new();
    for marks in [&layers::BROAD[..], &layers::THIN] {
        for side in [Side::Left, Side::Right] {
            let first = marks == layers::BROAD || !plot.is_split(side);
            parts.push(part(side, marks, first));
        }
    }
    parts
}

/// Lets a reader select a range of x, which zooms a continuous axis. A selection belongs to one
/// unit of a layered view.
fn brush(whole: &mut Value, plot: &Plot<'_>) {
    let mut select = json!({ "name": "brush", "select": { "type": "interval", "encodings": ["x"] } });
    if plot.is_continuous() {
        select["bind"] = json!("scales");
    }
    if let Some(unit) = first_unit(whole) {
        unit["params"] = json!([select]);
    }
}

/// Returns the scale of the first x channel.
fn first_scale(view: &mut Value) -> Option<&mut Value> {
    if view.pointer("/encoding/x/scale").is_some() {
        return view.pointer_mut("/encoding/x/scale");
    }
    view.get_mut("layer")?
        .as_array_mut()?
        .iter_mut()
        .find_map(first_scale)
}

/// Returns the first layer that shows rows.
fn first_unit(view: &mut Value) -> Option<&mut Value> {
    if view.get("mark").is_some() {
        let own_data = view.get("data").is_some_and(|data| data["values"] == json!([{}]));
        return (!own_data).then_some(view);
    }
    view.get_mut("layer")?
        .as_array_mut()?
        .iter_mut()
        .find_map(first_unit)
}

#[cfg(test)]
mod tests;
