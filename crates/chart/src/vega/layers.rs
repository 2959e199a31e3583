//! The layers of one y axis: areas below bars below lines below points, and errors on top.

use serde_json::{Value, json};

use crate::{ChartSeries, ChartType, Mark, RowValue, Side};

use super::values::Plot;
use super::{axes, candles, references, theme};

/// Maximum number of rows for which each point of a line is marked.
const MARKED: usize = 15;
/// Number of rows from which lines are thin.
const DENSE: usize = 400;
/// Width of a row of the legend in pixels, which also fits on narrow charts.
const LEGEND: f64 = 340.0;
/// Width of a symbol of the legend with the space around it, in pixels.
const SYMBOL: f64 = 32.0;
/// Distance of the legend from the plot with the titles of axes between them, and without, in pixels.
const OFFSETS: (u32, u32) = (28, 12);

/// Marks that fill their position.
pub(super) const BROAD: [Mark; 2] = [Mark::Area, Mark::Bar];
/// Marks that are drawn over those.
pub(super) const THIN: [Mark; 2] = [Mark::Line, Mark::Scatter];
/// Every mark, from the bottom to the top.
pub(super) const ALL: [Mark; 4] = [Mark::Area, Mark::Bar, Mark::Line, Mark::Scatter];

/// Layers on top of each other.
pub(super) struct Layers<'a> {
    pub(super) plot: &'a Plot<'a>,
    pub(super) side: Side,
    pub(super) list: Vec<Value>,
    /// Whether the y axis is drawn with them.
    axis: bool,
}

impl<'a> Layers<'a> {
    pub(super) fn new(plot: &'a Plot<'a>, side: Side, axis: bool) -> Self {
        Self {
            plot,
            side,
            list: Vec::new(),
            axis,
        }
    }

    /// Draws the series of this side that have one of the marks. References to the y axis are below
    /// them (areas) or on top (lines).
    pub(super) fn part(&mut self, marks: &[Mark]) {
        if marks.contains(&Mark::Area) {
            references::areas(self);
            if self.side == Side::Left && self.plot.spec.kind == ChartType::Candlestick {
                candles::draw(self);
            }
        }
        let is_on_side = |it: &&ChartSeries| it.side() == self.side;
        let is_bar = |it: &ChartSeries| BROAD.contains(&self.plot.spec.mark(it));
        let has_bars = self.plot.spec.series.iter().filter(is_on_side).any(is_bar);
        if !has_bars && marks.contains(&Mark::Line) {
            references::zero(self);
        }
        for mark in marks {
            self.series(*mark);
            if has_bars && *mark == Mark::Bar {
                references::zero(self);
            }
        }
        if marks.contains(&Mark::Line) {
            references::lines(self);
        }
    }

    /// Draws every series of this side with a mark.
    fn series(&mut self, mark: Mark) {
        let spec = self.plot.spec;
        let of_mark = spec
            .series
            .iter()
            .filter(|it| it.side() == self.side && spec.mark(it) == mark);
        let of_mark: Vec<_> = of_mark.collect();
        if !of_mark.is_empty() {
            self.marks(mark, &of_mark);
            self.errors(mark, &of_mark);
        }
    }

    /// Returns a channel along x.
    pub(super) fn x(&self, field: &str) -> Value {
        with(self.plot.channel.clone(), "field", json!(field))
    }

    /// Returns the y channel without its field.
    pub(super) fn y_axis(&self) -> Value {
        let mut channel = axes::y(self.plot, self.side);
        if !self.axis {
            channel["axis"] = Value::Null;
        }
        channel
    }

    /// Returns a channel along y.
    pub(super) fn y(&self, field: &str) -> Value {
        // The values are already stacked.
        with(with(self.y_axis(), "field", json!(field)), "stack", Value::Null)
    }

    fn marks(&mut self, mark: Mark, series: &[&ChartSeries]) {
        let continuous = self.plot.is_continuous();
        let mut encoding = json!({
            "x": self.x("x"),
            "y": self.y("value"),
            "color": self.color(),
            "tooltip": self.tooltip(),
        });
        let drawn = match mark {
            // A pointed corner would reach beyond the value.
            Mark::Line => {
                let width = if self.plot.rows.len() < DENSE { 2.0 } else { 1.5 };
                json!({ "type": "line", "strokeWidth": width, "strokeJoin": "round",
                    "point": self.points(series) })
            }
            Mark::Scatter => json!({ "type": "point", "filled": true, "size": 45, "opacity": 0.75 }),
            Mark::Area => {
                self.ranged(&mut encoding);
                let opacity = if self.plot.spec.stacked { 0.85 } else { 0.4 };
                json!({ "type": "area", "opacity": opacity,
                    "line": { "strokeWidth": 1.5, "strokeJoin": "round" }, "point": self.points(series) })
            }
            Mark::Bar if continuous => {
                self.ranged(&mut encoding);
                encoding["x"] = self.x("begin");
                encoding["x2"] = json!({ "field": "end" });
                json!({ "type": "rect", "strokeWidth": 0 })
            }
            Mark::Bar => {
                self.ranged(&mut encoding);
                self.offset(&mut encoding, series);
                json!({ "type": "bar" })
            }
        };
        self.push(&drawn, &encoding, series);
    }

