//! Checks that each expected measure is shown.

use crate::ChartSpec;
use crate::error::{ChartProblem, Problems, code, quoted};

pub(super) fn check(spec: &ChartSpec, problems: &mut Problems) {
    let expected = &spec.expected_measures;
    if expected.is_empty() {
        return;
    }
    for (at, series) in spec.series.iter().enumerate() {
        let Some(measure) = &series.satisfies else {
            continue;
        };
        if !expected.iter().any(|it| same(it, measure)) {
            let message = format!(
                "{} is not an expected measure; name one of them, or leave it out",
                quoted(measure)
            );
            let field = format!("series[{at}].satisfies");
            let problem = ChartProblem::new(code::SERIES_METRIC_MISMATCH, field, message);
            problems.push(problem.with_valid(expected.clone()));
        }
    }
    let shown: Vec<&str> = shown(spec);
    for (at, measure) in expected.iter().enumerate() {
        if !shown.iter().any(|it| same(it, measure)) {
            let message = format!(
                "no series shows {}; add one whose satisfies is this measure, and compute its values if \
                 no key has them",
                quoted(measure)
            );
            problems.add(
                code::SERIES_METRIC_MISMATCH,
                format!("expectedMeasures[{at}]"),
                message,
            );
        }
    }
}

/// Returns the measures that the chart shows: those that series declare, else their keys and
/// labels, and the keys of types without series.
fn shown(spec: &ChartSpec) -> Vec<&str> {
    let series = spec.series.iter().flat_map(|series| match &series.satisfies {
        Some(measure) => vec![measure.as_str()],
        None => vec![series.key.as_str(), series.name()],
    });
    let ohlc = spec.ohlc.iter();
    let prices = ohlc.flat_map(|it| [&it.open_key, &it.high_key, &it.low_key, &it.close_key]);
    let counted = spec.x_key.iter().filter(|_| spec.series.is_empty());
    let others = prices.chain(&spec.value_key).chain(counted).map(String::as_str);
    series.chain(others).collect()
}

/// Returns whether two names differ only in case and in the separators of their words.
fn same(one: &str, other: &str) -> bool {
    let words = |text: &str| {
        let words = text.chars().filter(|c| !matches!(c, ' ' | '_' | '-'));
        words.flat_map(char::to_lowercase).collect::<String>()
    };
    words(one) == words(other)
}
