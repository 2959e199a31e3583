//! Checks that each type of chart has the keys that it needs and no meaningless ones.

use crate::error::{ChartProblem, Problems, code, quoted};
use crate::{ChartSeries, ChartSpec, ChartType, Mark, Side};

/// Converts the short form of one series to a series.
pub(super) fn complete(spec: &mut ChartSpec, problems: &mut Problems) {
    if !spec.kind.is_over_x() || spec.kind == ChartType::Candlestick {
        return;
    }
    match spec.y_key.take() {
        Some(key) if spec.series.is_empty() => spec.series.push(ChartSeries {
            key,
            ..ChartSeries::default()
        }),
        Some(_) => problems.add(
            code::MEANINGLESS_KEY,
            "yKey",
            "must not be combined with series; leave it out, because it is only a short form of one series",
        ),
        None => {}
    }
}

pub(super) fn check(spec: &ChartSpec, problems: &mut Problems) {
    needed(spec, problems);
    meaningless(spec, problems);
    for (at, series) in spec.series.iter().enumerate() {
        one(spec, series, &format!("series[{at}]"), problems);
        again(spec, at, problems);
    }
    sides(spec, problems);
}

fn needed(spec: &ChartSpec, problems: &mut Problems) {
    let kind = spec.kind;
    let mut need = |there: bool, field: &str, what: &str| {
        if !there {
            let message = format!("is missing; a {} needs {what}", named(kind));
            problems.add(code::MISSING_KEY, field, message);
        }
    };
    match kind {
        ChartType::Histogram => {
            let there = spec.x_key.is_some() || !spec.series.is_empty();
            need(
                there,
                "xKey",
                "the key of the numbers that it counts, as xKey or as a series",
            );
        }
        ChartType::Heatmap => {
            need(spec.x_key.is_some(), "xKey", "the key of its columns");
            need(spec.y_key.is_some(), "yKey", "the key of its lines");
            need(
                spec.value_key.is_some(),
                "valueKey",
                "the key of the numbers that colour its cells",
            );
        }
        ChartType::Candlestick => {
            need(spec.x_key.is_some(), "xKey", "the key of its x axis");
            need(
                spec.ohlc.is_some(),
                "ohlc",
                "openKey, highKey, lowKey and closeKey",
            );
        }
        _ => {
            need(spec.x_key.is_some(), "xKey", "the key of its x axis");
            need(!spec.series.is_empty(), "series", "at least one series");
        }
    }
}

fn named(kind: ChartType) -> String {
    match kind {
        ChartType::Histogram | ChartType::Heatmap => kind.name().to_owned(),
        kind => format!("{} chart", kind.name()),
    }
}

fn meaningless(spec: &ChartSpec, problems: &mut Problems) {
    use ChartType::{Area, Bar, Candlestick, Composed, Heatmap, Histogram};
    let kind = spec.kind;
    let shown_over_x = kind.is_over_x();
    let stackable = match kind {
        Bar | Area => true,
        Composed => spec
            .series
            .iter()
            .any(|it| matches!(spec.mark(it), Mark::Bar | Mark::Area)),
        _ => false,
    };
    let stray = spec
        .series
        .iter()
        .any(|it| Some(&it.key) != spec.value_key.as_ref());
    let rules = [
        ("yKey", spec.y_key.is_some() && kind != Heatmap, "heatmap"),
        ("valueKey", spec.value_key.is_some() && kind != Heatmap, "heatmap"),
        ("ohlc", spec.ohlc.is_some() && kind != Candlestick, "candlestick"),
        (
            "series",
            kind == Heatmap && stray,
            "any other type; a heatmap has valueKey",
        ),
        (
            "stacked",
            spec.stacked && !stackable,
            "bar and area, or composed of such",
        ),
        ("brush", spec.brush && !shown_over_x, "types over an x axis"),
        (
            "yAxisRight",
            spec.y_axis_right.is_some() && !shown_over_x,
            "types over an x axis",
        ),
        (
            "referenceLines",
            kind == Heatmap && !spec.reference_lines.is_empty(),
            "any other type",
        ),
        (
            "referenceAreas",
            kind == Heatmap && !spec.reference_areas.is_empty(),
            "any other type",
        ),
    ];
    for (field, broken, for_what) in rules {
        if broken {
            let message = format!(
                "means nothing in a {}; leave it out (it is for {for_what})",
                named(kind)
            );
            problems.add(code::MEANINGLESS_KEY, field, message);
        }
    }
    if kind == Histogram && spec.x_key.is_some() && spec.series.len() > 1 {
        let message = "xKey with series means rows that are bins already, each with one count: give one \
                       series, or leave xKey out";
        problems.add(code::MEANINGLESS_KEY, "series", message);
    }
}

