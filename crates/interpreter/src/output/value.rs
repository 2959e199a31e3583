//! The outputs that every interface prints.

use cellblock_artifact::{ArtifactId, Kind};
use cellblock_protocol::{Axes, DataframeLibrary, ExceptionFrame, FigureLibrary, ImageMime, Scalar, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A value that a cell displayed. `type` is its kind.
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
    /// The value that the cell passed to `set_result`.
    Result(Answer),
    /// The exception that the cell raised; its last output.
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
            Self::Chart(it) => it.document.iter().chain(&it.image).collect(),
            Self::Result(it) => it.json.iter().collect(),
            Self::Primitive(_) | Self::Exception(_) => Vec::new(),
        }
    }
}

/// Stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// The sha256 of the bytes, which identifies them in the artifact store.
    pub sha256: ArtifactId,
    /// Kind of the artifact.
    pub kind: Kind,
    /// Number of bytes.
    pub bytes: u64,
    /// Media type of the bytes, such as `image/png` or `application/vnd.apache.parquet`.
    pub media_type: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dataframe {
    /// Name of the displayed variable; null for an expression.
    pub name: Option<String>,
    /// Library of the table.
    pub library: DataframeLibrary,
    /// Number of rows of the table in the kernel.
    pub rows: u64,
    /// Number of rows in `table`.
    pub rows_stored: u64,
    /// Whether `table` contains all rows. If not, it contains the first and the last ones.
    pub complete: bool,
    /// The columns, including those of the index.
    pub columns: Vec<Column>,
    /// Names of the columns that were the index; a plain range index is omitted.
    pub index: Vec<String>,
    /// Whether it is a series instead of a frame.
    pub series: bool,
    /// The first rows, at most 10, one value per column. Numbers beyond 2^53, non-finite numbers,
    /// dates, times and decimals are strings; long values are truncated.
    pub head: Vec<Vec<Value>>,
    /// The last rows, at most 5, without those in `head`.
    pub tail: Vec<Vec<Value>>,
    /// The rows as Parquet; null if they could not be stored, which `note` explains.
    pub table: Option<ArtifactRef>,
    /// A note for the reader.
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
    /// Its type as Arrow prints it; empty if the table could not be stored.
    pub arrow_type: String,
    /// Number of null values among the stored ones.
    pub nulls: u64,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Name of the figure, such as a label, a variable's name or `figure 1`.
    pub name: Option<String>,
    /// Library that drew it.
    pub library: FigureLibrary,
    /// Its title.
    pub title: Option<String>,
    /// Its panels.
    pub axes: Vec<Axes>,
    /// The displayed data, at most 1,000 points of each series.
    pub series: Vec<Series>,
    /// The image as PNG; null if there is none.
    pub image: Option<ArtifactRef>,
    /// Width of the image in pixels.
    pub width: Option<u32>,
    /// Height of the image in pixels.
    pub height: Option<u32>,
    /// The Vega-Lite specification as JSON; null if it was not drawn from one.
    pub spec: Option<ArtifactRef>,
    /// Whether an image, a specification or data was omitted or truncated.
    pub truncated: bool,
    /// A note for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Text alternative; only figures emitted with `save_figure` have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
}

/// A chart that a reader's client draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chart {
    /// Its title.
    pub title: Option<String>,
    /// Text alternative.
    pub alt: Option<String>,
    /// Its specification; see `docs/reference/chart.md`.
    pub spec: Value,
    /// Number of rows.
    pub rows: u64,
    /// The specification with the rows, as one JSON document; null if it could not be stored.
    pub document: Option<ArtifactRef>,
    /// The chart as PNG; null if it could not be drawn, which `note` explains.
    pub image: Option<ArtifactRef>,
    /// Width of the image in pixels.
    pub width: Option<u32>,
    /// Height of the image in pixels.
    pub height: Option<u32>,
    /// Reason that there is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The value that a cell passed to `set_result`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The value.
    pub value: Value,
    /// Name of its Python type.
    pub python_type: String,
    /// The value as JSON; null if it could not be stored.
    pub json: Option<ArtifactRef>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Name of the displayed variable; null for an expression.
    pub name: Option<String>,
    /// Its format.
    pub mime: ImageMime,
    /// Width in pixels, read from the bytes; null for a vector image.
    pub width: Option<u32>,
    /// Height in pixels, read from the bytes; null for a vector image.
    pub height: Option<u32>,
    /// The bytes; null if they exceeded the limit of a cell or could not be stored.
    pub image: Option<ArtifactRef>,
}

/// A scalar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Primitive {
    /// Name of the displayed variable; null for an expression.
    pub name: Option<String>,
    /// The value; non-finite numbers and integers beyond 2^53 are strings.
    pub value: Scalar,
    /// Name of its Python type.
    pub python_type: String,
    /// Whether a text was truncated.
    pub truncated: bool,
    /// A note for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A value in several representations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rich {
    /// Name of the displayed variable; null for an expression.
    pub name: Option<String>,
    /// The plain text form.
    pub text: String,
    /// The other forms.
    pub bundle: Vec<Representation>,
    /// Whether the text was truncated or forms were omitted.
    pub truncated: bool,
}

/// One form of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Representation {
    /// Media type, as reported by the value.
    pub mime: String,
    /// Its bytes.
    pub artifact: ArtifactRef,
}

/// An exception that a cell raised, with secrets redacted.
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
    /// Whether a text was truncated.
    pub truncated: bool,
}
