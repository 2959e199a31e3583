//! What a cell shows: typed values as a kernel reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One shown value. Bytes travel as blobs of the same frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// A table; blob 0 is an uncompressed Arrow IPC stream.
    Dataframe(Dataframe),
    /// A chart; blob 0 is a PNG.
    Figure(Figure),
    /// A picture; blob 0 are its bytes.
    Image(Image),
    /// A scalar.
    Primitive(Primitive),
    /// A MIME bundle; one blob per type.
    Rich(Rich),
    /// A chart as a specification; blob 0 are its rows, a JSON array of objects, blob 1 is a PNG where one was drawn.
    Chart(Chart),
    /// What the cell answers; blob 0 is JSON.
    Result(Answer),
    /// What the cell raised.
    Exception(Exception),
}

/// A JSON scalar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction, within 64 signed bits.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string; also a non-finite float or an integer beyond 2^53.
    Text(String),
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dataframe {
    /// The variable's name, when it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// The library that the table is of.
    pub library: DataframeLibrary,
    /// How many rows the table has in the kernel.
    pub rows: u64,
    /// Its columns, index columns included, in the order of the Arrow stream.
    pub columns: Vec<Column>,
    /// The columns that were the index; a plain range index is left out.
    #[serde(default)]
    pub index: Vec<String>,
    /// Whether only the head and the tail are sent.
    #[serde(default)]
    pub truncated: bool,
    /// How many of the sent rows are the first ones, when truncated.
    #[serde(default)]
    pub head_rows: u64,
    /// How many of the sent rows are the last ones, when truncated.
    #[serde(default)]
    pub tail_rows: u64,
    /// Whether it was a series rather than a frame.
    #[serde(default)]
    pub series: bool,
}

/// A library with tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataframeLibrary {
    /// pandas.
    Pandas,
    /// Polars.
    Polars,
    /// pyarrow.
    Pyarrow,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type as the library prints it.
    pub dtype: String,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The figure's name, when it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// What drew it.
    pub library: FigureLibrary,
    /// Its Vega-Lite specification, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// The data it shows.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Its panels.
    #[serde(default)]
    pub axes: Vec<Axes>,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// The picture's width in pixels.
    #[serde(default)]
    pub width: Option<u32>,
    /// The picture's height in pixels.
    #[serde(default)]
    pub height: Option<u32>,
    /// Whether the picture or data was left out or cut.
    #[serde(default)]
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
    /// Always null; present because each output has it.
    #[serde(default)]
    pub name: Option<String>,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// What it shows, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// Its specification: an object.
    pub spec: Value,
    /// How many rows there are.
    pub rows: u64,
    /// Why it has no picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a cell answers with `set_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Always null; present because each output has it.
    #[serde(default)]
    pub name: Option<String>,
    /// The name of its Python type.
    pub python_type: String,
}

/// A library that draws charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureLibrary {
    /// matplotlib.
    Matplotlib,
    /// Altair.
    Altair,
    /// A bare Vega-Lite specification.
    VegaLite,
}

/// One line, set of bars or other set of points of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// The number of the panel it is in.
    #[serde(default)]
    pub axes: u32,
    /// Its label in the legend.
    #[serde(default)]
    pub label: Option<String>,
    /// How it is drawn.
    pub kind: SeriesKind,
    /// Positions along the horizontal axis.
    #[serde(default)]
    pub x: Vec<Scalar>,
    /// Values, one per position.
    #[serde(default)]
    pub y: Vec<Scalar>,
    /// How many points there are; at most 1,000 of them are sent.
    #[serde(default)]
    pub points: u64,
    /// Of a line over time: the share of its axis' time range for which it has finite values, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// A line.
    Line,
    /// Bars.
    Bar,
    /// Separate points.
    Scatter,
    /// A filled area.
    Area,
    /// A raster.
    Image,
    /// A histogram.
    Hist,
}

/// A panel of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Axes {
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// The label of its horizontal axis.
    #[serde(default)]
    pub xlabel: Option<String>,
    /// The label of its vertical axis.
    #[serde(default)]
    pub ylabel: Option<String>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// The variable's name, when it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// What the bytes are.
    pub mime: ImageMime,
    /// Its width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Its height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Whether the bytes were left out.
    #[serde(default)]
    pub truncated: bool,
}

/// A picture's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImageMime {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// SVG.
    #[serde(rename = "image/svg+xml")]
    Svg,
    /// GIF.
    #[serde(rename = "image/gif")]
    Gif,
    /// WebP.
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageMime {
    /// The media type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Svg => "image/svg+xml",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// A scalar with the type it had in Python.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Primitive {
    /// The variable's name, when it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// The value.
    pub value: Scalar,
    /// The name of its Python type.
    pub python_type: String,
    /// Whether a text was cut.
    #[serde(default)]
    pub truncated: bool,
    /// What a reader has to know besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A value in several representations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rich {
    /// The variable's name, when it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// The media type of each blob.
    #[serde(default)]
    pub mimes: Vec<String>,
    /// The plain text form.
    #[serde(default)]
    pub text: String,
    /// Whether the text was cut or blobs were left out.
    #[serde(default)]
    pub truncated: bool,
}

/// What a cell raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exception {
    /// Always null; present because each output has it.
    #[serde(default)]
    pub name: Option<String>,
    /// The name of the exception's type.
    pub exception: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// The traceback as text, of the user's frames only.
    #[serde(default)]
    pub traceback: String,
    /// The user's frames, outermost first.
    #[serde(default)]
    pub frames: Vec<ExceptionFrame>,
    /// The line in the user's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Notes added to the exception.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether a text was cut.
    #[serde(default)]
    pub truncated: bool,
}

/// One frame of a traceback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExceptionFrame {
    /// The file's name.
    pub file: String,
    /// The line in it.
    #[serde(default)]
    pub line: Option<u32>,
    /// The function.
    #[serde(default)]
    pub function: Option<String>,
    /// The source of the line.
    #[serde(default)]
    pub source: Option<String>,
}
