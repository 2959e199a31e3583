//! The values of a chart over x: the position of each row, and one value for each row and series.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    AxisPlace, AxisType, ChartSeries, ChartSpec, ChartType, Columns, Mark, Row, RowValue, Rows, Side,
};

use super::axes;
use super::layers::{BROAD, THIN};
use super::names::humanized;
use super::scale::{self, Scale};

/// Share of the distance to the next position that bars and candles fill.
const FILLED: f64 = 0.8;
/// Minimum share of the axis that a bar fills, so that it is visible.
const LEAST: f64 = 0.0015;
/// Maximum length in characters of a name on the axis, which is repeated for each value.
const LONGEST: usize = 100;
/// Milliseconds of a day: the width of a single bar over times.
const DAY: f64 = 86_400_000.0;

/// A chart and the positions of its x axis.
pub(super) struct Plot<'a> {
    pub(super) spec: &'a ChartSpec,
    pub(super) rows: &'a Rows,
    pub(super) columns: &'a Columns,
    /// Type of the x axis.
    pub(super) x: AxisType,
    /// Names of an axis of names, in the order of the rows.
    pub(super) names: Vec<String>,
    /// The x channel without its field and names.
    pub(super) channel: Value,
    /// Total width of the bars, on a continuous axis.
    pub(super) width: f64,
    /// One object for each row and series.
    pub(super) values: Vec<Value>,
    /// Names of the series for readers.
    labels: Vec<String>,
    /// Side whose bars are drawn in a band below everything else.
    pub(super) band: Option<Side>,
    /// Scales of the left and the right axis, if they have ticks.
    pub(super) scales: [Option<Scale>; 2],
}

impl<'a> Plot<'a> {
    pub(super) fn new(spec: &'a ChartSpec, rows: &'a Rows, columns: &'a Columns) -> Self {
        let mut plot = Self {
            spec,
            rows,
            columns,
            x: AxisType::Category,
            names: Vec::new(),
            channel: Value::Null,
            width: 1.0,
            values: Vec::new(),
            labels: labels(spec),
            band: None,
            scales: [None, None],
        };
        // Counted values are numbers.
        let counts = spec.kind == ChartType::Histogram && !plot.is_binned();
        plot.x = if counts {
            AxisType::Number
        } else {
            spec.x_type(columns)
        };
        if plot.is_continuous() {
            plot.width = plot.bar_width();
        } else {
            let mut seen = BTreeSet::new();
            let labels = rows
                .iter()
                .filter_map(|row| Some(short(plot.cell(row)?.label()?)));
            plot.names = labels.filter(|label| seen.insert(label.clone())).collect();
        }
        plot.channel = axes::x(&plot);
        if spec.kind != ChartType::Heatmap && !counts {
            plot.values = plot.points();
            let [left, right] = [Side::Left, Side::Right].map(|side| plot.extent_of(side));
            plot.band = plot.band_of(right);
            plot.scales = scale::scales(left, right, plot.band);
        }
        plot
    }

    /// Returns a series' name for readers.
    pub(super) fn name<'b>(&'b self, series: &'b ChartSeries) -> &'b str {
        let at = self.spec.series.iter().position(|it| std::ptr::eq(it, series));
        at.and_then(|at| self.labels.get(at))
            .map_or(series.name(), String::as_str)
    }

    /// Returns the names of all series for readers.
    pub(super) fn names_of_series(&self) -> Vec<&str> {
        self.labels.iter().map(String::as_str).collect()
    }

    /// Returns what the x axis shows: its key, or the only series of a histogram.
    pub(super) fn x_name(&self) -> Option<String> {
        let only = self.labels.first().filter(|_| self.labels.len() == 1);
        self.spec
            .x_key
            .as_deref()
            .map(humanized)
            .or_else(|| only.cloned())
    }

    /// Returns whether the x axis is continuous.
    pub(super) fn is_continuous(&self) -> bool {
        self.x != AxisType::Category
    }

    /// Returns whether the rows of a histogram are already bins.
    pub(super) fn is_binned(&self) -> bool {
        self.spec.x_key.is_some() && !self.spec.series.is_empty()
    }

