//! Checks that each row has a position of its own, which requires the rows themselves.

use std::collections::BTreeSet;

use crate::error::{ChartProblem, Problems, code, quoted, repeated};
use crate::rows::MAX_KEYS;
use crate::{AxisPlace, AxisType, ChartSpec, ChartType, Columns, Mark, RowValue, Rows};

use super::axes::duplicates;

pub(super) fn check(spec: &ChartSpec, rows: &Rows, columns: &Columns, problems: &mut Problems) {
    let Some(key) = &spec.x_key else { return };
    if spec.kind == ChartType::Heatmap {
        return cells(spec, key, rows, problems);
    }
    match spec.x_type(columns) {
        AxisType::Time if spec.kind.is_over_x() => times(spec, key, rows, columns, problems),
        AxisType::Category => categories(spec, key, rows, problems),
        _ => {}
    }
}

/// A heatmap has one row for each cell.
fn cells(spec: &ChartSpec, x: &str, rows: &Rows, problems: &mut Problems) {
    let Some(y) = &spec.y_key else { return };
    let mut seen = BTreeSet::new();
    for (at, row) in rows.iter().enumerate() {
        let label = |key: &str| row.get(key).and_then(RowValue::label);
        let (Some(x), Some(y)) = (label(x), label(y)) else {
            continue;
        };
        let message = format!(
            "is the second row of the cell {}, {}; aggregate to one row for each cell",
            quoted(&x),
            quoted(&y)
        );
        if !seen.insert((x, y)) {
            return problems.add(code::DUPLICATE_ROWS, format!("data[{at}]"), message);
        }
    }
}

/// Checks that every value is a time, and that no two texts are the same time.
fn times(spec: &ChartSpec, key: &str, rows: &Rows, columns: &Columns, problems: &mut Problems) {
    if problems.has("xAxis.type") {
        return;
    }
    let column = columns.keys.get(key);
    let mut seen = BTreeSet::new();
    let mut placed = 0;
    for (at, row) in rows.iter().enumerate() {
        let Some(cell) = row.get(key) else { continue };
        let Some(label) = cell.label() else { continue };
        let Some(time) = cell.time() else {
            let message = format!(
                "{} is not a time; write ISO 8601, or seconds or milliseconds since 1970",
                quoted(&label)
            );
            let field = format!("data[{at}].{}", repeated(key));
            return problems.add(code::AXIS_TYPE_MISMATCH, field, message);
        };
        placed += 1;
        seen.insert(time);
    }
    let joined =
        spec.kind == ChartType::Candlestick || spec.series.iter().any(|it| spec.mark(it) != Mark::Scatter);
    let told = column
        .and_then(|it| it.distinct)
        .is_some_and(|distinct| distinct < placed);
    if joined && !told && (seen.len() as u64) < placed {
        problems.push(duplicates(key, placed, seen.len() as u64));
    }
}

/// Checks that a reference on an axis of names is one of them.
fn categories(spec: &ChartSpec, key: &str, rows: &Rows, problems: &mut Problems) {
    let lines = spec.reference_lines.iter().enumerate();
    let lines = lines.map(|(at, it)| (format!("referenceLines[{at}].x"), it.x.as_ref()));
    let areas = spec.reference_areas.iter().enumerate().flat_map(|(at, it)| {
        let field = |side| format!("referenceAreas[{at}].{side}");
        [(field("x1"), it.x1.as_ref()), (field("x2"), it.x2.as_ref())]
    });
    let places: Vec<_> = lines
        .chain(areas)
        .filter_map(|(field, place)| Some((field, place?)))
        .collect();
    if places.is_empty() {
        return;
    }
    let names: BTreeSet<_> = rows.iter().filter_map(|row| row.get(key)?.label()).collect();
    for (field, place) in places {
        let label = AxisPlace::label(place);
        if !names.contains(&label) {
            let message = format!(
                "{} is not a value of {}; name one that a row has",
                quoted(&label),
                quoted(key)
            );
            let valid = names.iter().take(MAX_KEYS).map(|it| repeated(it));
            problems.push(ChartProblem::new(code::INVALID_VALUE, field, message).with_valid(valid));
        }
    }
}
