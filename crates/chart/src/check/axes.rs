//! Checks that each axis fits the values that it shows.

use crate::error::{ChartProblem, Problems, code, quoted};
use crate::{Axis, AxisType, ChartSpec, ChartType, ColumnKind, ColumnSummary, Columns, Format, Mark, Side};

use super::{ValueScale, column, magnitude, such_as};

pub(super) fn check(spec: &ChartSpec, columns: &Columns, problems: &mut Problems) {
    if let Some(key) = &spec.x_key
        && let Some(column) = column(columns, key, "xKey", problems)
    {
        // Counted values need no position: a histogram ignores null, and so does one of several
        // series.
        if spec.kind != ChartType::Histogram || !spec.series.is_empty() {
            nulls(column, columns, key, "xKey", problems);
        }
        if spec.kind.is_over_x() {
            over_x(spec, column, key, problems);
            repeated(spec, column, columns, key, problems);
        } else if spec.kind == ChartType::Heatmap {
            position(column, spec.x_axis.as_ref(), "xAxis", problems);
        }
    }
    if let (ChartType::Heatmap, Some(key)) = (spec.kind, &spec.y_key)
        && let Some(column) = columns.keys.get(key)
    {
        nulls(column, columns, key, "yKey", problems);
        position(column, spec.y_axis.as_ref(), "yAxis", problems);
    }
    for (field, axis) in [
        ("xAxis", &spec.x_axis),
        ("yAxis", &spec.y_axis),
        ("yAxisRight", &spec.y_axis_right),
    ] {
        if let Some(axis) = axis {
            written(spec, axis, field, columns, problems);
        }
    }
}

/// Fills in omitted fields that are known now.
pub(super) fn complete(spec: &mut ChartSpec, columns: &Columns) {
    if spec.kind.is_over_x() {
        let kind = spec.x_type(columns);
        spec.x_axis.get_or_insert_default().kind = Some(kind);
    }
    for axis in [&mut spec.x_axis, &mut spec.y_axis, &mut spec.y_axis_right]
        .into_iter()
        .flatten()
    {
        if axis.format == Some(Format::Percent) {
            axis.value_scale.get_or_insert(ValueScale::Fraction);
        }
    }
}

fn nulls(column: &ColumnSummary, columns: &Columns, key: &str, field: &str, problems: &mut Problems) {
    if column.nulls > 0 {
        let message = format!(
            "{} of {} rows have no value for {} and therefore no position in the chart; drop these rows, \
             or fill the key",
            column.nulls,
            columns.rows,
            quoted(key)
        );
        problems.add(code::ROW_COUNT_TRUNCATION, field, message);
    }
}

/// Rejects several rows at one position of the x axis, unless points may share it.
fn repeated(spec: &ChartSpec, column: &ColumnSummary, columns: &Columns, key: &str, problems: &mut Problems) {
    let points =
        spec.kind != ChartType::Candlestick && spec.series.iter().all(|it| spec.mark(it) == Mark::Scatter);
    let placed = columns.rows.saturating_sub(column.nulls);
    if let Some(distinct) = column.distinct.filter(|distinct| *distinct < placed && !points) {
        problems.push(duplicates(key, placed, distinct));
    }
}

pub(super) fn duplicates(key: &str, rows: u64, places: u64) -> ChartProblem {
    let message = format!(
        "{rows} rows have only {places} different values of {}; aggregate to one row each, or pivot so \
         that each entity is a key of its own and a series",
        quoted(key)
    );
    ChartProblem::new(code::DUPLICATE_ROWS, "data", message)
}

/// Checks that the x axis has the type that its values and the marks require.
fn over_x(spec: &ChartSpec, column: &ColumnSummary, key: &str, problems: &mut Problems) {
    use {AxisType as Type, ColumnKind as Kind};
    // Candles are drawn side by side on trading days, on an axis of names; marks over them follow.
    let joined = spec.kind != ChartType::Candlestick && spec.series.iter().any(|it| spec.mark(it).joins());
    let given = spec.x_axis.as_ref().and_then(|axis| axis.kind);
    let values = format!(
        "the values of {} are {}{}",
        quoted(key),
        column.kind.name(),
        such_as(column)
    );
    let date = "set xAxis.type to time";
    let bars = "draw bars, or write the values as ISO 8601 times if they are times";
    let (code, repair) = match (given, column.kind) {
        (Some(Type::Time | Type::Number) | None, Kind::Text | Kind::Mixed) if joined => (
            code::CATEGORICAL_RENDERED_AS_LINE,
            format!(
                "and a line joins them; {bars}, or set xAxis.type to category if they have an order that \
                 a line may follow"
            ),
        ),
        (Some(Type::Time), Kind::Text | Kind::Mixed) => (
            code::AXIS_TYPE_MISMATCH,
            "write every one as an ISO 8601 time, or set xAxis.type to category".to_owned(),
        ),
        (Some(Type::Number), Kind::Text | Kind::Mixed) | (None, Kind::Mixed) => (
            code::AXIS_TYPE_MISMATCH,
            "convert them to numbers, or set xAxis.type to category".to_owned(),
        ),
        (Some(Type::Number | Type::Category), Kind::Time) if joined => (
            code::TIME_SERIES_NO_DATE_AXIS,
            format!("but the axis is not a time axis; {date}"),
        ),
        (Some(Type::Number), Kind::Time) => (code::AXIS_TYPE_MISMATCH, date.to_owned()),
        (None, Kind::Number) if says_time(key) && is_epoch(column) => (
            code::TIME_SERIES_NO_DATE_AXIS,
            format!("since 1970, but the axis is not a time axis; {date}, or to number"),
        ),
        (Some(Type::Time), Kind::Number) if !is_epoch(column) => (
            code::AXIS_TYPE_MISMATCH,
            format!(
                "from {} to {}, which are not seconds or milliseconds since 1970; write ISO 8601 times (a \
                 year as the text \"2024\"), or set xAxis.type to number",
                column.min.unwrap_or_default(),
                column.max.unwrap_or_default()
            ),
        ),
        _ => return,
    };
    let problem = ChartProblem::new(code, "xAxis.type", format!("{values} {repair}"));
    problems.push(problem.with_valid(AxisType::NAMES.iter().copied()));
}

