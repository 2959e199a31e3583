//! The chart of the performance page: medians on a logarithmic scale, readable on a light and on a dark page.

use std::fmt::Write as _;

use super::table::number;
use crate::samples::Samples;

/// Colours that have enough contrast on white and on nearly black.
const OURS: &str = "#2f81f7";
const PEERS: &str = "#8b949e";
const TEXT: &str = "#7d8590";

const WIDTH: f64 = 840.0;
/// Position at which bars begin, and the one at which the longest may end.
const LEFT: f64 = 210.0;
const RIGHT: f64 = 730.0;
const BAR: f64 = 14.0;
const STEP: f64 = 20.0;
/// The scale: from 0.01 ms to 10 s.
const DECADES: (i32, i32) = (-2, 4);

struct Bar {
    label: &'static str,
    series: &'static [&'static str],
    kind: BarKind,
}

#[derive(Clone, Copy, PartialEq)]
enum BarKind {
    Ours,
    Peer,
    Floor,
}

const fn ours(label: &'static str, series: &'static [&'static str]) -> Bar {
    Bar {
        label,
        series,
        kind: BarKind::Ours,
    }
}

const fn peer(label: &'static str, series: &'static [&'static str]) -> Bar {
    Bar {
        label,
        series,
        kind: BarKind::Peer,
    }
}

const fn floor(label: &'static str, series: &'static [&'static str]) -> Bar {
    Bar {
        label,
        series,
        kind: BarKind::Floor,
    }
}

const GROUPS: [(&str, &[Bar]); 4] = [
    (
        "New session until the result of 1+1",
        &[
            ours("Cellblock, from the pool", &["cellblock/pool_first"]),
            ours("Cellblock, no pool", &["cellblock/cold_first"]),
            peer("python -c, unconfined", &["python/first"]),
            peer("bwrap + python", &["bwrap/first"]),
            peer("runsc do + python", &["runsc/first"]),
            peer("ipykernel, unconfined", &["ipykernel/first"]),
            floor("bare fork + namespaces", &["floor/fork", "floor/namespaces"]),
        ],
    ),
    (
        "New session until a pandas table and a chart as PNG",
        &[
            ours("Cellblock, from the pool", &["cellblock/pool_chart"]),
            ours("Cellblock, no pool", &["cellblock/cold_chart"]),
            peer("python -c, unconfined", &["python/chart"]),
            peer("bwrap + python", &["bwrap/chart"]),
            peer("runsc do + python", &["runsc/chart"]),
            peer("ipykernel, unconfined", &["ipykernel/chart"]),
            floor("bare fork", &["floor/fork_chart"]),
        ],
    ),
    (
        "Next cell, 1+1",
        &[
            ours("Cellblock", &["cellblock/warm"]),
            peer("ipykernel, unconfined", &["ipykernel/warm"]),
            floor("bare round trip to Python", &["floor/round_trip"]),
        ],
    ),
    (
        "10 MB printed, until all of it has arrived",
        &[
            ours("Cellblock", &["cellblock/stdout"]),
            peer("python -c, unconfined", &["python/stdout"]),
            peer("bwrap + python", &["bwrap/stdout"]),
            peer("runsc do + python", &["runsc/stdout"]),
            peer("ipykernel, unconfined", &["ipykernel/stdout"]),
            floor("bare pipe", &["floor/stdout"]),
        ],
    ),
];

/// Draws what was measured; groups without a bar of ours are left out.
pub(crate) fn svg(samples: &Samples) -> String {
    let mut body = String::new();
    let mut y = 8.0;
    for (title, bars) in GROUPS {
        let values: Vec<_> = bars
            .iter()
            .filter_map(|bar| Some((bar, value(bar, samples)?)))
            .collect();
        if !values.iter().any(|(bar, _)| bar.kind == BarKind::Ours) {
            continue;
        }
        y += 22.0;
        let _ = writeln!(
            body,
            r#"<text x="0" y="{y:.0}" font-weight="600" font-size="14">{title}</text>"#
        );
        y += 8.0;
        for (bar, milliseconds) in values {
            draw(&mut body, bar, milliseconds, y);
            y += STEP;
        }
    }
    let height = y + 26.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
         role=\"img\" aria-label=\"Medians of Cellblock, its peers and the kernel's floor\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', sans-serif\" font-size=\"12\" \
         fill=\"{TEXT}\">\n"
    );
    axis(&mut svg, y);
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

fn value(bar: &Bar, samples: &Samples) -> Option<f64> {
    bar.series.iter().map(|series| samples.median(series)).sum()
}

/// Vertical lines at powers of ten, with their names below.
fn axis(svg: &mut String, bottom: f64) {
    for decade in DECADES.0..=DECADES.1 {
        let x = position(10_f64.powi(decade));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"8\" x2=\"{x:.1}\" y2=\"{bottom:.0}\" stroke=\"{PEERS}\" \
             stroke-opacity=\"0.25\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"11\">{}</text>",
            bottom + 16.0,
            duration(10_f64.powi(decade))
        );
    }
}

fn draw(body: &mut String, bar: &Bar, milliseconds: f64, y: f64) {
    let width = (position(milliseconds) - LEFT).max(1.0);
    let (fill, stroke) = match bar.kind {
        BarKind::Ours => (OURS, OURS),
        BarKind::Peer => (PEERS, PEERS),
        BarKind::Floor => ("none", TEXT),
    };
    let dashes = if bar.kind == BarKind::Floor {
        " stroke-dasharray=\"3 2\""
    } else {
        ""
    };
    let (weight, colour) = if bar.kind == BarKind::Ours {
        ("600", OURS)
    } else {
        ("400", TEXT)
    };
    let middle = y + BAR - 3.0;
    let _ = writeln!(
        body,
        "<text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\">{}</text>\n\
         <rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\" fill=\"{fill}\" \
         stroke=\"{stroke}\"{dashes}/>\n\
         <text x=\"{:.1}\" y=\"{middle:.0}\" font-weight=\"{weight}\" fill=\"{colour}\">{}</text>",
        LEFT - 8.0,
        bar.label,
        LEFT + width + 6.0,
        duration(milliseconds)
    );
}

/// Returns the position of a time on the scale.
fn position(milliseconds: f64) -> f64 {
    let (first, last) = (f64::from(DECADES.0), f64::from(DECADES.1));
    let share = ((milliseconds.log10() - first) / (last - first)).clamp(0.0, 1.0);
    LEFT + share * (RIGHT - LEFT)
}

fn duration(milliseconds: f64) -> String {
    if milliseconds >= 1000.0 {
        format!("{} s", number(milliseconds / 1000.0))
    } else {
        format!("{} ms", number(milliseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decade_is_as_wide_as_any_other() {
        let width = position(1.0) - position(0.1);
        assert!((position(1000.0) - position(100.0) - width).abs() < 1e-9);
        assert_eq!(position(0.000_1).to_bits(), LEFT.to_bits());
        assert_eq!(position(1e9).to_bits(), RIGHT.to_bits());
    }

    #[test]
    fn measured_values_have_a_labeled_bar_and_others_none() {
        let mut samples = Samples::default();
        samples.add("cellblock", "warm", 0.27);
        samples.add("ipykernel", "warm", 4.07);
        samples.add("ipykernel", "first", 1048.0);
        let svg = svg(&samples);
        assert_eq!(svg.matches("<rect ").count(), 2);
        assert!(svg.contains(">0.27 ms</text>") && svg.contains(">4.07 ms</text>"));
        assert!(!svg.contains("New session"));
    }

    #[test]
    fn a_floor_of_two_parts_needs_both() {
        let mut samples = Samples::default();
        samples.add("cellblock", "cold_first", 14.9);
        samples.add("floor", "fork", 6.5);
        assert_eq!(svg(&samples).matches("<rect ").count(), 1);
        samples.add("floor", "namespaces", 0.5);
        assert!(svg(&samples).contains(">7 ms</text>"));
    }
}
