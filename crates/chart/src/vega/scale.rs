//! Ranges and ticks of the y axes, chosen so that the grid of one axis is that of the other.

use crate::Side;

/// Share of the height that bars in a band of their own fill.
const BAND: f64 = 0.2;
/// Share of the height below the lowest tick of what is drawn above a band.
const ABOVE: f64 = 0.26;
/// Numbers of intervals between ticks.
const INTERVALS: std::ops::RangeInclusive<i32> = 4..=6;
/// Maximum number of intervals of two axes that both cross zero.
const CROSSING: i32 = 7;
/// Ranges that are a smaller part of their values than this are left to the renderer.
const FINEST: f64 = 1e-6;
/// Part of a number by which rounding may change it.
const ROUNDING: f64 = 1e-9;

/// The range and the ticks of a y axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) domain: (f64, f64),
    pub(super) ticks: Vec<f64>,
    /// Number of decimals that tells the ticks apart.
    pub(super) decimals: i32,
}

/// Values that an axis has to show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Extent {
    /// Returns a range that has a length, if ticks can divide it.
    fn usable(self) -> Option<Self> {
        let size = self.min.abs().max(self.max.abs());
        let Self { min, max } = match self {
            it if it.max > it.min => it,
            it if size == 0.0 => Self {
                min: 0.0,
                max: it.max.max(1.0),
            },
            it => Self {
                min: it.min - size * 0.1,
                max: it.max + size * 0.1,
            },
        };
        let length = max - min;
        (length.is_finite() && (1e-290..1e290).contains(&length) && length > size * FINEST)
            .then_some(Self { min, max })
    }

    fn crosses_zero(self) -> bool {
        self.min < 0.0 && self.max > 0.0
    }

    fn touches_zero(self) -> bool {
        self.min == 0.0 || self.max == 0.0
    }

    fn length(self) -> f64 {
        self.max - self.min
    }
}

/// A distance between ticks: 1, 2, 2.5 or 5 times a power of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TickStep {
    size: f64,
    decimals: i32,
}

impl TickStep {
    /// Returns the smallest step of at least a size.
    fn of(least: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a power of ten of a float is below 400"
        )]
        let power = least.log10().floor() as i32;
        for power in [power, power + 1] {
            for (digits, more) in [(1.0, 0), (2.0, 0), (2.5, 1), (5.0, 0)] {
                // 2.5 would need a decimal that 2 and 5 do not need.
                if more == 1 && power == 0 {
                    continue;
                }
                let size = scaled(digits, power);
                if size >= least * (1.0 - ROUNDING) {
                    return Self {
                        size,
                        decimals: (more - power).max(0),
                    };
                }
            }
        }
        Self {
            size: least,
            decimals: 0,
        }
    }

    /// Returns the scale of ticks from one multiple of the step to another.
    fn scale(self, from: f64, intervals: i32) -> Scale {
        // Decimals are rounded here, so that no tick is 0.30000000000000004.
        let tick = |at: i32| {
            let tick = (from + f64::from(at)) * self.size;
            let digits = 10_f64.powi(self.decimals.min(300));
            if self.decimals > 0 && (tick * digits).is_finite() {
                (tick * digits).round() / digits
            } else {
                tick
            }
        };
        let ticks: Vec<_> = (0..=intervals).map(tick).collect();
        Scale {
            domain: (tick(0), tick(intervals)),
            ticks,
            decimals: self.decimals,
        }
    }
}

fn scaled(digits: f64, power: i32) -> f64 {
    if power < 0 {
        digits / 10_f64.powi(-power)
    } else {
        digits * 10_f64.powi(power)
    }
}

