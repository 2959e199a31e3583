//! `render_chart` outside Python: a chart straight from one tool result, without code of a model.

use cellblock_artifact::{ArtifactDescription, ArtifactEnvelope, CHART, ChartArtifact, Kind, Picture};
use cellblock_protocol::InputFormat;
use cellblock_protocol::text::counted;
use serde_json::Value;

use super::coverage;
use super::derived::DerivationResult;
use super::policy::LowCoverage;
use super::run::Derivation;
use crate::chart::{self, ChartError, ChartProblem, CheckedChart};
use crate::contract::{KnownAliases, Mistakes, plain, quote, required, text, unknown_alias, wrong_type};
use crate::error::Result;
use crate::execution::Outcome;
use crate::picture::{self, PictureFormat, PictureOutcome};
use crate::rejection::Rejection;

/// Bytes of a tool result that is read for a chart; more is for Python, which is not asked to hold it twice.
const MOST_BYTES: u64 = 32 << 20;

const FIELDS: [&str; 5] = ["alias", "spec", "path", "title", "alt"];
const ALIAS: &str = "the alias of the tool result that holds the rows";
const SPEC: &str =
    "an object such as {\"type\": \"line\", \"xKey\": \"date\", \"series\": [{\"key\": \"price\"}]}";
const PATH: &str = "where the rows are in the result, such as data.rows";
const TITLE: &str = "the chart's title";
const ALT: &str = "a text that says what the chart shows";
/// Characters of an argument that is a text; a title and a text alternative have limits of their own.
const LONGEST: usize = 10_000;

/// A chart to draw from one alias.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartCall {
    /// The alias.
    pub alias: String,
    /// The specification.
    pub spec: Value,
    /// Path of the rows in the result, if there are several lists of rows.
    pub path: Option<String>,
    /// Text above the chart.
    pub title: Option<String>,
    /// Text alternative.
    pub alt: Option<String>,
}

impl ChartCall {
    /// Parses the arguments of the tool; all mistakes are reported at once.
    pub fn read(arguments: &Value) -> Result<Self, Vec<Rejection>> {
        let mut found = Mistakes::default();
        let Value::Object(fields) = arguments else {
            found.add(wrong_type(
                "arguments",
                "an object with `alias` and `spec`",
                arguments,
            ));
            return Err(found.all());
        };
        let alias = required(fields, "alias", ALIAS, &FIELDS, &mut found)
            .and_then(|value| text("alias", value, ALIAS, LONGEST, &mut found));
        let spec = required(fields, "spec", SPEC, &FIELDS, &mut found).cloned();
        let mut optional = |name: &str, needs: &str| {
            let value = fields.get(name).filter(|value| !value.is_null())?;
            text(name, value, needs, LONGEST, &mut found)
        };
        let (path, title, alt) = (
            optional("path", PATH),
            optional("title", TITLE),
            optional("alt", ALT),
        );
        for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            let message = format!(
                "{} is not an argument of render_chart; valid: {}",
                quote(name),
                FIELDS.join(", ")
            );
            found.add(Rejection::of_field(chart::code::UNKNOWN_KEY, plain(name), message).with_valid(FIELDS));
        }
        let mut found = found.all();
        match (alias, spec) {
            (Some(alias), Some(spec)) if found.is_empty() => Ok(Self {
                alias,
                spec,
                path,
                title,
                alt,
            }),
            (_, spec) => {
                found.extend(
                    spec.iter()
                        .flat_map(|spec| of_form(spec, title.as_deref(), alt.as_deref())),
                );
                Err(found)
            }
        }
    }

    /// Returns the problems of its form, whatever the rows are.
    fn form(&self) -> Vec<Rejection> {
        of_form(&self.spec, self.title.as_deref(), self.alt.as_deref())
    }
}

fn of_form(spec: &Value, title: Option<&str>, alt: Option<&str>) -> Vec<Rejection> {
    let problems = chart::form(spec, title, alt).map(of_error);
    problems.unwrap_or_default()
}

impl Derivation {
    /// Reads the arguments of a call and draws its chart; see [`render_chart`](Self::render_chart).
    pub async fn chart(&self, arguments: &Value) -> Result<DerivationResult> {
        match ChartCall::read(arguments) {
            Ok(call) => self.render_chart(&call).await,
            Err(rejections) => Ok(self.refuse("", rejections)),
        }
    }

