//! Reading a specification from untrusted JSON: reports all mistakes in its form at once, each with
//! its path.

use cellblock_protocol::text::acts;
use cellblock_settings::json::{STRING, TypeMistake};
use serde_json::Value;

use super::error::{Problems, code, quoted};
use super::rows::MAX_KEY;
use super::{
    Axis, AxisType, ChartSeries, ChartSpec, ChartType, Format, Mark, Ohlc, ReferenceArea, ReferenceLine,
    ValueScale,
};

/// Maximum number of series, of measures, of reference lines and of reference areas.
const MAX_ENTRIES: usize = 20;
/// Maximum length of a label in characters.
const MAX_LABEL: usize = 100;
/// Maximum length of a color in characters.
const MAX_COLOR: usize = 30;

/// The keys of each object of a specification.
pub(super) mod keys {
    pub(in super::super) const SPEC: &[&str] = &[
        "type",
        "xKey",
        "yKey",
        "valueKey",
        "series",
        "expectedMeasures",
        "xAxis",
        "yAxis",
        "yAxisRight",
        "legend",
        "stacked",
        "brush",
        "referenceLines",
        "referenceAreas",
        "ohlc",
    ];
    pub(in super::super) const SERIES: &[&str] = &["key", "label", "type", "errorKey", "yAxis", "satisfies"];
    pub(in super::super) const AXIS: &[&str] = &["type", "label", "format", "valueScale"];
    pub(in super::super) const LINE: &[&str] = &["x", "y", "label", "color", "yAxis"];
    pub(in super::super) const AREA: &[&str] = &["x1", "x2", "y1", "y2", "label", "color", "yAxis"];
    pub(in super::super) const OHLC: &[&str] = &["openKey", "highKey", "lowKey", "closeKey"];
}

/// Reads a specification; the flag says whether its type is usable (otherwise it is read as a line
/// chart). Invalid values are noted and left out.
pub(super) fn spec(value: &Value, problems: &mut Problems) -> Option<(ChartSpec, bool)> {
    let fields = Fields::of(value, "", keys::SPEC, problems)?;
    let kind = fields.required_name("type", ChartType::of, ChartType::NAMES, problems);
    let series = fields.list("series", problems, series, keys::SERIES);
    let reference_lines = fields.list("referenceLines", problems, line, keys::LINE);
    let reference_areas = fields.list("referenceAreas", problems, area, keys::AREA);
    let ohlc = fields.object("ohlc", keys::OHLC, problems).map(|ohlc| Ohlc {
        open_key: ohlc.required_key("openKey", problems),
        high_key: ohlc.required_key("highKey", problems),
        low_key: ohlc.required_key("lowKey", problems),
        close_key: ohlc.required_key("closeKey", problems),
    });
    let spec = ChartSpec {
        x_key: fields.text("xKey", MAX_KEY, problems),
        y_key: fields.text("yKey", MAX_KEY, problems),
        value_key: fields.text("valueKey", MAX_KEY, problems),
        series,
        expected_measures: measures(&fields, problems),
        x_axis: axis(&fields, "xAxis", problems),
        y_axis: axis(&fields, "yAxis", problems),
        y_axis_right: axis(&fields, "yAxisRight", problems),
        legend: fields.flag("legend", problems),
        stacked: fields.flag("stacked", problems) == Some(true),
        brush: fields.flag("brush", problems) == Some(true),
        reference_lines,
        reference_areas,
        ohlc,
        kind: kind.unwrap_or(ChartType::Line),
    };
    Some((spec, kind.is_some()))
}

fn series(fields: &Fields<'_>, problems: &mut Problems) -> ChartSeries {
    ChartSeries {
        key: fields.required_key("key", problems),
        label: fields.text("label", MAX_LABEL, problems),
        mark: fields.name("type", Mark::of, Mark::NAMES, problems),
        error_key: fields.text("errorKey", MAX_KEY, problems),
        y_axis: fields.side(problems),
        satisfies: fields.text("satisfies", MAX_LABEL, problems),
    }
}

fn axis(fields: &Fields<'_>, key: &'static str, problems: &mut Problems) -> Option<Axis> {
    let fields = fields.object(key, keys::AXIS, problems)?;
    Some(Axis {
        kind: fields.name("type", AxisType::of, AxisType::NAMES, problems),
        label: fields.text("label", MAX_LABEL, problems),
        format: fields.name("format", Format::of, Format::NAMES, problems),
        value_scale: fields.name("valueScale", ValueScale::of, ValueScale::NAMES, problems),
    })
}

fn line(fields: &Fields<'_>, problems: &mut Problems) -> ReferenceLine {
    ReferenceLine {
        x: fields.place("x", problems),
        y: fields.number("y", problems),
        label: fields.text("label", MAX_LABEL, problems),
        color: fields.color("stroke", problems),
        y_axis: fields.side(problems),
    }
}

fn area(fields: &Fields<'_>, problems: &mut Problems) -> ReferenceArea {
    ReferenceArea {
        x1: fields.place("x1", problems),
        x2: fields.place("x2", problems),
        y1: fields.number("y1", problems),
        y2: fields.number("y2", problems),
        label: fields.text("label", MAX_LABEL, problems),
        color: fields.color("fill", problems),
        y_axis: fields.side(problems),
    }
}

fn measures(fields: &Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let mut measures = Vec::new();
    for (at, value) in fields.entries("expectedMeasures", problems).iter().enumerate() {
        let path = fields.path(&format!("expectedMeasures[{at}]"));
        match value {
            Value::String(text) if check_text(text, &path, MAX_LABEL, problems) => {
                measures.push(text.clone());
            }
            Value::String(_) => {}
            other => problems.push(TypeMistake::new(path, STRING, other).into()),
        }
    }
    measures
}

/// Checks the length and characters of a text.
pub(super) fn check_text(text: &str, path: &str, most: usize, problems: &mut Problems) -> bool {
    let actual = text.chars().count();
    if actual > most {
        let message = format!("{actual} characters are over the limit of {most}; shorten it");
        problems.add(code::TOO_LARGE, path, message);
    } else if text.chars().any(acts) {
        let message = format!(
            "{} has line breaks or control characters; leave them out",
            quoted(text)
        );
        problems.add(code::INVALID_VALUE, path, message);
    } else {
        return true;
    }
    false
}

/// Returns whether a color is safe for a renderer: hexadecimal or a name.
fn is_color(text: &str) -> bool {
    match text.strip_prefix('#') {
        Some(digits) => {
            matches!(digits.len(), 3 | 6 | 8) && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        }
        None => (3..=MAX_COLOR).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_alphabetic()),
    }
}

mod fields;

use fields::Fields;
