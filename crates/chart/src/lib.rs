//! Charts as a specification and rows: client-drawn data that is checked, measured and convertible
//! to Vega-Lite.
//!
//! Everything here is a pure function of its arguments. `docs/reference/chart.md` describes the
//! specification; a mistake in one is returned as a [`ChartError`] that names the key, the actual
//! and the valid values, and the repair.

mod check;
mod coverage;
mod error;
mod mark;
mod read;
mod rows;
mod source;
mod spec;
mod time;
mod vega;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use check::check;
pub use coverage::{SeriesCoverage, coverage};
pub use error::{ChartError, ChartProblem, code};
pub use rows::{
    ColumnKind, ColumnSummary, Columns, MAX_BYTES, MAX_KEYS, MAX_POINTS, MAX_ROWS, Row, RowValue, Rows,
};
pub use source::from_json;
pub use spec::{
    Axis, AxisPlace, AxisType, ChartSeries, ChartSpec, ChartType, Format, Mark, Ohlc, ReferenceArea,
    ReferenceLine, Side, ValueScale,
};
pub use vega::{PALETTE, to_vega_lite};

use error::Problems;

/// Maximum length of a title in characters.
pub const MAX_TITLE: usize = 300;
/// Maximum length of a text alternative in characters.
pub const MAX_ALT: usize = 2000;

/// A specification that was checked against its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedChart {
    /// The specification; normalized, see [`check`].
    pub spec: ChartSpec,
    /// The rows that it draws.
    pub rows: Rows,
    /// Title above the chart.
    pub title: Option<String>,
    /// Description in words.
    pub alt: Option<String>,
}

/// A chart as it is stored.
#[derive(Serialize)]
struct ChartDocument<'a> {
    kind: &'static str,
    title: Option<&'a str>,
    alt: Option<&'a str>,
    spec: &'a ChartSpec,
    data: &'a Rows,
}

/// A stored chart as it is read.
#[derive(Deserialize)]
struct StoredChart {
    title: Option<String>,
    alt: Option<String>,
    spec: Value,
    data: Value,
}

impl CheckedChart {
    /// Checks a specification against rows.
    pub fn new(
        spec: &Value,
        rows: Rows,
        title: Option<String>,
        alt: Option<String>,
    ) -> Result<Self, ChartError> {
        let mut problems = Problems::default();
        words(title.as_deref(), alt.as_deref(), &mut problems);
        let checked = check::with_rows(spec, &rows, &mut problems);
        match (checked, problems.into_error()) {
            (Some(spec), None) => Ok(Self {
                spec,
                rows,
                title,
                alt,
            }),
            (_, Some(error)) => Err(error),
            (None, None) => Err(ChartError::of(check::unreadable())),
        }
    }

    /// Reads a chart from its document.
    pub fn of_document(document: &[u8]) -> Result<Self, ChartError> {
        let malformed = |error: serde_json::Error| {
            let message = format!("the document is not that of a chart: {error}");
            ChartError::of(ChartProblem::new(code::DATA_MALFORMED, "document", message))
        };
        let read: StoredChart = serde_json::from_slice(document).map_err(malformed)?;
        let rows = Rows::parse(read.data.to_string().as_bytes())?;
        Self::new(&read.spec, rows, read.title, read.alt)
    }

    /// Returns the canonical JSON `{"kind":"chart","title":…,"alt":…,"spec":{…},"data":[…]}`, whose
    /// sha256 is its id: the order of keys is fixed, and those of a row are sorted.
    pub fn document(&self) -> Vec<u8> {
        let document = ChartDocument {
            kind: "chart",
            title: self.title.as_deref(),
            alt: self.alt.as_deref(),
            spec: &self.spec,
            data: &self.rows,
        };
        // Every key is a string and every number is finite, so writing to memory cannot fail.
        serde_json::to_vec(&document).unwrap_or_default()
    }

    /// Returns the chart as a Vega-Lite specification with its data.
    pub fn vega_lite(&self) -> Value {
        let mut spec = to_vega_lite(&self.spec, &self.rows, self.title.as_deref());
        if let Some(alt) = &self.alt {
            spec["description"] = Value::from(alt.as_str());
        }
        spec
    }

    /// Returns the coverage of the time axis by each line and area.
    pub fn coverage(&self) -> Vec<SeriesCoverage> {
        coverage(&self.spec, &self.rows)
    }
}

/// Checks everything that does not depend on the rows: the form of a specification, its title and
/// its text alternative.
pub fn form(spec: &Value, title: Option<&str>, alt: Option<&str>) -> Option<ChartError> {
    let mut problems = Problems::default();
    words(title, alt, &mut problems);
    check::form(spec, &mut problems);
    problems.into_error()
}

fn words(title: Option<&str>, alt: Option<&str>, problems: &mut Problems) {
    for (field, text, most) in [("title", title, MAX_TITLE), ("alt", alt, MAX_ALT)] {
        if let Some(text) = text {
            read::check_text(text, field, most, problems);
        }
    }
}

/// Media type of a Vega-Lite specification.
pub const VEGA_LITE: &str = "application/vnd.vegalite+json";

/// Returns the JSON schema of a specification.
pub fn schema() -> Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<ChartSpec>();
    schema.insert(
        "title".to_owned(),
        "The specification of a chart, as `render_chart` takes it".into(),
    );
    schema.to_value()
}

#[cfg(test)]
mod tests;
