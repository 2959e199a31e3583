//! The two y axes of a chart: their ranges, which bars are context, and the colors that follow.

use std::collections::BTreeSet;

use crate::{ChartSeries, ChartType, Mark, Side};

use super::layers::THIN;
use super::scale::{Extent, Scale};
use super::values::Plot;
use super::{axes, theme};

/// Maximum number of bars on the right axis that are drawn as high as the lines on the left.
const FEW: usize = 12;
/// Share of the prices' range that is free above and below candles.
const FREE: f64 = 0.03;

impl Plot<'_> {
    /// Returns the colors of all series. What is drawn behind others is pale.
    pub(super) fn colors(&self) -> Vec<String> {
        let series = self.spec.series.iter();
        let is_thin = |it: &ChartSeries| THIN.contains(&self.spec.mark(it));
        let is_behind = self.spec.kind == ChartType::Candlestick || series.clone().any(is_thin);
        let color = |(at, it): (usize, &ChartSeries)| match theme::color(at) {
            _ if self.band == Some(it.side()) => theme::CONTEXT.to_owned(),
            color if is_behind && !is_thin(it) => theme::pale(&color),
            color => color,
        };
        series.enumerate().map(color).collect()
    }

    /// Returns the scale of an axis; without one, the renderer chooses.
    pub(super) fn scale(&self, side: Side) -> Option<&Scale> {
        match side {
            Side::Left => self.scales[0].as_ref(),
            Side::Right => self.scales[1].as_ref(),
        }
    }

    /// Returns whether there are two y axes.
    pub(super) fn is_double(&self) -> bool {
        self.has(Side::Left) && self.has(Side::Right)
    }

    /// Returns whether the line at zero is drawn on an axis: once, inside the range of its ticks.
    pub(super) fn crosses_zero(&self, side: Side) -> bool {
        let crosses = |side: Side| {
            let ticks = self
                .scale(side)
                .map(|scale| (scale.ticks.first(), scale.ticks.last()));
            matches!(ticks, Some((Some(first), Some(last))) if *first < 0.0 && *last > 0.0)
        };
        crosses(side) && (side == Side::Left || !crosses(Side::Left))
    }

    /// Returns the side whose bars are context to lines or candles: many on the right, of values
    /// above zero, such as a traded volume.
    pub(super) fn band_of(&self, right: Option<Extent>) -> Option<Side> {
        let is_bar = |it: &ChartSeries| self.spec.mark(it) == Mark::Bar;
        let (right_ones, left_ones): (Vec<_>, Vec<_>) =
            self.spec.series.iter().partition(|it| it.side() == Side::Right);
        let is_candles = self.spec.kind == ChartType::Candlestick;
        let is_context = right_ones.iter().all(|it| is_bar(it)) && !left_ones.iter().any(|it| is_bar(it));
        let is_over = is_candles || (!left_ones.is_empty() && self.rows.len() > FEW);
        let is_positive = right.is_some_and(|right| right.min >= 0.0 && right.max > 0.0);
        (is_context && is_over && is_positive).then_some(Side::Right)
    }

    /// Returns the range of everything that a y axis shows.
    pub(super) fn extent_of(&self, side: Side) -> Option<Extent> {
        let series = self.spec.series.iter().filter(|it| it.side() == side);
        let names: BTreeSet<_> = series.map(|it| self.name(it)).collect();
        let shown = self
            .values
            .iter()
            .filter(|it| it["series"].as_str().is_some_and(|name| names.contains(name)));
        let shown = shown.flat_map(|it| ["value", "from", "to", "low", "high"].map(|key| it[key].as_f64()));
        let on_side = |it: Option<Side>| it.unwrap_or(Side::Left) == side;
        let areas = self.spec.reference_areas.iter().filter(|it| on_side(it.y_axis));
        let lines = self.spec.reference_lines.iter().filter(|it| on_side(it.y_axis));
        let areas = areas.flat_map(|it| [&it.y1, &it.y2]);
        let given = areas.chain(lines.map(|it| &it.y)).map(|it| it.as_ref()?.as_f64());
        let candles = self.spec.ohlc.as_ref().filter(|_| side == Side::Left);
        let prices = candles.iter().flat_map(|keys| {
            let price = |key: &str| self.columns.keys.get(key).map(|column| (column.min, column.max));
            [price(&keys.low_key), price(&keys.high_key)]
        });
        let prices = prices.flatten().flat_map(|(min, max)| [min, max]);
        let zero = (self.has(side) && axes::from_zero(self.spec, self.columns, side)).then_some(0.0);
        let all = shown.chain(given).chain(prices).chain([zero]).flatten();
        let mut extent = all
            .filter(|it| it.is_finite())
            .fold(None, |extent: Option<Extent>, number| {
                let Extent { min, max } = extent.unwrap_or(Extent {
                    min: number,
                    max: number,
                });
                Some(Extent {
                    min: min.min(number),
                    max: max.max(number),
                })
            })?;
        if candles.is_some() {
            let free = (extent.max - extent.min) * FREE;
            extent.max += free;
            extent.min -= if zero.is_some() && extent.min == 0.0 {
                0.0
            } else {
                free
            };
        }
        Some(extent)
    }
}