/// Returns the scales of the left and the right axis, of those that there are. Their ticks are at
/// the same heights. `band` is the side of bars that are drawn in a band below everything else.
pub(super) fn scales(left: Option<Extent>, right: Option<Extent>, band: Option<Side>) -> [Option<Scale>; 2] {
    let (left, right) = (left.and_then(Extent::usable), right.and_then(Extent::usable));
    let (Some(one), Some(other)) = (left, right) else {
        return [left.map(alone), right.map(alone)];
    };
    match band {
        None => {
            let [left, right] = both(one, other);
            [Some(left), Some(right)]
        }
        Some(Side::Right) => [Some(raised(alone(one))), Some(lowered(other))],
        Some(Side::Left) => [Some(lowered(one)), Some(raised(alone(other)))],
    }
}

/// Makes room for a band below the lowest tick.
fn raised(mut scale: Scale) -> Scale {
    let (min, max) = scale.domain;
    scale.domain.0 = min - (max - min) * ABOVE / (1.0 - ABOVE);
    scale
}

/// Returns the scale of bars in a band: three ticks at most.
fn lowered(extent: Extent) -> Scale {
    let step = TickStep::of(extent.max / 2.0);
    let intervals = if step.size >= extent.max { 1 } else { 2 };
    let mut scale = step.scale(0.0, intervals);
    scale.domain.1 = extent.max / BAND;
    scale.ticks.retain(|tick| *tick <= extent.max * 1.25);
    scale
}

fn alone(extent: Extent) -> Scale {
    let choices = INTERVALS.map(|intervals| fitted(extent, intervals));
    let best = choices.min_by(|one, other| waste(one.1, extent).total_cmp(&waste(other.1, extent)));
    let (step, from) = best.map_or_else(|| (TickStep::of(extent.length()), 0.0), |(scale, _)| scale);
    // The last interval may be empty.
    let intervals = ((extent.max / step.size - from) * (1.0 - ROUNDING)).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are at most seven intervals"
    )]
    step.scale(from, (intervals as i32).max(1))
}

/// Returns the smallest step of which so many intervals hold a range, with the number of steps
/// before the first, and the length of all.
fn fitted(extent: Extent, intervals: i32) -> ((TickStep, f64), f64) {
    let count = f64::from(intervals);
    let mut step = TickStep::of(extent.length() / count);
    loop {
        let first = extent.min / step.size;
        let from = (first + first.abs() * ROUNDING).floor();
        if (from + count) * step.size >= extent.max - extent.max.abs() * ROUNDING {
            return ((step, from), count * step.size);
        }
        step = TickStep::of(step.size * 1.01);
    }
}

/// Returns how many times longer the ticks are than what they show.
fn waste(length: f64, extent: Extent) -> f64 {
    length / extent.length()
}

/// Returns two scales with as many intervals; those that reach zero have it at the same height.
fn both(one: Extent, other: Extent) -> [Scale; 2] {
    let crossing = one.crosses_zero() || other.crosses_zero();
    let mut best: Option<(f64, [Scale; 2])> = None;
    for below in 0..=CROSSING {
        for intervals in INTERVALS.start() - 1..=CROSSING {
            let is_possible = if crossing {
                (1..intervals).contains(&below)
            } else {
                below == 0 && INTERVALS.contains(&intervals)
            };
            if !is_possible {
                continue;
            }
            let placed = |extent: Extent| {
                if crossing && (extent.crosses_zero() || extent.touches_zero()) {
                    let above = f64::from(intervals - below);
                    let step = TickStep::of((extent.max / above).max(-extent.min / f64::from(below)));
                    (
                        step.scale(-f64::from(below), intervals),
                        f64::from(intervals) * step.size,
                    )
                } else {
                    let ((step, from), length) = fitted(extent, intervals);
                    (step.scale(from, intervals), length)
                }
            };
            let ((first, length), (second, width)) = (placed(one), placed(other));
            let cost = waste(length, one) + waste(width, other);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, [first, second]));
            }
        }
    }
    best.map_or_else(|| [alone(one), alone(other)], |(_, scales)| scales)
}

#[cfg(test)]
mod tests;
