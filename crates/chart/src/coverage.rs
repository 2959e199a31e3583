//! Coverage of the time axis by each line and area of a chart.
//!
//! A series that has a point for every step of the axis covers all of it. The expected number of
//! points is the number of the series' positions, including those with null, and at least the
//! number that fit on the axis at the median step between its positions: a series whose rows end
//! early, or omit a month, covers less. The axis spans the positions of all its series.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{AxisType, ChartSpec, RowValue, Rows};

/// Minimum number of expected points; fewer say nothing.
const FEWEST: usize = 3;

/// Coverage of the axis by one series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesCoverage {
    /// Key of its values.
    pub key: String,
    /// Name for readers.
    pub label: String,
    /// `finite / expected`, at most 1; none if fewer than 3 points are expected.
    pub coverage: Option<f64>,
    /// Number of positions with a finite value.
    pub finite: usize,
    /// Number of positions that a series without gaps would have.
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
    // Every series has a position wherever a row has a time, so all expect the same number.
    let mut places: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(time) = row.get(x).and_then(RowValue::time) {
            places.entry(time).or_default().push(at);
        }
    }
    let times: Vec<_> = places.keys().copied().collect();
    let expected = expected(&times);
    let rows: Vec<_> = rows.iter().collect();
    let lines = spec.series.iter().filter(|series| spec.mark(series).joins());
    lines
        .map(|series| {
            let has = |at: &usize| rows[*at].get(&series.key).and_then(RowValue::number).is_some();
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

/// Returns the number of positions that fit at the median step of these, which are sorted and
/// distinct.
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
