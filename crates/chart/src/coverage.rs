//! How much of its time axis each line and area of a chart covers.
//!
//! A series that has a point for every step of the axis covers all of it. Expected are as many points as the series has positions, those
//! whose value is null included, and at least as many as fit on the axis at the median step between its positions: a series whose rows
//! end early, or leave a month out, covers less than all. The axis spans the positions of all series on it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{AxisType, Cell, ChartSpec, Rows};

/// Fewer expected points than these tell nothing.
const FEWEST: usize = 3;

/// How much of the axis one series covers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesCoverage {
    /// The key of its values.
    pub key: String,
    /// Its name for readers.
    pub label: String,
    /// `finite / expected`, at most 1; none where fewer than 3 points are expected.
    pub coverage: Option<f64>,
    /// Positions with a finite value.
    pub finite: usize,
    /// Positions that a series without gaps would have.
    pub expected: usize,
}

/// Measures each line and area over a time axis; nothing for other marks and axes.
pub fn coverage(spec: &ChartSpec, rows: &Rows) -> Vec<SeriesCoverage> {
    let Some(x) = spec.x_key.as_ref().filter(|_| spec.kind.is_over_x()) else {
        return Vec::new();
    };
    if spec.x_type(&rows.summary()) != AxisType::Time {
        return Vec::new();
    }
    // Every series has a position wherever a row has a time, so that all expect the same.
    let mut places: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(time) = row.get(x).and_then(Cell::time) {
            places.entry(time).or_default().push(at);
        }
    }
    let times: Vec<_> = places.keys().copied().collect();
    let expected = expected(&times);
    let rows: Vec<_> = rows.iter().collect();
    let lines = spec.series.iter().filter(|series| spec.mark(series).joins());
    lines
        .map(|series| {
            let has = |at: &usize| rows[*at].get(&series.key).and_then(Cell::number).is_some();
            let finite = places.values().filter(|at| at.iter().any(has)).count();
            SeriesCoverage {
                key: series.key.clone(),
                label: series.name().to_owned(),
                coverage: (expected >= FEWEST).then(|| share(finite, expected)),
                finite,
                expected,
            }
        })
        .collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more digits than a float has"
)]
fn share(finite: usize, expected: usize) -> f64 {
    (finite as f64 / expected as f64).min(1.0)
}

/// How many positions fit where these are, which are sorted and different.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "spans of times are below 2^53 milliseconds, and so is a number of steps of at least one"
)]
fn expected(times: &[i64]) -> usize {
    let mut steps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return 0;
    };
    if steps.is_empty() {
        return times.len();
    }
    steps.sort_unstable();
    let middle = steps.len() / 2;
    let median = match steps.len() % 2 {
        0 => (steps[middle - 1] + steps[middle]) as f64 / 2.0,
        _ => steps[middle] as f64,
    };
    let fit = ((last - first) as f64 / median).round() as usize;
    times.len().max(1 + fit)
}

#[cfg(test)]
mod tests;
