//! `render_chart` outside Python: a chart straight from one tool result.

use cellblock_artifact::{About, ArtifactEnvelope, CHART, Kind};
use cellblock_protocol::InputFormat;
use serde::Deserialize;
use serde_json::Value;

use super::coverage;
use super::derived::Derived;
use super::policy::LowCoverage;
use super::run::Derivation;
use crate::chart::{self, Chart};
use crate::contract::{Known, unknown_alias};
use crate::error::Result;
use crate::execution::Outcome;
use crate::rejection::Rejection;

/// Bytes of a tool result that is read for a chart; more is for Python, which is not asked to hold it twice.
const MOST_BYTES: u64 = 32 << 20;

/// A chart to draw from one alias.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartCall {
    /// The alias.
    pub alias: String,
    /// The specification.
    pub spec: Value,
    /// Where in the result the rows are, where there are several lists of rows.
    #[serde(default)]
    pub path: Option<String>,
    /// What stands above the chart.
    #[serde(default)]
    pub title: Option<String>,
    /// What it shows, in words.
    #[serde(default)]
    pub alt: Option<String>,
}

impl ChartCall {
    /// Reads the arguments of the tool.
    pub fn read(arguments: &Value) -> Result<Self, Vec<Rejection>> {
        Self::deserialize(arguments).map_err(|error| {
            let message = format!(
                "the arguments of render_chart are wrong: {error}; give `alias` and `spec`, and `path`, `title` and `alt` where they are \
                 needed"
            );
            vec![Rejection::of_field("wrong_type", "arguments", message)]
        })
    }
}

impl Derivation {
    /// Draws a chart from one alias. Starts no sandbox; a chart that cannot be drawn counts as a failed attempt.
    pub async fn render_chart(&mut self, call: &ChartCall) -> Result<Derived> {
        let drawn = match self.attempts().refusal() {
            Some(refusal) => Err(vec![refusal]),
            None => self.drawn(call).await?,
        };
        let mut derived = match drawn {
            Ok(chart) => self.emit(&chart).await?,
            Err(rejections) => self.answer(Outcome::Rejected { rejections }, Vec::new()),
        };
        self.count(&mut derived);
        Ok(derived)
    }

    async fn drawn(&self, call: &ChartCall) -> Result<Result<Chart, Vec<Rejection>>> {
        let Ok(entry) = self.aliases().entry(&call.alias) else {
            let known = Known::new(self.aliases().aliases());
            return Ok(Err(vec![unknown_alias("alias".to_owned(), &call.alias, &known)]));
        };
        let refuse = |code: &str, message: String| Ok(Err(vec![Rejection::of_field(code, "alias", message)]));
        if entry.format != InputFormat::Value {
            let message = format!(
                "`{}` is a table, not JSON: use code_interpreter, and call render_chart(spec, {}) there",
                entry.alias, entry.alias
            );
            return refuse("unsuitable_alias", message);
        }
        if entry.bytes > MOST_BYTES {
            let message = format!(
                "`{}` has {} bytes, a chart is made from at most {MOST_BYTES}: use code_interpreter, aggregate there, and call \
                 render_chart(spec, rows)",
                entry.alias, entry.bytes
            );
            return refuse("unsuitable_alias", message);
        }
        let bytes = self.shared().store.get(entry.sha256).await?;
        let data: Value = serde_json::from_slice(&bytes).map_err(crate::output::OutputError::from)?;
        let made = chart::from_json(&call.spec, &data, call.path.as_deref(), call.title.clone());
        Ok(made
            .map(|chart| Chart {
                alt: call.alt.clone(),
                ..chart
            })
            .map_err(|error| error.problems.into_iter().map(of_problem).collect()))
    }

    async fn emit(&self, chart: &Chart) -> Result<Derived> {
        let low = coverage::of_one_chart(chart, self.policy());
        if self.policy().low_coverage == LowCoverage::Reject && !low.is_empty() {
            let rejections = low.iter().map(coverage::rejection).collect();
            return Ok(Derived {
                findings: low,
                ..self.answer(Outcome::Rejected { rejections }, Vec::new())
            });
        }
        let document = chart.document();
        let bytes = document.len() as u64;
        let about = About {
            kind: Kind::Chart,
            media_type: CHART.to_owned(),
            origin: None,
        };
        let id = self.shared().store.put(document, &about).await?;
        let value = |it: serde_json::Result<Value>| it.unwrap_or_default();
        let mut envelope = ArtifactEnvelope::chart(
            &self.policy().urls,
            id,
            bytes,
            value(serde_json::to_value(&chart.spec)),
            value(serde_json::to_value(&chart.rows)),
        );
        envelope.title.clone_from(&chart.title);
        envelope.alt.clone_from(&chart.alt);
        let emitted = vec![ArtifactEnvelope::Chart(envelope)];
        Ok(Derived {
            findings: low,
            ..self.answer(Outcome::Completed, emitted)
        })
    }
}

/// A mistake in a specification as a mistake in the call.
fn of_problem(problem: chart::Problem) -> Rejection {
    let field = match problem.field.as_str() {
        "data" | "path" | "title" | "alt" => problem.field,
        field => format!("spec.{field}"),
    };
    Rejection::of_field(problem.code, field, problem.message).with_valid(problem.valid)
}
