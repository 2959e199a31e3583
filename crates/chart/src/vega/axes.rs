//! Axes in Vega-Lite: scale, title and number format.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{Axis, AxisType, ChartSpec, ChartType, Columns, Format, Mark, Side, ValueScale, time};

use super::names::humanized;
use super::scale::Scale;
use super::theme::CHARACTER;
use super::times::{self, Tick};
use super::values::Plot;

/// Distance in pixels between the outermost values of a continuous axis and the edges of the plot.
const PADDING: u32 = 8;
/// Values that vary by less than this part of the largest are shown without zero.
const FLAT: f64 = 0.5;
/// Maximum length of a name on an axis, in pixels.
const LONGEST: u32 = 120;
/// Height of a line of names that are written at an angle, in pixels.
const LINE: usize = 14;

/// Formats a time as briefly as its tick permits, where a reader who zooms chooses the ticks. A
/// second line adds what the first tick leaves out: the date of a time of day, or the year of a
/// date; the first days of a later year also show theirs.
const MOMENT: &str = "[utcmilliseconds(datum.value) ? utcFormat(datum.value, '%H:%M:%S.%L') : \
                      utcseconds(datum.value) ? utcFormat(datum.value, '%H:%M:%S') : \
                      utchours(datum.value) || utcminutes(datum.value) ? utcFormat(datum.value, '%H:%M') \
                      : utcdate(datum.value) > 1 ? utcFormat(datum.value, '%b %-d') : \
                      utcmonth(datum.value) ? utcFormat(datum.value, '%b') : utcFormat(datum.value, \
                      '%Y'), utchours(datum.value) || utcminutes(datum.value) || utcseconds(datum.value) \
                      || utcmilliseconds(datum.value) ? (datum.index ? '' : utcFormat(datum.value, '%b \
                      %-d, %Y')) : (!datum.index || utcmonth(datum.value) == 0 && utcdate(datum.value) <= \
                      7) && (utcmonth(datum.value) || utcdate(datum.value) > 1) ? utcFormat(datum.value, \
                      '%Y') : '']";

/// Returns the x channel without its field and names, which are in only one layer.
pub(super) fn x(plot: &Plot<'_>) -> Value {
    let axis = plot.spec.x_axis.as_ref();
    let mut title = title(axis, plot.x_name().as_deref());
    match plot.x {
        AxisType::Time => json!({
            "type": "temporal",
            "scale": { "type": "utc", "padding": PADDING },
            // Dates need no name.
            "title": axis.and_then(|axis| axis.label.as_deref()),
            "axis": ticks(plot),
        }),
        AxisType::Number => {
            let mut written = written(axis, None);
            written["tickCount"] = json!({ "expr": "clamp(width / 80, 3, 10)" });
            json!({
                "type": "quantitative",
                "scale": { "zero": false, "nice": true, "padding": PADDING },
                "title": title,
                "axis": written,
            })
        }
        AxisType::Category => {
            // Bins touch, so what is counted in them follows without a gap.
            let (inner, outer) = if plot.spec.kind == ChartType::Histogram {
                (0.0, 0.0)
            } else {
                (0.2, 0.1)
            };
            let written = match days(plot) {
                Some(days) => {
                    title = json!(axis.and_then(|axis| axis.label.as_deref()));
                    days
                }
                None => names(plot.names.iter().map(String::as_str)),
            };
            json!({
                "type": "ordinal",
                "sort": null,
                "scale": { "type": "band", "paddingInner": inner, "paddingOuter": outer },
                "title": title,
                "axis": written,
            })
        }
    }
}

/// Returns how names are written: side by side if the chart is wide enough, otherwise at an angle.
pub(super) fn names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Value {
    let count = names.clone().count();
    let longest = names.map(|name| name.chars().count()).max().unwrap_or_default();
    let length = u32::try_from(longest).map_or(LONGEST.into(), |it| f64::from(it) * CHARACTER);
    let room = (length.min(LONGEST.into()) + 10.0) * f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let by_room =
        |slanted: &str, level: &str| json!({ "expr": format!("width < {room:.0} ? {slanted} : {level}") });
    json!({
        "labelAngle": by_room("-40", "0"),
        "labelAlign": by_room("'right'", "'center'"),
        "labelBaseline": by_room("'middle'", "'top'"),
        "labelLimit": LONGEST,
        // Names at an angle have more room than their outlines.
        "labelOverlap": { "expr": format!("width < {}", count * LINE) },
        "ticks": false,
    })
}

