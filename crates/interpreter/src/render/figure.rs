//! Charts in words: what they show, so that a model need not read values off a picture.

use cellblock_protocol::{Axes, FigureLibrary, Scalar, Series, SeriesKind};

use super::page::cut;
use super::plain::line;
use super::{label, note, with_remark};
use crate::output::Figure;

/// Maximum length of a label that is shown.
const LABEL: usize = 80;
/// Maximum number of slices of a pie that are shown.
const SLICES: usize = 20;

/// Describes a chart in at most so many characters, series by series.
pub(super) fn text(figure: &Figure, chars: usize) -> String {
    let library = match figure.library {
        FigureLibrary::Matplotlib => "matplotlib",
        FigureLibrary::Altair => "Altair",
        FigureLibrary::VegaLite => "Vega-Lite",
    };
    let name = label(figure.name.as_deref());
    let title = figure
        .title
        .as_deref()
        .map(|title| format!(" \"{}\"", cut(&line(title), LABEL)))
        .unwrap_or_default();
    let size = match (&figure.image, figure.width, figure.height) {
        (Some(_), Some(width), Some(height)) => format!("{width}×{height} pixels"),
        _ => "no picture".to_owned(),
    };
    let mut text = format!("{name}figure{title}, {library}, {size}");
    let note = note(figure.note.as_deref());
    let cue = if figure.truncated {
        "\n(a part of this figure was too large and is left out)"
    } else {
        ""
    };
    let room = chars.saturating_sub(note.chars().count() + cue.chars().count());
    let lines: Vec<String> = figure
        .axes
        .iter()
        .enumerate()
        .filter_map(panel)
        .chain(figure.series.iter().map(describe))
        .collect();
    let mut used = text.chars().count();
    for (shown, next) in lines.iter().enumerate() {
        let more = format!(
            "\n({} more series and panels are not described)",
            lines.len() - shown
        );
        let last = shown + 1 == lines.len();
        let reserve = if last { 0 } else { more.chars().count() };
        let size = next.chars().count() + 1;
        if used + size + reserve > room {
            text.push_str(&more);
            break;
        }
        used += size;
        text.push('\n');
        text.push_str(next);
    }
    with_remark(&text, &(note + cue), chars)
}

fn panel((number, axes): (usize, &Axes)) -> Option<String> {
    let part = |what: &str, text: &Option<String>| {
        text.as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| format!("{what} \"{}\"", cut(&line(text), LABEL)))
    };
    let parts = [
        part("title", &axes.title),
        part("x", &axes.xlabel),
        part("y", &axes.ylabel),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("- panel {}: {}", number + 1, parts.join(", ")))
}

fn describe(series: &Series) -> String {
    let kind = match series.kind {
        SeriesKind::Line => "line",
        SeriesKind::Bar => "bars",
        SeriesKind::Scatter => "points",
        SeriesKind::Area => "area",
        SeriesKind::Image => "raster",
        SeriesKind::Hist => "histogram",
        SeriesKind::Pie => "pie",
        SeriesKind::Box => "box plot",
        SeriesKind::Heatmap => "heatmap",
        SeriesKind::Other => "other drawing",
    };
    let name = series
        .label
        .as_deref()
        .map(|label| format!(" \"{}\"", cut(&line(label), LABEL)))
        .unwrap_or_default();
    if matches!(series.kind, SeriesKind::Image | SeriesKind::Other) {
        return format!("- {kind}{name}: no data");
    }
    if series.kind == SeriesKind::Pie {
        let slices = series.x.iter().zip(&series.y).take(SLICES);
        let mut shown: Vec<_> = slices
            .map(|(label, size)| format!("{} {}", scalar(label), scalar(size)))
            .collect();
        if series.x.len() > SLICES {
            shown.push(format!("{} more", series.x.len() - SLICES));
        }
        return format!("- {kind}{name}: {}", shown.join(", "));
    }
    let x = match (series.x.first(), series.x.last()) {
        (Some(first), Some(last)) => format!(", x from {} to {}", scalar(first), scalar(last)),
        _ => String::new(),
    };
    let values = series.columns.get("z").unwrap_or(&series.y);
    let numbers = || values.iter().filter_map(number);
    let (what, last) = match series.kind {
        SeriesKind::Heatmap => ("z", None),
        _ => ("y", values.last()),
    };
    let y = match (numbers().reduce(f64::min), numbers().reduce(f64::max)) {
        (Some(low), Some(high)) => {
            let last = last.map_or_else(String::new, |end| format!(", last {}", scalar(end)));
            format!(", {what} between {low:?} and {high:?}{last}")
        }
        _ => String::new(),
    };
    let errors = if series.kind != SeriesKind::Box
        && ["high", "x_high"]
            .iter()
            .any(|it| series.columns.contains_key(*it))
    {
        ", with error bars"
    } else {
        ""
    };
    let count = match series.kind {
        SeriesKind::Box => "boxes",
        SeriesKind::Heatmap => "cells",
        _ => "points",
    };
    format!("- {kind}{name}: {} {count}{x}{y}{errors}", series.points)
}

fn number(scalar: &Scalar) -> Option<f64> {
    match scalar {
        #[expect(clippy::cast_precision_loss, reason = "a description needs no more digits")]
        Scalar::Integer(value) => Some(*value as f64),
        Scalar::Float(value) => Some(*value),
        Scalar::Null | Scalar::Bool(_) | Scalar::Text(_) => None,
    }
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Null => "<NULL>".to_owned(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Integer(value) => value.to_string(),
        Scalar::Float(value) => format!("{value:?}"),
        Scalar::Text(text) => cut(&line(text), LABEL),
    }
}
