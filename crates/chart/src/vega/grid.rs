//! A heatmap: a cell for each pair of x and y.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Axis, AxisType, ColumnKind, Columns, RowValue, time};

use super::axes;
use super::names::humanized;
use super::values::Plot;

pub(super) fn draw(plot: &Plot<'_>) -> Value {
    let spec = plot.spec;
    let key = |key: &Option<String>| key.clone().unwrap_or_default();
    let (x, y, value) = (key(&spec.x_key), key(&spec.y_key), key(&spec.value_key));
    let x_labels = Labels::new(plot.columns, &x, spec.x_axis.as_ref());
    let y_labels = Labels::new(plot.columns, &y, spec.y_axis.as_ref());
    let mut values = Vec::new();
    for row in plot.rows {
        let at = |labels: &Labels, key: &str| labels.of(row.get(key)?);
        let (Some(x), Some(y)) = (at(&x_labels, &x), at(&y_labels, &y)) else {
            continue;
        };
        let shown = row.get(&value).filter(|cell| cell.number().is_some());
        values.push(
            json!({ "x": x.label, "y": y.label, "xOrder": x.order, "yOrder": y.order, "value": shown }),
        );
    }
    let legend = if spec.legend == Some(false) {
        Value::Null
    } else {
        let title = spec
            .series
            .first()
            .map_or_else(|| humanized(&value), |it| plot.name(it).to_owned());
        json!({ "title": title, "gradientLength": { "expr": "clamp(width / 3, 100, 240)" }, "offset": 24 })
    };
    json!({
        "data": { "values": values },
        // A cell without a value stays empty, unlike one with the smallest value.
        "mark": { "type": "rect", "invalid": "filter" },
        "encoding": {
            "x": channel("x", spec.x_axis.as_ref(), &x, &values),
            "y": channel("y", spec.y_axis.as_ref(), &y, &values),
            "color": { "field": "value", "type": "quantitative", "scale": { "scheme": "viridis" },
                "legend": legend },
            "tooltip": [
                { "field": "x", "type": "nominal", "title": humanized(&x) },
                { "field": "y", "type": "nominal", "title": humanized(&y) },
                { "field": "value", "type": "quantitative", "title": humanized(&value) },
            ],
        },
    })
}

/// Returns an axis of names, in the order of the rows or sorted.
fn channel(field: &str, axis: Option<&Axis>, key: &str, values: &[Value]) -> Value {
    let order = format!("{field}Order");
    let mut seen = BTreeSet::new();
    let mut places: Vec<_> = values
        .iter()
        .filter_map(|value| Some((value[&order].as_f64(), value[field].as_str()?)))
        .filter(|(_, label)| seen.insert(*label))
        .collect();
    places.sort_by(|(one, _), (other, _)| one.unwrap_or(0.0).total_cmp(&other.unwrap_or(0.0)));
    let domain: Vec<_> = places.into_iter().map(|(_, label)| label).collect();
    let written = if field == "x" {
        axes::names(domain.iter().copied())
    } else {
        json!({ "labelOverlap": true, "labelLimit": 120 })
    };
    json!({
        "field": field,
        "type": "ordinal",
        "sort": null,
        "scale": { "domain": domain },
        "title": axes::title_of_key(axis, key),
        "axis": written,
    })
}

/// Names and order of the positions on one axis.
struct Labels {
    kind: AxisType,
}

/// One position.
struct Label {
    label: String,
    order: Option<f64>,
}

impl Labels {
    fn new(columns: &Columns, key: &str, axis: Option<&Axis>) -> Self {
        let suggested = match columns.keys.get(key).map(|column| column.kind) {
            Some(ColumnKind::Time) => AxisType::Time,
            Some(ColumnKind::Number) => AxisType::Number,
            _ => AxisType::Category,
        };
        Self {
            kind: axis.and_then(|axis| axis.kind).unwrap_or(suggested),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a time in milliseconds is below 2^53")]
    fn of(&self, cell: &RowValue) -> Option<Label> {
        let label = cell.label()?;
        Some(match (self.kind, cell.time()) {
            (AxisType::Time, Some(time)) => Label {
                label: time::text(time),
                order: Some(time as f64),
            },
            (AxisType::Number, _) => Label {
                label,
                order: cell.number(),
            },
            _ => Label { label, order: None },
        })
    }
}