fn one(spec: &ChartSpec, series: &ChartSeries, field: &str, problems: &mut Problems) {
    let kind = spec.kind;
    let mark = spec.mark(series);
    let own = kind.mark();
    match kind {
        ChartType::Composed | ChartType::Candlestick => {}
        ChartType::Heatmap | ChartType::Histogram if series.mark.is_some() => {
            let message = format!("means nothing in a {}; leave it out", named(kind));
            problems.add(code::MEANINGLESS_KEY, format!("{field}.type"), message);
        }
        _ if mark != own => {
            let message = format!(
                "is {} in a chart of type {}; set the chart's type to composed, or leave it out",
                mark.name(),
                kind.name()
            );
            let problem = ChartProblem::new(code::INVALID_VALUE, format!("{field}.type"), message);
            problems.push(problem.with_valid([own.name()]));
        }
        _ => {}
    }
    if series.side() == Side::Right && !kind.is_over_x() {
        let message = format!("a {} has no right axis; leave it out", named(kind));
        problems.add(code::MEANINGLESS_KEY, format!("{field}.yAxis"), message);
    }
    let why = match mark {
        _ if series.error_key.is_none() => return,
        _ if !kind.is_over_x() => format!("a {} shows no errors", named(kind)),
        Mark::Area => "an area shows no errors; draw a line".to_owned(),
        Mark::Bar if spec.stacked => {
            "errors can not be read off stacked bars; set stacked to false".to_owned()
        }
        _ => return,
    };
    problems.add(
        code::MEANINGLESS_KEY,
        format!("{field}.errorKey"),
        format!("{why}, or leave it out"),
    );
}

/// Checks that an axis with a description has series.
fn sides(spec: &ChartSpec, problems: &mut Problems) {
    if !spec.kind.is_over_x() {
        return;
    }
    let has = |side| spec.series.iter().any(|it| it.side() == side);
    if spec.y_axis_right.is_some() && !has(Side::Right) {
        let message =
            "no series is on the right axis; set yAxis of a series to right, or leave yAxisRight out";
        problems.add(code::UNUSED_AXIS, "yAxisRight", message);
    }
    let left = spec.kind == ChartType::Candlestick || has(Side::Left) || spec.series.is_empty();
    if spec.y_axis.is_some() && !left {
        let message =
            "every series is on the right axis; describe it as yAxisRight, or move a series to the left";
        problems.add(code::UNUSED_AXIS, "yAxis", message);
    }
}

/// Notes a duplicate series, or one with another's name.
fn again(spec: &ChartSpec, at: usize, problems: &mut Problems) {
    let (before, series) = (&spec.series[..at], &spec.series[at]);
    let same = |other: &&_| spec.mark(other) == spec.mark(series);
    let mut same_key = before
        .iter()
        .filter(|other| other.key == series.key && !series.key.is_empty());
    if same_key.any(|other| same(&other)) {
        let message = format!(
            "{} is a series already; leave it out, or name another key",
            quoted(&series.key)
        );
        problems.add(code::DUPLICATE_SERIES, format!("series[{at}].key"), message);
    } else if !series.key.is_empty() && before.iter().any(|other| other.name() == series.name()) {
        let message = format!(
            "{} is the name of another series; give each its own label",
            quoted(series.name())
        );
        problems.add(code::DUPLICATE_SERIES, format!("series[{at}].label"), message);
    }
}
