//! Samples of one run, by series. A series is named `who/what`, such as `cellblock/warm` or `floor/fork`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything that a run measured, in the order of measuring within each series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Samples(BTreeMap<String, Vec<f64>>);

impl Samples {
    /// Adds a value in the series' own unit.
    pub(crate) fn add(&mut self, who: &str, what: &str, value: f64) {
        self.0
            .entry(format!("{who}/{what}"))
            .or_default()
            .push(rounded(value));
    }

    /// Adds a time, in milliseconds.
    pub(crate) fn time(&mut self, who: &str, what: &str, time: Duration) {
        self.add(who, what, time.as_secs_f64() * 1000.0);
    }

    pub(crate) fn times(&mut self, who: &str, what: &str, times: impl IntoIterator<Item = Duration>) {
        for time in times {
            self.time(who, what, time);
        }
    }

    /// Returns the number of samples of a series.
    pub(crate) fn count(&self, series: &str) -> usize {
        self.0.get(series).map_or(0, Vec::len)
    }

    /// The nearest-rank quantile; `None` without samples.
    pub(crate) fn quantile(&self, series: &str, quantile: f64) -> Option<f64> {
        let mut sorted = self.0.get(series)?.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into at most some thousands of samples"
        )]
        let rank = (sorted.len() as f64 * quantile).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    pub(crate) fn median(&self, series: &str) -> Option<f64> {
        self.quantile(series, 0.5)
    }

    pub(crate) fn series(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.0
            .iter()
            .map(|(name, values)| (name.as_str(), values.as_slice()))
    }
}

/// Four significant digits: more is noise, and the file of samples is kept in the repository.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the exponent of a double is small"
    )]
    let places = 3 - value.abs().log10().floor() as i32;
    if places <= 0 {
        return value.round();
    }
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Samples {
        let mut samples = Samples::default();
        for value in values {
            samples.add("cellblock", "warm", value);
        }
        samples
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let samples = of((1..=200).rev().map(f64::from));
        assert_eq!(samples.median("cellblock/warm"), Some(100.0));
        assert_eq!(samples.quantile("cellblock/warm", 0.99), Some(198.0));
        assert_eq!(samples.quantile("cellblock/warm", 1.0), Some(200.0));
        assert_eq!(samples.median("cellblock/cold"), None);
        assert_eq!(of([7.0]).quantile("cellblock/warm", 0.99), Some(7.0));
    }

    #[test]
    fn samples_keep_four_digits_and_larger_numbers_their_whole_part() {
        let kept = of([0.123_456, 14.913_135, 123_456.7, 0.0]);
        assert_eq!(
            kept.series().next(),
            Some(("cellblock/warm", &[0.1235, 14.91, 123_457.0, 0.0][..]))
        );
    }

    #[test]
    fn times_are_kept_in_milliseconds() {
        let mut samples = Samples::default();
        samples.times("floor", "fork", [Duration::from_micros(6700)]);
        assert_eq!(samples.median("floor/fork"), Some(6.7));
        assert_eq!(samples.count("floor/fork"), 1);
    }
}