    /// Returns whether something is drawn on a y axis.
    pub(super) fn has(&self, side: Side) -> bool {
        let candles = side == Side::Left && self.spec.kind == ChartType::Candlestick;
        candles || self.spec.series.iter().any(|it| it.side() == side)
    }

    /// Returns whether marks of the other axis lie between those of a y axis, so that it is drawn
    /// in two parts.
    pub(super) fn is_split(&self, side: Side) -> bool {
        let filled = |it: Side| self.reaches(it, true);
        let thin = |it: Side| self.reaches(it, false);
        let between = match side {
            Side::Left => filled(Side::Right),
            Side::Right => thin(Side::Left),
        };
        let both = self.has(Side::Left) && self.has(Side::Right);
        both && self.spec.kind != ChartType::Candlestick && filled(side) && thin(side) && between
    }

    /// Returns whether a side has marks among its areas and bars, or above them.
    fn reaches(&self, side: Side, filled: bool) -> bool {
        let marks = if filled { BROAD } else { THIN };
        let on_side = |it: Option<Side>| it.unwrap_or(Side::Left) == side;
        let spec = self.spec;
        let series = spec
            .series
            .iter()
            .any(|it| it.side() == side && marks.contains(&spec.mark(it)));
        let areas = spec.reference_areas.iter();
        let mut areas = areas.filter(|it| it.y1.is_some() || it.y2.is_some());
        let mut lines = spec.reference_lines.iter().filter(|it| it.y.is_some());
        series
            || (filled && areas.any(|it| on_side(it.y_axis)))
            || (!filled && lines.any(|it| on_side(it.y_axis)))
    }

