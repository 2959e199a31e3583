//! Comparing a measure with its peers and its floor, and judging its promises.

use crate::catalog::{Measure, Promise, Unit, WIDTHS, throughput_name};
use crate::samples::Samples;

/// The median of a measure of Cellblock's.
pub(crate) fn ours(measure: &Measure, samples: &Samples) -> Option<f64> {
    samples.median(&format!("cellblock/{}", measure.series))
}

/// The floor: the sum of its parts' medians, if there are all of them.
pub(crate) fn floor(measure: &Measure, samples: &Samples) -> Option<f64> {
    if measure.floor.is_empty() {
        return None;
    }
    measure.floor.iter().map(|series| samples.median(series)).sum()
}

/// Returns our value as a multiple of the floor: 1 would be as good as can be.
pub(crate) fn floors(measure: &Measure, samples: &Samples) -> Option<f64> {
    let (ours, floor) = (ours(measure, samples)?, floor(measure, samples)?);
    ratio(worse_over_better(measure.unit, ours, floor))
}

/// Returns the factor by which we are better than a peer: below 1 the peer is better.
pub(crate) fn times_better(measure: &Measure, peer: &str, samples: &Samples) -> Option<f64> {
    let (ours, theirs) = (ours(measure, samples)?, samples.median(peer)?);
    ratio(worse_over_better(measure.unit, theirs, ours))
}

fn worse_over_better(unit: Unit, first: f64, second: f64) -> f64 {
    if unit == Unit::PerSecond {
        second / first
    } else {
        first / second
    }
}

/// A ratio to nothing is none.
fn ratio(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Whether a promise is kept; `None` if it is not this row's to keep, or if what it needs was not measured.
pub(crate) fn kept(promise: Promise, measure: &Measure, samples: &Samples) -> Option<bool> {
    let value = ours(measure, samples)?;
    match promise {
        Promise::Most(limit) => Some(value <= limit),
        Promise::Floors(times) => floors(measure, samples).map(|it| it <= times),
        Promise::Sooner(times) => {
            let peer = measure.peers.iter().find(|it| it.starts_with("ipykernel/"))?;
            times_better(measure, peer, samples).map(|it| it >= times)
        }
        Promise::BestLeast(limit) => (best_throughput(samples)? == measure.series).then_some(value >= limit),
    }
}

/// The series of the width with the most rounds in a second.
fn best_throughput(samples: &Samples) -> Option<String> {
    WIDTHS
        .iter()
        .map(|width| throughput_name(*width))
        .filter_map(|name| Some((samples.median(&format!("cellblock/{name}"))?, name)))
        .max_by(|(first, _), (second, _)| first.total_cmp(second))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::MEASURES;

    fn measure(series: &str) -> &'static Measure {
        const ALL: &[Measure] = &MEASURES;
        ALL.iter().find(|it| it.series == series).unwrap()
    }

    fn samples(values: &[(&str, &str, f64)]) -> Samples {
        let mut samples = Samples::default();
        for (who, what, value) in values {
            samples.add(who, what, *value);
        }
        samples
    }

    #[test]
    fn a_new_session_is_compared_with_a_fork_and_namespaces_together() {
        let samples = samples(&[
            ("cellblock", "cold_first", 14.0),
            ("floor", "fork", 6.5),
            ("floor", "namespaces", 0.5),
            ("ipykernel", "first", 1050.0),
        ]);
        let cold = measure("cold_first");
        assert_eq!(floors(cold, &samples), Some(2.0));
        assert_eq!(times_better(cold, "ipykernel/first", &samples), Some(75.0));
        assert_eq!(times_better(cold, "runsc/first", &samples), None);
        assert_eq!(kept(Promise::Floors(2.0), cold, &samples), Some(true));
        assert_eq!(kept(Promise::Most(13.9), cold, &samples), Some(false));
    }

    #[test]
    fn half_a_floor_is_not_a_floor() {
        let samples = samples(&[("cellblock", "cold_first", 14.0), ("floor", "fork", 6.5)]);
        assert_eq!(floors(measure("cold_first"), &samples), None);
        assert_eq!(kept(Promise::Floors(2.0), measure("cold_first"), &samples), None);
    }

    #[test]
    fn more_rounds_in_a_second_are_better() {
        let samples = samples(&[
            ("cellblock", "throughput_1", 60.0),
            ("cellblock", "throughput_2", 90.0),
            ("python", "throughput_2", 45.0),
            ("floor", "throughput_2", 180.0),
        ]);
        let two = measure("throughput_2");
        assert_eq!(times_better(two, "python/throughput_2", &samples), Some(2.0));
        assert_eq!(floors(two, &samples), Some(2.0));
        assert_eq!(kept(Promise::BestLeast(100.0), two, &samples), Some(false));
        assert_eq!(
            kept(Promise::BestLeast(100.0), measure("throughput_1"), &samples),
            None
        );
    }

    #[test]
    fn a_chart_is_promised_so_many_times_sooner() {
        let samples = samples(&[("cellblock", "pool_chart", 80.0), ("ipykernel", "chart", 1590.0)]);
        let chart = measure("pool_chart");
        assert_eq!(kept(Promise::Sooner(20.0), chart, &samples), Some(false));
        assert_eq!(kept(Promise::Sooner(19.0), chart, &samples), Some(true));
    }
}
