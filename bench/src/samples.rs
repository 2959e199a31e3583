//! Samples of what is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Session created without a pool, until the result of `1+1`.
    ColdFirstResult,
    /// The same with a sandbox from the pool.
    PoolFirstResult,
    /// Session created without a pool, until a summary table and a chart as PNG.
    ColdFirstChart,
    /// The same with a sandbox from the pool.
    PoolFirstChart,
    /// `1+1` in a live session.
    Warm,
    /// From the deadline of a Python loop until the session can go on.
    StopLoop,
    /// From the deadline of code that does not listen to signals until its end is known.
    StopDeaf,
    /// ipykernel started, until the result of `1+1`.
    PeerFirstResult,
    /// ipykernel started, until the table and the chart.
    PeerFirstChart,
    /// `1+1` in a live ipykernel.
    PeerWarm,
}

/// All samples, in milliseconds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Samples(BTreeMap<Metric, Vec<f64>>);

impl Samples {
    pub(crate) fn add(&mut self, metric: Metric, sample: Duration) {
        self.0
            .entry(metric)
            .or_default()
            .push(sample.as_secs_f64() * 1000.0);
    }

    pub(crate) fn extend(&mut self, metric: Metric, samples: impl IntoIterator<Item = Duration>) {
        for sample in samples {
            self.add(metric, sample);
        }
    }

    /// A quantile in milliseconds; `None` without samples.
    pub(crate) fn quantile(&self, metric: Metric, quantile: f64) -> Option<f64> {
        let mut sorted = self.0.get(&metric)?.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into at most some thousands of samples"
        )]
        let index = ((sorted.len() - 1) as f64 * quantile).round() as usize;
        sorted.get(index).copied()
    }
}
