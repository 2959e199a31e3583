//! Samples of one run, by series. A series is named `who/what`, such as `cellblock/warm` or `floor/fork`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Everything that a run measured, in the order of measuring within each series.
pub(crate) type Samples = BTreeMap<String, Vec<f64>>;

/// One turn of a probe: the program that it measures, its name, and the samples of the run.
#[derive(Debug)]
pub(crate) struct ProbeTurn {
    pub(crate) who: &'static str,
    pub(crate) what: &'static str,
    pub(crate) samples: Rc<RefCell<Samples>>,
}

impl ProbeTurn {
    /// The same turn, for samples of another program.
    pub(crate) fn of(&self, who: &'static str) -> Self {
        Self {
            who,
            what: self.what,
            samples: Rc::clone(&self.samples),
        }
    }

    /// Adds a value in the series' own unit.
    pub(crate) fn add(&self, what: &str, value: f64) {
        let mut samples = self.samples.borrow_mut();
        let series = samples.entry(format!("{}/{what}", self.who));
        series.or_default().push(rounded(value));
    }

    /// Adds a time, in milliseconds.
    pub(crate) fn time(&self, what: &str, time: Duration) {
        self.add(what, time.as_secs_f64() * 1000.0);
    }

    pub(crate) fn times(&self, what: &str, times: impl IntoIterator<Item = Duration>) {
        for time in times {
            self.time(what, time);
        }
    }
}

/// Four significant digits: more is noise, and the file of samples is kept in the repository.
fn rounded(value: f64) -> f64 {
    match value.abs() {
        size if !size.is_finite() => 0.0,
        1000.0.. => value.round(),
        _ => format!("{value:.3e}").parse().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_keep_four_digits_and_larger_numbers_their_whole_part() {
        let turn = ProbeTurn {
            who: "cellblock",
            what: "warm",
            samples: Rc::default(),
        };
        for value in [0.123_456, 14.913_135, 123_456.7, 0.0, f64::INFINITY] {
            turn.add("warm", value);
        }
        turn.of("floor").times("fork", [Duration::from_micros(6700)]);
        let samples = turn.samples.take();
        assert_eq!(samples["cellblock/warm"], [0.1235, 14.91, 123_457.0, 0.0, 0.0]);
        assert_eq!(samples["floor/fork"], [6.7]);
    }
}