    /// Draws a chart from one alias: checks it here, and draws its picture in a sandbox of its own.
    /// A chart that cannot be drawn counts as a failed attempt.
    pub async fn render_chart(&self, call: &ChartCall) -> Result<DerivationResult> {
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

    async fn drawn(&self, call: &ChartCall) -> Result<Result<CheckedChart, Vec<Rejection>>> {
        let Ok(entry) = self.aliases().entry(&call.alias) else {
            let known = KnownAliases::new(self.aliases().aliases());
            let unknown = unknown_alias("alias".to_owned(), &call.alias, &known);
            return Ok(Err([vec![unknown], call.form()].concat()));
        };
        let refuse = |code: &str, message: String| {
            let unsuitable = Rejection::of_field(code, "alias", message);
            Ok(Err([vec![unsuitable], call.form()].concat()))
        };
        if entry.format != InputFormat::Value {
            let message = format!(
                "`{}` is a table, not JSON: use code_interpreter, and call render_chart(spec, {}) there",
                entry.alias, entry.alias
            );
            return refuse("unsuitable_alias", message);
        }
        if entry.bytes > MOST_BYTES {
            let message = format!(
                "`{}` has {} bytes, a chart is made from at most {MOST_BYTES}: use code_interpreter, \
                 aggregate there, and call render_chart(spec, rows)",
                entry.alias, entry.bytes
            );
            return refuse("unsuitable_alias", message);
        }
        let bytes = self.shared().store.get(entry.sha256).await?;
        let data: Value = serde_json::from_slice(&bytes).map_err(crate::output::OutputError::from)?;
        let (path, title, alt) = (call.path.as_deref(), call.title.clone(), call.alt.clone());
        Ok(chart::from_json(&call.spec, &data, path, title, alt).map_err(of_error))
    }

    /// Adds the chart's picture, or why it has none: a chart is its data, which a reader's client
    /// can still draw.
    async fn draw(&self, chart: &CheckedChart, envelope: &mut ChartArtifact) {
        let drawn = match picture::draw(self.shared(), &chart.vega_lite(), PictureFormat::Png).await {
            Ok(drawn) => drawn,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "draw a chart");
                PictureOutcome {
                    note: Some(format!("no picture: {error}")),
                    ..PictureOutcome::default()
                }
            }
        };
        envelope.picture = drawn.picture.map(|image| Picture {
            url: self.policy().urls.of(image.sha256, &image.media_type),
            sha256: image.sha256,
            bytes: image.bytes,
            width: drawn.size.map(|(width, _)| width),
            height: drawn.size.map(|(_, height)| height),
            media_type: image.media_type,
        });
        envelope.note = drawn.note;
    }

    async fn emit(&self, chart: &CheckedChart) -> Result<DerivationResult> {
        let low = coverage::of_one_chart(chart, self.policy());
        if self.policy().low_coverage == LowCoverage::Reject && !low.is_empty() {
            let rejections = low.iter().map(coverage::rejection).collect();
            return Ok(DerivationResult {
                findings: low,
                ..self.answer(Outcome::Rejected { rejections }, Vec::new())
            });
        }
        let document = chart.document();
        let bytes = document.len() as u64;
        let about = ArtifactDescription {
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
        self.draw(chart, &mut envelope).await;
        let emitted = vec![ArtifactEnvelope::Chart(envelope)];
        Ok(DerivationResult {
            findings: low,
            ..self.answer(Outcome::Completed, emitted)
        })
    }
}

/// The mistakes in a chart as mistakes in the call.
fn of_error(error: ChartError) -> Vec<Rejection> {
    let mut found: Vec<_> = error.problems.into_iter().map(of_problem).collect();
    if let (Some(last), more @ 1..) = (found.last_mut(), error.more) {
        let verb = if more == 1 { "is" } else { "are" };
        let more = counted(more, "more problem");
        last.message = format!("{} ({more} {verb} not listed)", last.message);
    }
    found
}

/// Its message names the field and what may stand there, for a model that reads no more than that.
fn of_problem(mut problem: ChartProblem) -> Rejection {
    let is_argument = ["data", "path", "title", "alt", "spec"].iter().any(|name| {
        problem
            .field
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    });
    if !is_argument {
        problem.field = format!("spec.{}", problem.field);
    }
    let message = problem.to_string();
    Rejection::of_field(problem.code, problem.field, message).with_valid(problem.valid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(arguments: &Value) -> Vec<(String, String)> {
        let rejections = ChartCall::read(arguments).unwrap_err();
        let pair = |it: Rejection| (it.field.unwrap_or_default(), it.message);
        rejections.into_iter().map(pair).collect()
    }

    #[test]
    fn everything_that_is_wrong_with_a_call_is_told_at_once_with_its_field() {
        let found = told(&json!({
            "allias": "get_prices_1",
            "title": 7,
            "spec": {"type": "pie", "x_key": "day", "series": [{"key": "price", "yAxis": "middle"}],
                "legend": "yes"},
        }));
        let fields: Vec<_> = found.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "alias",
                "title",
                "allias",
                "spec.x_key",
                "spec.type",
                "spec.series[0].yAxis",
                "spec.legend"
            ]
        );
        for (field, message) in &found {
            assert!(message.contains(field.as_str()), "{field}: {message}");
        }
        assert!(found[4].1.contains("valid: line, bar, area"), "{}", found[4].1);
    }

    #[test]
    fn arguments_that_are_no_object_are_rejected() {
        assert_eq!(told(&json!([1]))[0].0, "arguments");
    }
}
