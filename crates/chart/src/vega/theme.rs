//! The look of every chart: colors, type, and the places of titles, grids and legends.
//!
//! A chart is as wide and high as its specification says, titles and labels included, so that it
//! can be redrawn at 390 or 1,280 pixels by changing `width` alone.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Ten colors that people with any kind of color vision can tell apart, after Petroff (2021). The
/// first three have a contrast of at least 3:1 to white. `outputs/style.py` of the guest gives
/// matplotlib the same ones.
pub const PALETTE: [&str; 10] = [
    "#3f90da", "#e76300", "#832db6", "#94a4a2", "#bd1f01", "#ffa90e", "#333f48", "#a96b59", "#b9ac70",
    "#92dadd",
];
/// Candles that close above their opening price.
pub(super) const RISING: &str = "#2a9d8f";
/// Candles that close below it.
pub(super) const FALLING: &str = "#bd1f01";
/// Bars that are context to what is drawn above them, such as a traded volume.
pub(super) const CONTEXT: &str = "#c3cad1";
/// Text, and the line at zero.
pub(super) const INK: &str = "#333f48";
/// Reference lines and their labels.
pub(super) const REFERENCE: &str = "#5b6770";
/// Reference areas.
pub(super) const AREA: &str = "#9aa3ab";

const GRID: &str = "#e4e7eb";
const AXIS: &str = "#9aa3ab";

/// Width of the plot in pixels that labels are chosen for: that of a chart 390 pixels wide.
pub(super) const NARROW: f64 = 330.0;
/// Mean width of a character of a label, in pixels.
pub(super) const CHARACTER: f64 = 6.1;
/// Maximum length of a line of the title, in characters: what fits above a narrow plot.
const TITLE: usize = 44;
/// Share of white in a color that is drawn behind others.
const PALE: f64 = 0.55;
/// Share of black in the second ten colors.
const DARK: f64 = 0.45;

/// Returns the settings of all parts of a chart.
pub(super) fn config() -> Value {
    let title = json!({ "titleAngle": 0, "titleX": 0, "titleY": -8, "titleBaseline": "bottom" });
    let side = |align: &str| {
        let mut side = title.clone();
        side["titleAlign"] = json!(align);
        side
    };
    json!({
        "font": "Helvetica, Arial, sans-serif",
        "view": { "stroke": null },
        "axis": {
            "labelColor": INK, "labelFontSize": 11, "labelPadding": 5,
            "titleColor": INK, "titleFontSize": 11, "titleFontWeight": "normal",
            "gridColor": GRID, "domainColor": AXIS, "tickColor": AXIS,
        },
        "axisX": { "grid": false, "tickSize": 4, "labelSeparation": 6 },
        "axisY": { "domain": false, "ticks": false },
        // Beside the plot, a title would take room from it; above, it is read without turning.
        "axisLeft": side("left"),
        "axisRight": side("right"),
        "legend": {
            "orient": "top", "labelColor": INK, "labelFontSize": 11, "titleColor": INK, "titleFontSize": 11,
            "titleFontWeight": "normal", "symbolSize": 90, "columnPadding": 16, "padding": 0,
        },
    })
}

/// Returns a title in lines, aligned with the plot.
pub(super) fn title(text: &str) -> Value {
    json!({ "text": lines(text), "anchor": "start", "frame": "group", "fontSize": 14, "color": "#1c2329",
        "offset": 10 })
}

fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > TITLE {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Returns the color of the series at an index.
pub(super) fn color(at: usize) -> String {
    let color = PALETTE[at % PALETTE.len()];
    if at < PALETTE.len() {
        color.to_owned()
    } else {
        mixed(color, 0.0, DARK)
    }
}

/// Returns a color as it is drawn behind lines.
pub(super) fn pale(color: &str) -> String {
    mixed(color, 255.0, PALE)
}

/// Mixes a color `#rrggbb` with a gray.
fn mixed(color: &str, gray: f64, share: f64) -> String {
    let mut mixed = String::from("#");
    for at in [1, 3, 5] {
        let part = color
            .get(at..at + 2)
            .and_then(|part| u8::from_str_radix(part, 16).ok());
        let part = f64::from(part.unwrap_or_default()).mul_add(1.0 - share, gray * share);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a mean of two bytes is one"
        )]
        let part = part.round() as u8;
        let _ = write!(mixed, "{part:02x}");
    }
    mixed
}
