//! A histogram of values, counted in bins.

use serde_json::{Value, json};

use crate::Side;

use super::layers::{Layers, with};
use super::references;
use super::values::Plot;

/// Maximum number of bins.
const BINS: u32 = 30;

pub(super) fn draw(plot: &Plot<'_>) -> Value {
    let spec = plot.spec;
    let series = spec.series.iter().map(|it| (it.key.as_str(), plot.name(it)));
    let alone = spec.x_key.iter().filter(|_| spec.series.is_empty());
    let counted: Vec<(&str, &str)> = series
        .chain(alone.map(|key| (key.as_str(), key.as_str())))
        .collect();
    let colors: Vec<_> = (0..counted.len()).map(super::theme::color).collect();
    let mut values = Vec::new();
    for row in plot.rows {
        for (key, name) in &counted {
            if let Some(cell) = row.get(*key).filter(|cell| cell.number().is_some()) {
                values.push(json!({ "series": name, "value": cell }));
            }
        }
    }
    let mut layers = Layers::new(plot, Side::Left, true);
    references::areas_over_x(&mut layers);
    references::areas(&mut layers);
    let names: Vec<_> = counted.iter().map(|(_, name)| *name).collect();
    let opacity = if names.len() > 1 { 0.6 } else { 1.0 };
    let mut y = layers.y("");
    if let Some(channel) = y.as_object_mut() {
        channel.remove("field");
    }
    layers.list.push(json!({
        "mark": { "type": "bar", "opacity": opacity, "binSpacing": 1 },
        "encoding": {
            "x": with(layers.x("value"), "bin", json!({ "maxbins": BINS })),
            "y": with(y, "aggregate", json!("count")),
            "color": super::layers::color(plot, &names, &colors),
        },
    }));
    references::lines_over_x(&mut layers);
    references::lines(&mut layers);
    json!({ "data": { "values": values }, "layer": layers.list })
}