    fn cell<'r>(&self, row: &'r Row) -> Option<&'r RowValue> {
        row.get(self.spec.x_key.as_ref()?)
    }

    /// Returns a row's position on a continuous axis.
    #[expect(clippy::cast_precision_loss, reason = "a time in milliseconds is below 2^53")]
    fn number(&self, row: &Row) -> Option<f64> {
        let cell = self.cell(row)?;
        match self.x {
            AxisType::Time => cell.time().map(|time| time as f64),
            AxisType::Number => cell.number(),
            AxisType::Category => None,
        }
    }

    /// Returns a row's position.
    pub(super) fn place(&self, row: &Row) -> Option<Value> {
        match self.x {
            AxisType::Time => self.cell(row)?.time().map(Value::from),
            AxisType::Number => self.cell(row)?.number().map(Value::from),
            AxisType::Category => self.cell(row)?.label().map(|label| short(label).into()),
        }
    }

    /// Returns a reference's position.
    pub(super) fn reference(&self, place: &AxisPlace) -> Option<Value> {
        match (self.x, place) {
            (AxisType::Time, place) => place.time().map(Value::from),
            (AxisType::Number, AxisPlace::Number(number)) => Some(json!(number)),
            (AxisType::Number, AxisPlace::Text(_)) => None,
            (AxisType::Category, place) => Some(short(place.label()).into()),
        }
    }

    fn bar_width(&self) -> f64 {
        let mut places: Vec<_> = self.rows.iter().filter_map(|row| self.number(row)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let steps = places.windows(2).map(|pair| pair[1] - pair[0]);
        let span = places
            .last()
            .zip(places.first())
            .map_or(0.0, |(last, first)| last - first);
        let single = if self.x == AxisType::Time { DAY } else { 1.0 };
        let filled = if self.spec.kind == ChartType::Histogram {
            1.0
        } else {
            FILLED
        };
        steps
            .reduce(f64::min)
            .map_or(single, |step| (step * filled).max(span * LEAST))
    }

    /// Returns the start and the end of a bar in one of `slots` slots at a position.
    pub(super) fn extent(&self, row: &Row, slot: usize, slots: usize) -> Option<(f64, f64)> {
        #[expect(clippy::cast_precision_loss, reason = "there are at most 20 series")]
        let (slot, slots) = (slot as f64, slots.max(1) as f64);
        let width = self.width / slots;
        let begin = self.number(row)? - self.width / 2.0 + slot * width;
        (begin.is_finite() && width.is_finite()).then_some((begin, begin + width))
    }

    /// Returns a series' index among the bars at one position, and their number.
    pub(super) fn slot(&self, series: &ChartSeries) -> (usize, usize) {
        let bars: Vec<_> = self
            .spec
            .series
            .iter()
            .filter(|it| self.spec.mark(it) == Mark::Bar)
            .collect();
        if self.spec.stacked {
            let both = bars.iter().any(|it| it.side() != series.side());
            return (
                usize::from(both && series.side() == Side::Right),
                1 + usize::from(both),
            );
        }
        let at = bars.iter().position(|it| std::ptr::eq(*it, series));
        (at.unwrap_or(0), bars.len())
    }

    /// Computes one object for each row and series.
    fn points(&self) -> Vec<Value> {
        let mut values = Vec::new();
        for row in self.rows {
            let Some(x) = self.place(row) else { continue };
            let mut stacks = Vec::new();
            for series in &self.spec.series {
                values.push(Value::Object(self.value(row, &x, series, &mut stacks)));
            }
        }
        values
    }

    fn value(
        &self,
        row: &Row,
        x: &Value,
        series: &ChartSeries,
        stacks: &mut Vec<Stack>,
    ) -> Map<String, Value> {
        let number = |key: &str| row.get(key).and_then(RowValue::number);
        let (mark, found) = (self.spec.mark(series), number(&series.key));
        let mut value = Map::new();
        value.insert("x".into(), x.clone());
        value.insert("series".into(), self.name(series).into());
        // The number itself, so that an integer stays an integer.
        let shown = row.get(&series.key).filter(|_| found.is_some());
        value.insert("value".into(), json!(shown));
        if matches!(mark, Mark::Bar | Mark::Area) {
            let from = match found {
                Some(found) if self.spec.stacked => on_top(stacks, mark, series.side(), found),
                _ => 0.0,
            };
            value.insert("from".into(), json!(from));
            value.insert("to".into(), json!(found.map(|found| from + found)));
        }
        if mark == Mark::Bar {
            let (slot, slots) = self.slot(series);
            if !self.is_continuous() {
                value.insert("slot".into(), json!(slot));
            } else if let Some((begin, end)) = self.extent(row, slot, slots) {
                value.insert("begin".into(), json!(begin));
                value.insert("end".into(), json!(end));
                value.insert("middle".into(), json!(f64::midpoint(begin, end)));
            }
        }
        if let (Some(found), Some(error)) = (found, series.error_key.as_ref().and_then(|key| number(key))) {
            value.insert("low".into(), json!(found - error));
            value.insert("high".into(), json!(found + error));
        }
        value
    }
}

/// Returns the names of series for readers: their labels, or their keys as words where these stay different.
fn labels(spec: &ChartSpec) -> Vec<String> {
    let of_key = |it: &ChartSeries| it.label.clone().unwrap_or_else(|| humanized(&it.key));
    let labels: Vec<_> = spec.series.iter().map(of_key).collect();
    let distinct: BTreeSet<_> = labels.iter().collect();
    if distinct.len() == labels.len() {
        return labels;
    }
    spec.series.iter().map(|it| it.name().to_owned()).collect()
}

/// Shortens a name; shortened names stay different from each other.
fn short(name: String) -> String {
    let Some((end, _)) = name.char_indices().nth(LONGEST) else {
        return name;
    };
    format!("{}… {:08x}", &name[..end], crc32fast::hash(name.as_bytes()))
}

/// Height of a stack at one position, above and below zero.
struct Stack {
    mark: Mark,
    side: Side,
    above: f64,
    below: f64,
}

/// Returns the start of a value on top of its stack.
fn on_top(stacks: &mut Vec<Stack>, mark: Mark, side: Side, value: f64) -> f64 {
    let known = stacks.iter().position(|it| it.mark == mark && it.side == side);
    let at = known.unwrap_or_else(|| {
        stacks.push(Stack {
            mark,
            side,
            above: 0.0,
            below: 0.0,
        });
        stacks.len() - 1
    });
    let height = if value < 0.0 {
        &mut stacks[at].below
    } else {
        &mut stacks[at].above
    };
    let from = *height;
    *height += value;
    from
}