/// Marks and writes as many times as fit.
fn ticks(plot: &Plot<'_>) -> Value {
    let times: BTreeSet<_> = plot
        .rows
        .iter()
        .filter_map(|row| plot.place(row)?.as_i64())
        .collect();
    let times: Vec<_> = times.into_iter().collect();
    let chosen = (!plot.spec.brush).then(|| times::continuous(&times)).flatten();
    let Some(chosen) = chosen else {
        return json!({ "labelExpr": MOMENT, "labelOverlap": "greedy",
            "tickCount": { "expr": "clamp(width / 80, 3, 10)" } });
    };
    let labels: Map<_, _> = chosen
        .iter()
        .map(|tick| (tick.time.to_string(), json!(tick.lines)))
        .collect();
    json!({
        "values": chosen.iter().map(|tick| tick.time).collect::<Vec<_>>(),
        "labelExpr": format!("{}[time(datum.value)]", Value::Object(labels)),
        "labelOverlap": "greedy",
    })
}

/// Marks and writes as many days as fit, if the names of an axis are days or times in their order.
fn days(plot: &Plot<'_>) -> Option<Value> {
    let times: Vec<_> = plot
        .names
        .iter()
        .map(|name| time::of_text(name))
        .collect::<Option<_>>()?;
    if !times.is_sorted() {
        return None;
    }
    let chosen = times::ordinal(&times)?;
    let at = |tick: &Tick| times.iter().position(|time| *time == tick.time);
    let values: Vec<_> = chosen
        .iter()
        .filter_map(|tick| plot.names.get(at(tick)?))
        .collect();
    // The index of a tick is a share of the last one's.
    let labels = json!(chosen.iter().map(|tick| &tick.lines).collect::<Vec<_>>());
    let last = chosen.len().saturating_sub(1);
    Some(json!({
        "values": values,
        "labelExpr": format!("{labels}[round(datum.index * {last})]"),
        "labelAngle": 0,
        "labelOverlap": "greedy",
    }))
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
        .map(|series| plot.name(series));
    let only = match plot.spec.kind {
        ChartType::Histogram if !plot.is_binned() => Some("Count"),
        ChartType::Candlestick if side == Side::Left => None,
        _ => only,
    };
    let scale = plot.scale(side);
    let mut written = written(axis.as_ref(), scale);
    written["orient"] = json!(orient);
    written["titleLimit"] = json!({ "expr": if plot.is_double() { "width / 2 - 8" } else { "width" } });
    // The grids of two axes would be one, or a tangle.
    written["grid"] = json!(side == Side::Left || !plot.is_double());
    let range = if let Some(scale) = scale {
        written["values"] = json!(scale.ticks);
        json!({ "domain": [scale.domain.0, scale.domain.1], "nice": false })
    } else {
        written["tickCount"] = json!(5);
        json!({ "zero": from_zero(plot.spec, plot.columns, side) })
    };
    json!({
        "type": "quantitative",
        "scale": range,
        "title": title(axis.as_ref(), only),
        "axis": written,
    })
}

/// Returns the title of an axis: its label, else the name of what it shows.
pub(super) fn title(axis: Option<&Axis>, otherwise: Option<&str>) -> Value {
    let label = axis.and_then(|axis| axis.label.as_deref());
    json!(label.or(otherwise))
}

/// Returns the title of an axis that shows a key.
pub(super) fn title_of_key(axis: Option<&Axis>, key: &str) -> Value {
    title(axis, Some(&humanized(key)))
}

/// Returns the number format of an axis, with the decimals that tell its ticks apart.
fn written(axis: Option<&Axis>, scale: Option<&Scale>) -> Value {
    let largest = scale.map_or(0.0, |scale| scale.domain.0.abs().max(scale.domain.1.abs()));
    let decimals = scale.map_or(2, |scale| scale.decimals);
    let Some((format, percent)) = axis.and_then(|axis| Some((axis.format?, axis.value_scale))) else {
        return match scale {
            Some(_) if largest >= 1e6 => json!({ "labelExpr": brief("") }),
            Some(_) if (1e-3..1e6).contains(&largest) => json!({ "format": format!(",.{decimals}f") }),
            _ => json!({}),
        };
    };
    match format {
        Format::Number => json!({ "format": ",.12~g" }),
        Format::Currency if largest >= 1e6 => json!({ "labelExpr": brief("$") }),
        Format::Currency => json!({ "format": format!("$,.{}~f", decimals.clamp(2, 12)) }),
        Format::Percent if percent == Some(ValueScale::PercentPoints) => {
            json!({ "labelExpr": format!("format(datum.value, ',.{}~f') + '%'", decimals.clamp(2, 12)) })
        }
        Format::Percent => json!({ "format": format!(",.{}~%", (decimals - 2).clamp(2, 12)) }),
        Format::Compact => json!({ "labelExpr": brief("") }),
    }
}

/// Returns an expression that writes 1,500,000 as 1.5M. A billion is G to physicists and B to other
/// people, who know no 500m for a half either.
fn brief(sign: &str) -> String {
    format!(
        "abs(datum.value) < 1 ? format(datum.value, '{sign},.6~r') : replace(format(datum.value, \
         '{sign},.6~s'), 'G', 'B')"
    )
}

/// Returns whether an axis starts at zero: always if lengths are compared, else if the values are
/// near zero.
pub(super) fn from_zero(spec: &ChartSpec, columns: &Columns, side: Side) -> bool {
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
