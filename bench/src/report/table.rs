//! The report as Markdown.

use std::fmt::Write as _;

use super::judge::{floor, floors, kept, ours, times_better};
use super::results::Results;
use crate::catalog::{MEASURES, Measure, Promise, Unit, name_of, unit_of};
use crate::samples::Samples;

/// Writes the table of measures, that of all series of peers and floors, and what is missing.
pub(crate) fn markdown(results: &Results) -> String {
    let samples = &results.samples;
    let mut text = String::from(
        "| what | p50 | p99 | n | peers (multiple of ours) | floor (ours as a multiple) | promise | kept |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for measure in &MEASURES {
        if let Some(value) = ours(measure, samples) {
            text.push_str(&row(measure, value, samples));
        }
    }
    text.push_str("\n| peer or floor | p50 | p99 | n |\n|---|---|---|---|\n");
    for (series, values) in samples.series() {
        let Some((who, what)) = series.split_once('/').filter(|(who, _)| *who != "cellblock") else {
            continue;
        };
        let quantile = |it| shown(samples.quantile(series, it), unit_of(series));
        let (median, high) = (quantile(0.5), quantile(0.99));
        let _ = writeln!(
            text,
            "| {}: {} | {median} | {high} | {} |",
            name_of(who),
            what.replace('_', " "),
            values.len()
        );
    }
    let made = &results.circumstances;
    let _ = writeln!(
        text,
        "\n{} CPUs ({}), {} MiB, Linux {}; Python {}; bwrap: {}; runsc: {}; commit {}; load {} at the \
         start; `{}`, {} s, {}.",
        made.cpus,
        made.cpu,
        made.memory_mib,
        made.kernel,
        made.python,
        made.bwrap.as_deref().unwrap_or("none"),
        made.runsc.as_deref().unwrap_or("none"),
        made.commit,
        made.load,
        made.command,
        made.seconds,
        made.date
    );
    for (who, why) in &results.missing {
        let _ = writeln!(text, "Missing: {who}: {why}");
    }
    for failure in &results.failures {
        let _ = writeln!(text, "FAILED: {failure}");
    }
    text
}

fn row(measure: &Measure, value: f64, samples: &Samples) -> String {
    let series = format!("cellblock/{}", measure.series);
    let peers: Vec<_> = measure
        .peers
        .iter()
        .filter_map(|peer| {
            let who = name_of(peer.split('/').next()?);
            let theirs = shown(samples.median(peer), measure.unit);
            Some(format!(
                "{who} {theirs} ({})",
                times(times_better(measure, peer, samples)?)
            ))
        })
        .collect();
    let floor = floor(measure, samples)
        .zip(floors(measure, samples))
        .map_or_else(String::new, |(floor, ratio)| {
            format!("{} ({})", shown(Some(floor), measure.unit), times(ratio))
        });
    let judged: Vec<_> = measure
        .promises
        .iter()
        .filter_map(|promise| Some((*promise, kept(*promise, measure, samples)?)))
        .collect();
    let promises: Vec<_> = judged
        .iter()
        .map(|(promise, _)| words(*promise, measure.unit))
        .collect();
    let verdicts: Vec<_> = judged
        .iter()
        .map(|(_, kept)| if *kept { "yes" } else { "NO" })
        .collect();
    format!(
        "| {} | {} | {} | {} | {} | {floor} | {} | {} |\n",
        measure.what,
        shown(Some(value), measure.unit),
        shown(samples.quantile(&series, 0.99), measure.unit),
        samples.count(&series),
        peers.join(", "),
        promises.join(", "),
        verdicts.join(", ")
    )
}

fn words(promise: Promise, unit: Unit) -> String {
    let plain = match unit {
        Unit::MsFor(_) => Unit::Ms,
        other => other,
    };
    match promise {
        Promise::Most(limit) => format!("≤ {}", shown(Some(limit), plain)),
        Promise::BestLeast(limit) => format!("≥ {} at the best", shown(Some(limit), plain)),
        Promise::Floors(times) => format!("≤ {times}× the floor"),
        Promise::Sooner(times) => format!("≥ {times}× sooner than ipykernel"),
    }
}

/// A value for people.
pub(crate) fn shown(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value else {
        return "–".to_owned();
    };
    match unit {
        Unit::Ms => format!("{} ms", number(value)),
        Unit::MsFor(megabytes) => {
            format!(
                "{} ms, {} MB/s",
                number(value),
                number(megabytes / value * 1000.0)
            )
        }
        Unit::Kib => format!("{} KiB", number(value)),
        Unit::Mib => format!("{} MiB", number(value)),
        Unit::PerSecond => format!("{} /s", number(value)),
        Unit::Times => format!("{}×", number(value)),
        Unit::Count => number(value),
    }
}

/// Three digits that count, thousands set apart.
pub(crate) fn number(value: f64) -> String {
    if value >= 1000.0 {
        let digits = format!("{value:.0}");
        let (head, tail) = digits.split_at(digits.len() - 3);
        return format!("{head},{tail}");
    }
    let places = match value {
        it if it >= 100.0 => 0,
        it if it >= 10.0 => 1,
        it if it >= 0.1 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn times(ratio: f64) -> String {
    format!("{}×", number(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [
            (0.0123, "0.012"),
            (0.2735, "0.27"),
            (14.913, "14.9"),
            (100.0, "100"),
            (1047.77, "1,048"),
            (123_456.0, "123,456"),
            (2.0, "2"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_row_names_peers_floor_and_promise_with_their_ratios() {
        let mut results = Results::default();
        results.samples.add("cellblock", "warm", 0.3);
        results.samples.add("ipykernel", "warm", 4.2);
        results.samples.add("floor", "round_trip", 0.05);
        let text = markdown(&results);
        assert_eq!(
            text.lines().nth(2).unwrap(),
            "| warm `1+1` | 0.3 ms | 0.3 ms | 1 | ipykernel 4.2 ms (14×) | 0.05 ms (6×) | ≤ 0.5 ms, ≤ 3× \
             the floor | yes, NO |"
        );
        assert!(text.contains("\n| floor: round trip | 0.05 ms | 0.05 ms | 1 |\n"));
    }

    #[test]
    fn unmeasured_rows_are_left_out_and_missing_ones_named() {
        let mut results = Results::default();
        results.missing.insert("runsc".into(), "not found".into());
        let text = markdown(&results);
        assert_eq!(text.lines().nth(2), Some(""));
        assert!(text.ends_with("\nMissing: runsc: not found\n"));
    }
}
