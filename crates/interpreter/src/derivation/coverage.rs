//! Lines that were plotted with gaps.

use cellblock_artifact::Store;
use serde_json::json;

use super::emitted::{Emitted, data};
use super::policy::Policy;
use crate::chart;
use crate::contract::ArtifactKind;
use crate::error::Result;
use crate::finding::Finding;
use crate::rejection::Rejection;

/// The finding's and the rejection's code.
pub const LOW_COVERAGE: &str = "low_coverage";

/// A line, and how much of its axis' time range it covers.
#[derive(Debug)]
struct Line {
    artifact: ArtifactKind,
    series: String,
    coverage: f64,
}

/// One finding for each line of what was emitted that covers less than the policy asks for.
pub(super) async fn findings(emitted: &Emitted<'_>, store: &Store, policy: &Policy) -> Result<Vec<Finding>> {
    let mut lines = of_figures(emitted);
    for chart in &emitted.charts {
        let data = data(store, chart).await?;
        // What was decoded is right; its rows are read again as they are not kept in memory.
        if let Ok(chart) = chart::from_json(&chart.spec, &data, None, None) {
            lines.extend(of_chart(&chart));
        }
    }
    let low = lines
        .into_iter()
        .filter(|line| line.coverage < policy.coverage_threshold);
    Ok(low.map(|line| finding(line, policy.coverage_threshold)).collect())
}

/// The same for a chart alone.
pub(super) fn of_one_chart(chart: &chart::Chart, policy: &Policy) -> Vec<Finding> {
    let low = of_chart(chart)
        .into_iter()
        .filter(|line| line.coverage < policy.coverage_threshold);
    low.map(|line| finding(line, policy.coverage_threshold)).collect()
}

fn of_figures(emitted: &Emitted<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for figure in &emitted.figures {
        for (number, series) in figure.series.iter().enumerate() {
            let label = series.label.clone().filter(|label| !label.is_empty());
            // What comes out of a sandbox may be no share at all.
            if let Some(coverage) = series.coverage.filter(|share| (0.0..=1.0).contains(share)) {
                lines.push(Line {
                    artifact: ArtifactKind::Image,
                    series: label.unwrap_or_else(|| format!("line {}", number + 1)),
                    coverage,
                });
            }
        }
    }
    lines
}

fn of_chart(chart: &chart::Chart) -> Vec<Line> {
    let covered = chart.coverage().into_iter().filter_map(|series| {
        Some(Line {
            artifact: ArtifactKind::Chart,
            series: series.label,
            coverage: series.coverage?,
        })
    });
    covered.collect()
}

fn finding(line: Line, threshold: f64) -> Finding {
    let Line {
        artifact,
        series,
        coverage,
    } = line;
    Finding {
        code: LOW_COVERAGE.to_owned(),
        message: format!(
            "the line `{series}` has values for {:.0} % of the time range of its axis, less than {:.0} %: align the series to common \
             buckets (safe_merge_timeseries, align_timeseries), aggregate to a coarser bucket, or leave it out and say so",
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

/// What a model is told where the policy takes such a line for a mistake.
pub(super) fn rejection(finding: &Finding) -> Rejection {
    Rejection::of_field(LOW_COVERAGE, "expectedArtifacts", finding.message.clone())
        .with_valid(finding.series.clone())
}