    fn errors(&mut self, mark: Mark, series: &[&ChartSeries]) {
        let with_errors: Vec<_> = series
            .iter()
            .copied()
            .filter(|it| it.error_key.is_some())
            .collect();
        if with_errors.is_empty() {
            return;
        }
        let across = if mark == Mark::Bar && self.plot.is_continuous() {
            "middle"
        } else {
            "x"
        };
        let mut encoding = json!({ "x": self.x(across), "y": self.y("low"), "y2": { "field": "high" } });
        if mark == Mark::Bar {
            self.offset(&mut encoding, series);
        } else {
            encoding["color"] = self.color();
        }
        self.push(
            &json!({ "type": "rule", "strokeWidth": 2 }),
            &encoding,
            &with_errors,
        );
    }

    fn push(&mut self, mark: &Value, encoding: &Value, series: &[&ChartSeries]) {
        let mut mark = mark.clone();
        if self.plot.spec.brush {
            // Marks outside the zoomed range are clipped at the axes.
            mark["clip"] = json!(true);
        }
        let names: Vec<_> = series.iter().map(|it| self.plot.name(it)).collect();
        self.list.push(json!({
            "transform": [{ "filter": { "field": "series", "oneOf": names } }],
            "mark": mark,
            "encoding": encoding,
        }));
    }

    fn ranged(&self, encoding: &mut Value) {
        encoding["y"] = self.y("to");
        encoding["y2"] = json!({ "field": "from" });
    }

    /// Places bars of one name side by side.
    fn offset(&self, encoding: &mut Value, series: &[&ChartSeries]) {
        let slots = series.first().map_or(1, |it| self.plot.slot(it).1);
        if slots > 1 && !self.plot.is_continuous() {
            let domain: Vec<_> = (0..slots).collect();
            encoding["xOffset"] =
                json!({ "field": "slot", "type": "ordinal", "scale": { "domain": domain } });
        }
    }

    fn color(&self) -> Value {
        color(self.plot, &self.plot.names_of_series(), &self.plot.colors())
    }

    fn tooltip(&self) -> Value {
        let mut x = json!({ "field": "x", "title": self.plot.x_name(), "type": self.plot.channel["type"] });
        if x["type"] == "temporal" {
            x["timeUnit"] = json!("utcyearmonthdatehoursminutes");
        }
        json!([
            x,
            { "field": "series", "type": "nominal", "title": "Series" },
            { "field": "value", "type": "quantitative", "title": "Value" },
        ])
    }

    /// Marks every point of a short line, and in a long one each point between gaps, which would
    /// otherwise be invisible.
    fn points(&self, series: &[&ChartSeries]) -> Value {
        if self.plot.rows.len() <= MARKED {
            return json!({ "filled": true, "size": 30 });
        }
        if series.iter().any(|it| self.stands_alone(it)) {
            return json!({ "filled": true, "size": 10 });
        }
        json!(false)
    }

    fn stands_alone(&self, series: &ChartSeries) -> bool {
        let there: Vec<_> = self
            .plot
            .rows
            .iter()
            .map(|row| row.get(&series.key).and_then(RowValue::number).is_some())
            .collect();
        let is = |at: Option<usize>| at.and_then(|at| there.get(at)).copied().unwrap_or(false);
        (0..there.len()).any(|at| is(Some(at)) && !is(at.checked_sub(1)) && !is(Some(at + 1)))
    }
}

/// Assigns a color to each name, the same in every layer.
pub(super) fn color(plot: &Plot<'_>, names: &[&str], colors: &[String]) -> Value {
    let spec = plot.spec;
    let all = |mark: Mark| spec.series.iter().all(|it| spec.mark(it) == mark);
    let symbol = if all(Mark::Line) {
        "stroke"
    } else if all(Mark::Scatter) {
        "circle"
    } else {
        "square"
    };
    let longest = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or_default();
    let length = f64::from(u32::try_from(longest).unwrap_or_default()).mul_add(theme::CHARACTER, SYMBOL);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least one, at most 340"
    )]
    let columns = (LEGEND / length).max(1.0) as u32;
    let has_titles = [Side::Left, Side::Right]
        .iter()
        .any(|side| plot.has(*side) && !axes::y(plot, *side)["title"].is_null());
    let shown = json!({
        "symbolType": symbol,
        "symbolStrokeWidth": 3,
        "columns": columns,
        "labelLimit": LEGEND - SYMBOL,
        "offset": if has_titles { OFFSETS.0 } else { OFFSETS.1 },
    });
    let legend = spec.legend.unwrap_or(names.len() > 1).then_some(shown);
    json!({
        "field": "series",
        "type": "nominal",
        "scale": { "domain": names, "range": colors },
        "title": null,
        "legend": legend,
    })
}

/// Returns a channel with one more key.
pub(super) fn with(mut channel: Value, key: &str, value: Value) -> Value {
    channel[key] = value;
    channel
}
