//! Lines that were plotted with gaps.

use serde_json::json;

use super::emitted::{Artifact, CellEmissions};
use super::policy::DerivationPolicy;
use crate::chart;
use crate::contract::ArtifactKind;
use crate::finding::Finding;
use crate::output::Figure;
use crate::rejection::Rejection;

/// The finding's and the rejection's code.
pub const LOW_COVERAGE: &str = "low_coverage";

/// A line, and how much of its axis' time range it covers.
#[derive(Debug)]
struct LineCoverage {
    artifact: ArtifactKind,
    series: String,
    coverage: f64,
}

/// One finding for each line of what was emitted that covers less than the policy asks for: of
/// figures, then of charts.
pub(super) fn findings(emitted: &CellEmissions<'_>, policy: &DerivationPolicy) -> Vec<Finding> {
    let (mut lines, mut of_charts) = (Vec::new(), Vec::new());
    for artifact in &emitted.artifacts {
        match artifact {
            Artifact::Image(figure, ..) => lines.extend(of_figure(figure)),
            // What was decoded is right, so this reads again what can be read.
            Artifact::Chart(chart, _, rows) => {
                if let Ok(chart) = chart::from_json(&chart.spec, rows, None, None, None) {
                    of_charts.extend(of_chart(&chart));
                }
            }
        }
    }
    lines.append(&mut of_charts);
    low(lines, policy)
}

/// The same for a chart alone.
pub(super) fn of_one_chart(chart: &chart::CheckedChart, policy: &DerivationPolicy) -> Vec<Finding> {
    low(of_chart(chart), policy)
}

fn low(lines: Vec<LineCoverage>, policy: &DerivationPolicy) -> Vec<Finding> {
    let threshold = policy.coverage_threshold;
    let low = lines.into_iter().filter(|line| line.coverage < threshold);
    low.map(|line| finding(line, threshold)).collect()
}

fn of_figure(figure: &Figure) -> Vec<LineCoverage> {
    let lines = figure.series.iter().enumerate().filter_map(|(number, series)| {
        let label = series.label.clone().filter(|label| !label.is_empty());
        Some(LineCoverage {
            artifact: ArtifactKind::Image,
            series: label.unwrap_or_else(|| format!("line {}", number + 1)),
            // What comes out of a sandbox may be no share at all.
            coverage: series.coverage.filter(|share| (0.0..=1.0).contains(share))?,
        })
    });
    lines.collect()
}

fn of_chart(chart: &chart::CheckedChart) -> Vec<LineCoverage> {
    let covered = chart.coverage().into_iter().filter_map(|series| {
        Some(LineCoverage {
            artifact: ArtifactKind::Chart,
            series: series.label,
            coverage: series.coverage?,
        })
    });
    covered.collect()
}

fn finding(line: LineCoverage, threshold: f64) -> Finding {
    let LineCoverage {
        artifact,
        series,
        coverage,
    } = line;
    Finding {
        code: LOW_COVERAGE.to_owned(),
        message: format!(
            "the line `{series}` has values for {:.0} % of the time range of its axis, less than {:.0} %: \
             align the series to common buckets (safe_merge_timeseries, align_timeseries), aggregate to a \
             coarser bucket, or leave it out and say so",
            coverage * 100.0,
            threshold * 100.0
        ),
        series: Some(series),
        details: json!({
            "artifact": artifact.name(),
            "coverage": (coverage * 1000.0).round() / 1000.0,
            "threshold": threshold,
        }),
    }
}

/// Builds the rejection for a policy that treats such a line as a mistake.
pub(super) fn rejection(finding: &Finding) -> Rejection {
    Rejection::of_field(LOW_COVERAGE, "expectedArtifacts", finding.message.clone())
        .with_valid(finding.series.clone())
}
