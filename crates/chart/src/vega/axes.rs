//! Axes in Vega-Lite: scale, title and number format.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    Axis, AxisType, ChartSeries, ChartSpec, ChartType, Columns, Format, Mark, Side, ValueScale, time,
};

use super::values::Plot;

/// Maximum number of names on an axis that are written horizontally.
const LEVEL: usize = 8;
/// Maximum number of times on an axis that are all written.
const FEW: usize = 12;
/// Values that vary by less than this part of the largest are shown without zero.
const FLAT: f64 = 0.5;

/// Formats a time as briefly as its tick permits. A second line adds what the first tick leaves
/// out: the date of a time of day, or the year of a date; the first days of a later year also show
/// theirs.
const MOMENT: &str = "[\
    utcmilliseconds(datum.value) ? utcFormat(datum.value, '%H:%M:%S.%L') \
    : utcseconds(datum.value) ? utcFormat(datum.value, '%H:%M:%S') \
    : utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') \
    : utcdate(datum.value) > 1 ? utcFormat(datum.value, '%b %d') \
    : utcmonth(datum.value) ? utcFormat(datum.value, '%b') \
    : utcFormat(datum.value, '%Y'), \
    utchours(datum.value) || utcminutes(datum.value) || utcseconds(datum.value) || utcmilliseconds(datum.value) \
    ? (datum.index ? '' : utcFormat(datum.value, '%b %d, %Y')) \
    : (!datum.index || utcmonth(datum.value) == 0 && utcdate(datum.value) <= 7) \
    && (utcmonth(datum.value) || utcdate(datum.value) > 1) ? utcFormat(datum.value, '%Y') \
    : '']";

/// Returns the x channel without its field and names, which are in only one layer.
pub(super) fn x(plot: &Plot<'_>) -> Value {
    let axis = plot.spec.x_axis.as_ref();
    let title = title(axis, name(plot));
    match plot.x {
        AxisType::Time => {
            json!({ "type": "temporal", "scale": { "type": "utc" }, "title": title, "axis": ticks(plot) })
        }
        AxisType::Number => json!({
            "type": "quantitative",
            "scale": { "zero": false, "nice": true },
            "title": title,
            "axis": written(axis),
        }),
        AxisType::Category => {
            // Bins touch, so what is counted in them follows without a gap.
            let (inner, outer) = if plot.spec.kind == ChartType::Histogram {
                (0.0, 0.0)
            } else {
                (0.2, 0.1)
            };
            json!({
                "type": "ordinal",
                "sort": null,
                "scale": { "type": "band", "paddingInner": inner, "paddingOuter": outer },
                "title": title,
                "axis": names(plot.names.len()),
            })
        }
    }
}

/// Returns how this many names are written side by side.
pub(super) fn names(count: usize) -> Value {
    let angle = if count > LEVEL { -45 } else { 0 };
    json!({ "labelAngle": angle, "labelOverlap": true, "labelLimit": 120 })
}

/// Marks and writes each of a few times; of many, the renderer picks some.
fn ticks(plot: &Plot<'_>) -> Value {
    let times: BTreeSet<_> = plot
        .rows
        .iter()
        .filter_map(|row| plot.place(row)?.as_i64())
        .collect();
    let picked = json!({ "labelExpr": MOMENT, "labelOverlap": true });
    if times.len() > FEW {
        return picked;
    }
    let texts: Vec<_> = times.iter().map(|time| time::text(*time)).collect();
    let all_end = |end: &str| texts.iter().all(|text| text.ends_with(end));
    let format = match texts.iter().map(String::len).max() {
        Some(10) if all_end("-01-01") => "%Y",
        Some(10) if all_end("-01") => "%b %Y",
        Some(10) => "%Y-%m-%d",
        Some(16) => "%Y-%m-%d %H:%M",
        _ => return picked,
    };
    json!({ "values": times, "format": format, "labelOverlap": true })
}

