//! Checks that a specification fits its rows, and reports everything that does not.

mod axes;
mod measures;
mod places;
mod references;
mod series;
mod shape;

use serde_json::Value;

use super::error::{ChartProblem, Problems, code, quoted, repeated};
use super::rows::MAX_KEYS;
use super::{
    ChartError, ChartSpec, ColumnKind, ColumnSummary, Columns, MAX_POINTS, MAX_ROWS, Rows, ValueScale, read,
};

/// Checks a specification against a description of the rows, and normalizes it: `yKey` becomes a
/// series, and the type of the x axis and the scale of percentages are filled in. The error
/// contains every mistake that was found.
pub fn check(spec: &Value, columns: &Columns) -> Result<ChartSpec, ChartError> {
    let mut problems = Problems::default();
    let spec = against(spec, columns, &mut problems);
    match (spec, problems.into_error()) {
        (Some(spec), None) => Ok(spec),
        (_, Some(error)) => Err(error),
        (None, None) => Err(ChartError::of(unreadable())),
    }
}

/// Checks a specification against rows, including that each row has a position on the axes.
pub(super) fn with_rows(spec: &Value, rows: &Rows, problems: &mut Problems) -> Option<ChartSpec> {
    let columns = rows.summary();
    let spec = against(spec, &columns, problems)?;
    places::check(&spec, rows, &columns, problems);
    Some(spec)
}

pub(super) fn unreadable() -> ChartProblem {
    ChartProblem::new(code::SPEC_MALFORMED, "spec", "could not be read")
}

/// Checks the form of a specification, whatever its rows are.
pub(super) fn form(value: &Value, problems: &mut Problems) {
    if let Some((mut spec, true)) = read::spec(value, problems) {
        shape::complete(&mut spec, problems);
        shape::check(&spec, problems);
    }
}

fn against(value: &Value, columns: &Columns, problems: &mut Problems) -> Option<ChartSpec> {
    let (mut spec, true) = read::spec(value, problems)? else {
        named_columns(value, columns, problems);
        return None;
    };
    shape::complete(&mut spec, problems);
    shape::check(&spec, problems);
    if columns.rows == 0 {
        problems.add(
            code::NO_ROWS,
            "data",
            "has no rows; pass at least one, or say that there is nothing to draw",
        );
    } else {
        series::check(&spec, columns, problems);
        axes::check(&spec, columns, problems);
    }
    if columns.rows > MAX_ROWS as u64 {
        let message = format!(
            "{} rows are over the limit of {MAX_ROWS}, and none is left out silently; aggregate or sample \
             to at most {MAX_ROWS} rows",
            columns.rows
        );
        problems.add(code::ROW_COUNT_TRUNCATION, "data", message);
    }
    let points = columns.rows.saturating_mul(spec.series.len() as u64);
    if points > MAX_POINTS as u64 {
        let message = format!(
            "{} rows of {} series are {points} values, over the limit of {MAX_POINTS}; aggregate the \
             rows, or show fewer series",
            columns.rows,
            spec.series.len()
        );
        problems.add(code::TOO_LARGE, "series", message);
    }
    references::check(&spec, columns, problems);
    measures::check(&spec, problems);
    axes::complete(&mut spec, columns);
    Some(spec)
}

/// Checks that rows have the named keys if the chart's type, which determines the meaning of keys,
/// is unknown.
fn named_columns(spec: &Value, columns: &Columns, problems: &mut Problems) {
    let named = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    for field in ["xKey", "yKey", "valueKey"] {
        if let Some(key) = named(spec, field).filter(|_| !problems.has(field)) {
            column(columns, &key, field, problems);
        }
    }
    let series = spec.get("series").and_then(Value::as_array);
    for (at, one) in series.into_iter().flatten().take(MAX_KEYS).enumerate() {
        let field = format!("series[{at}].key");
        if let Some(key) = named(one, "key").filter(|_| !problems.has(&field)) {
            column(columns, &key, &field, problems);
        }
    }
}

/// Returns the description of a key's values; notes a key that no row has.
fn column<'a>(
    columns: &'a Columns,
    key: &str,
    field: &str,
    problems: &mut Problems,
) -> Option<&'a ColumnSummary> {
    if key.is_empty() {
        // A missing key was noted when it was read.
        return None;
    }
    let column = columns.keys.get(key);
    if column.is_none() {
        let message = format!("no row has the key {}; name one that the rows have", quoted(key));
        let valid = columns.keys.keys().take(MAX_KEYS).map(|key| repeated(key));
        problems.push(ChartProblem::new(code::UNKNOWN_COLUMN, field, message).with_valid(valid));
    }
    column
}

/// Notes values that are not numbers, or a key without values.
fn numeric<'a>(
    columns: &'a Columns,
    key: &str,
    field: &str,
    problems: &mut Problems,
) -> Option<&'a ColumnSummary> {
    let column = column(columns, key, field, problems)?;
    let key = quoted(key);
    match column.kind {
        ColumnKind::Number => return Some(column),
        ColumnKind::Null => {
            let message = format!(
                "all {} values of {key} are null; leave it out, or compute it first",
                columns.rows
            );
            problems.add(code::EMPTY_SERIES, field, message);
        }
        ColumnKind::Text | ColumnKind::Time | ColumnKind::Mixed => {
            let numbers = columns
                .keys
                .iter()
                .filter(|(_, it)| it.kind == ColumnKind::Number);
            let message = format!(
                "the values of {key} are {}{}; convert them to numbers, or name another key",
                column.kind.name(),
                such_as(column)
            );
            let valid = numbers.take(MAX_KEYS).map(|(key, _)| repeated(key));
            problems.push(ChartProblem::new(code::NOT_NUMERIC, field, message).with_valid(valid));
        }
    }
    None
}

/// Returns an example of a column's values, if one is known.
fn such_as(column: &ColumnSummary) -> String {
    let sample = column
        .sample
        .as_deref()
        .map(|sample| format!(" such as {}", quoted(sample)));
    sample.unwrap_or_default()
}

/// Returns the largest magnitude of a column, if it is known.
fn magnitude(column: &ColumnSummary) -> Option<f64> {
    Some(column.min?.abs().max(column.max?.abs()))
}
