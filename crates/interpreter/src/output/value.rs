//! The outputs that every interface prints.

use cellblock_artifact::{ArtifactId, Kind};
use cellblock_protocol::{Axes, DataframeLibrary, ExceptionFrame, FigureLibrary, ImageMime, Scalar, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One value that a cell showed. `type` says which kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// A table of pandas, Polars or pyarrow.
    Dataframe(Dataframe),
    /// A chart.
    Figure(Figure),
    /// A picture.
    Image(Image),
    /// A string, number, bool or null; also any value without a richer form, as its text.
    Primitive(Primitive),
    /// A value in several representations.
    Rich(Rich),
    /// A chart as a specification with its rows.
    Chart(Chart),
    /// What the cell answered with `set_result`.
    Result(Answer),
    /// What the cell raised; the last output of a cell that raised.
    Exception(Exception),
}

impl Output {
    /// The variable's or figure's name, when it has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Dataframe(it) => it.name.as_deref(),
            Self::Figure(it) => it.name.as_deref(),
            Self::Image(it) => it.name.as_deref(),
            Self::Primitive(it) => it.name.as_deref(),
            Self::Rich(it) => it.name.as_deref(),
            Self::Chart(_) | Self::Result(_) | Self::Exception(_) => None,
        }
    }

    /// The artifacts that hold its bytes.
    pub fn artifacts(&self) -> Vec<&ArtifactRef> {
        match self {
            Self::Dataframe(it) => it.table.iter().collect(),
            Self::Figure(it) => it.image.iter().chain(&it.spec).collect(),
            Self::Image(it) => it.image.iter().collect(),
            Self::Rich(it) => it
                .bundle
                .iter()
                .map(|representation| &representation.artifact)
                .collect(),
            Self::Chart(it) => std::iter::once(&it.document).chain(&it.image).collect(),
            Self::Result(it) => vec![&it.json],
            Self::Primitive(_) | Self::Exception(_) => Vec::new(),
        }
    }
}

/// Stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// The sha256 of the bytes, by which they are found in the artifact store.
    pub sha256: ArtifactId,
    /// What the bytes are of.
    pub kind: Kind,
    /// How many bytes there are.
    pub bytes: u64,
    /// What format they are in, such as `image/png` or `application/vnd.apache.parquet`.
    pub media_type: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dataframe {
    /// The name of the variable that was shown; null when it was an expression.
    pub name: Option<String>,
    /// The library that the table is of.
    pub library: DataframeLibrary,
    /// How many rows the table has in the kernel.
    pub rows: u64,
    /// How many of them are in `table`.
    pub rows_stored: u64,
    /// Whether `table` holds every row. If not, it holds the first and the last ones.
    pub complete: bool,
    /// The columns, those of the index included.
    pub columns: Vec<Column>,
    /// The names of the columns that were the index; a plain range index is left out.
    pub index: Vec<String>,
    /// Whether it was a series rather than a frame.
    pub series: bool,
    /// The first rows, at most 10, one value per column. Numbers beyond 2^53, non-finite numbers, dates, times and
    /// decimals are strings; long values are cut.
    pub head: Vec<Vec<Value>>,
    /// The last rows, at most 5, without those that `head` has.
    pub tail: Vec<Vec<Value>>,
    /// The rows as Parquet; null when they could not be stored, which `note` explains.
    pub table: Option<ArtifactRef>,
    /// What a reader has to know besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type as its library prints it.
    pub dtype: String,
    /// Its type as Arrow prints it; empty when the table could not be stored.
    pub arrow_type: String,
    /// How many of the stored values are null.
    pub nulls: u64,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The figure's name, such as a label, a variable's name or `figure 1`.
    pub name: Option<String>,
    /// What drew it.
    pub library: FigureLibrary,
    /// Its title.
    pub title: Option<String>,
    /// Its panels.
    pub axes: Vec<Axes>,
    /// The data it shows, at most 1,000 points of each series.
    pub series: Vec<Series>,
    /// The picture as PNG; null when there is none.
    pub image: Option<ArtifactRef>,
    /// The picture's width in pixels.
    pub width: Option<u32>,
    /// The picture's height in pixels.
    pub height: Option<u32>,
    /// The Vega-Lite specification as JSON; null when it was not drawn from one.
    pub spec: Option<ArtifactRef>,
    /// Whether a picture, a specification or data was left out or cut.
    pub truncated: bool,
    /// What a reader has to know besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What it shows, in words; only a figure that was emitted with `save_figure` has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
}

/// A chart that a reader's client draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chart {
    /// Its title.
    pub title: Option<String>,
    /// What it shows, in words.
    pub alt: Option<String>,
    /// Its specification; see `docs/reference/chart.md`.
    pub spec: Value,
    /// How many rows it has.
    pub rows: u64,
    /// The specification with the rows, as one JSON document.
    pub document: ArtifactRef,
    /// The chart as PNG; null when it could not be drawn, which `note` explains.
    pub image: Option<ArtifactRef>,
    /// The picture's width in pixels.
    pub width: Option<u32>,
    /// The picture's height in pixels.
    pub height: Option<u32>,
    /// Why there is no picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a cell answered with `set_result`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The value.
    pub value: Value,
    /// The name of its Python type.
    pub python_type: String,
    /// The value as JSON.
    pub json: ArtifactRef,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// The name of the variable that was shown; null when it was an expression.
    pub name: Option<String>,
    /// Its format.
    pub mime: ImageMime,
    /// Its width in pixels, as its bytes say; null for a drawing.
    pub width: Option<u32>,
    /// Its height in pixels, as its bytes say; null for a drawing.
    pub height: Option<u32>,
    /// Its bytes; null when they were more than a cell may show.
    pub image: Option<ArtifactRef>,
}

/// A scalar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Primitive {
    /// The name of the variable that was shown; null when it was an expression.
    pub name: Option<String>,
    /// The value; non-finite numbers and integers beyond 2^53 are strings.
    pub value: Scalar,
    /// The name of its Python type.
    pub python_type: String,
    /// Whether a text was cut.
    pub truncated: bool,
    /// What a reader has to know besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A value in several representations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rich {
    /// The name of the variable that was shown; null when it was an expression.
    pub name: Option<String>,
    /// The plain text form.
    pub text: String,
    /// The other forms.
    pub bundle: Vec<Representation>,
    /// Whether the text was cut or forms were left out.
    pub truncated: bool,
}

/// One form of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Representation {
    /// Its media type, as the value gave it.
    pub mime: String,
    /// Its bytes.
    pub artifact: ArtifactRef,
}

/// What a cell raised. Secrets are taken out of each text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exception {
    /// The name of the exception's type.
    pub exception: String,
    /// Its message.
    pub message: String,
    /// The traceback as text, of the user's frames only.
    pub traceback: String,
    /// The user's frames, outermost first.
    pub frames: Vec<ExceptionFrame>,
    /// The line in the user's code.
    pub line: Option<u32>,
    /// Notes added to the exception.
    pub notes: Vec<String>,
    /// Whether a text was cut.
    pub truncated: bool,
}