/// Returns what the x axis shows: its key, or the only series of a histogram.
fn name<'a>(plot: &Plot<'a>) -> Option<&'a str> {
    let only = plot.spec.series.first().filter(|_| plot.spec.series.len() == 1);
    plot.spec.x_key.as_deref().or_else(|| only.map(ChartSeries::name))
}

/// Returns the y channel of a side without its field.
pub(super) fn y(plot: &Plot<'_>, side: Side) -> Value {
    let (axis, orient) = match side {
        Side::Left => (&plot.spec.y_axis, "left"),
        Side::Right => (&plot.spec.y_axis_right, "right"),
    };
    let mut on_side = plot.spec.series.iter().filter(|it| it.side() == side);
    // A single series needs no legend if the axis has its name.
    let only = on_side
        .next()
        .filter(|_| on_side.next().is_none())
        .map(ChartSeries::name);
    let only = match plot.spec.kind {
        ChartType::Histogram if !plot.is_binned() => Some("count"),
        ChartType::Candlestick if side == Side::Left => None,
        _ => only,
    };
    let mut written = written(axis.as_ref());
    written["orient"] = json!(orient);
    json!({
        "type": "quantitative",
        "scale": scale(plot, side),
        "title": title(axis.as_ref(), only),
        "axis": written,
    })
}

/// Returns the range of a y axis. Marks that are drawn in two parts have two scales, which agree
/// because the range is explicit.
fn scale(plot: &Plot<'_>, side: Side) -> Value {
    let zero = from_zero(plot.spec, plot.columns, side);
    let range = plot.is_split(side).then(|| plot.range(side)).flatten();
    match range {
        Some((min, max)) if zero => json!({ "domain": [min.min(0.0), max.max(0.0)], "nice": true }),
        Some((min, max)) => json!({ "domain": [min, max], "nice": true }),
        None => json!({ "zero": zero }),
    }
}

/// Returns the title of an axis: its label, else the name of what it shows.
pub(super) fn title(axis: Option<&Axis>, otherwise: Option<&str>) -> Value {
    let label = axis.and_then(|axis| axis.label.as_deref());
    json!(label.or(otherwise))
}

/// Returns the number format of an axis.
pub(super) fn written(axis: Option<&Axis>) -> Value {
    let Some((format, scale)) = axis.and_then(|axis| Some((axis.format?, axis.value_scale))) else {
        return json!({});
    };
    match format {
        Format::Number => json!({ "format": ",.12~g" }),
        Format::Currency => json!({ "format": "$,.2~f" }),
        Format::Percent if scale == Some(ValueScale::PercentPoints) => {
            json!({ "labelExpr": "format(datum.value, ',.2~f') + '%'" })
        }
        Format::Percent => json!({ "format": ",.2~%" }),
        // A billion is G to physicists and B to other people.
        Format::Compact => json!({ "labelExpr": "replace(format(datum.value, '.3~s'), 'G', 'B')" }),
    }
}

/// Returns whether an axis starts at zero: always if lengths are compared, else if the values are
/// near zero.
fn from_zero(spec: &ChartSpec, columns: &Columns, side: Side) -> bool {
    let mut range: Option<(f64, f64)> = None;
    let mut widen = |key: &str| {
        let column = columns.keys.get(key);
        if let Some((min, max)) = column.and_then(|it| it.min.zip(it.max)) {
            let (least, most) = range.unwrap_or((min, max));
            range = Some((least.min(min), most.max(max)));
        }
    };
    for series in spec.series.iter().filter(|it| it.side() == side) {
        if matches!(spec.mark(series), Mark::Bar | Mark::Area) {
            return true;
        }
        widen(&series.key);
    }
    if let Some(ohlc) = spec.ohlc.as_ref().filter(|_| side == Side::Left) {
        widen(&ohlc.low_key);
        widen(&ohlc.high_key);
    }
    let Some((min, max)) = range else { return true };
    let (near, far) = if min > 0.0 { (min, max) } else { (-max, -min) };
    near <= 0.0 || near < far * FLAT
}