/// Checks that the axis of a heatmap can have its type.
fn position(column: &ColumnSummary, axis: Option<&Axis>, field: &str, problems: &mut Problems) {
    let fits = match axis.and_then(|axis| axis.kind) {
        None | Some(AxisType::Category) => true,
        Some(AxisType::Number) => column.kind == ColumnKind::Number,
        Some(AxisType::Time) => match column.kind {
            ColumnKind::Number => is_epoch(column),
            kind => kind == ColumnKind::Time,
        },
    };
    if !fits {
        let message = format!(
            "the values are {}{}; convert them, or leave the type out",
            column.kind.name(),
            such_as(column)
        );
        let problem = ChartProblem::new(code::AXIS_TYPE_MISMATCH, format!("{field}.type"), message);
        problems.push(problem.with_valid([AxisType::Category.name()]));
    }
}

fn says_time(key: &str) -> bool {
    let key = key.to_lowercase();
    ["time", "date", "timestamp", "ts", "day", "period", "bucket"]
        .iter()
        .any(|word| key == *word || key.contains("time") || key.ends_with(&format!("_{word}")))
}

/// Returns whether numbers can be times; unknown ranges count as valid.
fn is_epoch(column: &ColumnSummary) -> bool {
    let is_time = |number| crate::time::of_number(number).is_some();
    column.min.is_none_or(is_time) && column.max.is_none_or(is_time)
}

/// Checks that the format of an axis fits its type and its values.
fn written(spec: &ChartSpec, axis: &Axis, field: &str, columns: &Columns, problems: &mut Problems) {
    let of_values = field != "xAxis" && spec.kind != ChartType::Heatmap;
    if of_values && let Some(kind) = axis.kind.filter(|kind| *kind != AxisType::Number) {
        let message = format!(
            "is {}, but the axis shows numbers; leave it out, or set it to number",
            kind.name()
        );
        let problem = ChartProblem::new(code::AXIS_TYPE_MISMATCH, format!("{field}.type"), message);
        problems.push(problem.with_valid([AxisType::Number.name()]));
    }
    let x_type = spec.x_type(columns);
    if field == "xAxis" && spec.kind.is_over_x() && axis.format.is_some() && x_type != AxisType::Number {
        let message = format!(
            "is for numbers, but the axis is of type {}; leave it out",
            x_type.name()
        );
        problems.add(code::MEANINGLESS_KEY, "xAxis.format", message);
    }
    match (axis.format, axis.value_scale) {
        (Some(Format::Percent), None) => {
            let largest = shown(spec, field, columns).into_iter().reduce(f64::max);
            if let Some(largest) = largest.filter(|largest| *largest > 1.0) {
                let message = format!(
                    "is missing, and values up to {largest} can be either: say whether 0.12 or 12 is 12 %"
                );
                let problem = ChartProblem::new(code::MISSING_KEY, format!("{field}.valueScale"), message);
                problems.push(problem.with_valid(ValueScale::NAMES.iter().copied()));
            }
        }
        (Some(Format::Percent), Some(_)) | (_, None) => {}
        (_, Some(_)) => {
            let message = "is only for format percent; set that, or leave it out";
            problems.add(code::MEANINGLESS_KEY, format!("{field}.valueScale"), message);
        }
    }
}

/// Returns the largest magnitudes that an axis shows.
fn shown(spec: &ChartSpec, field: &str, columns: &Columns) -> Vec<f64> {
    let side = match field {
        "xAxis" => None,
        "yAxis" => Some(Side::Left),
        _ => Some(Side::Right),
    };
    let on_side = spec
        .series
        .iter()
        .filter(|it| Some(it.side()) == side)
        .map(|it| &it.key);
    let highest = spec
        .ohlc
        .iter()
        .filter(|_| side == Some(Side::Left))
        .map(|it| &it.high_key);
    let x = spec.x_key.iter().filter(|_| side.is_none());
    let keys = on_side.chain(highest).chain(x);
    keys.filter_map(|key| magnitude(columns.keys.get(key)?)).collect()
}
