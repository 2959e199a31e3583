//! Outputs of a cell: typed values as reported by a kernel.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One output. Bytes are sent as blobs of the same frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// A table; blob 0 is an uncompressed Arrow IPC stream.
    Dataframe(Dataframe),
    /// A chart; blob 0 is a PNG.
    Figure(Figure),
    /// A picture; blob 0 contains its bytes.
    Image(Image),
    /// A scalar.
    Primitive(Primitive),
    /// A MIME bundle; one blob per type.
    Rich(Rich),
    /// A chart as a specification; blob 0 contains its rows, a JSON array of objects, blob 1 a PNG
    /// if one was drawn.
    Chart(Chart),
    /// The cell's result; blob 0 is JSON.
    Result(Answer),
    /// An exception that the cell raised.
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
    /// Name of the variable, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Library of the table.
    pub library: DataframeLibrary,
    /// Number of the table's rows in the kernel.
    pub rows: u64,
    /// Columns, including index columns, in the order of the Arrow stream.
    pub columns: Vec<Column>,
    /// Columns that were the index; a plain range index is left out.
    #[serde(default)]
    pub index: Vec<String>,
    /// Whether only the first and last rows are sent.
    #[serde(default)]
    pub truncated: bool,
    /// Number of sent rows from the start, if truncated.
    #[serde(default)]
    pub head_rows: u64,
    /// Number of sent rows from the end, if truncated.
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
    /// Type, as printed by the library.
    pub dtype: String,
}

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Name of the figure, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Library that drew it.
    pub library: FigureLibrary,
    /// Vega-Lite specification, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// Data that it shows.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Panels.
    #[serde(default)]
    pub axes: Vec<Axes>,
    /// Its title.
    #[serde(default)]
    pub title: Option<String>,
    /// Width of the picture in pixels.
    #[serde(default)]
    pub width: Option<u32>,
    /// Height of the picture in pixels.
    #[serde(default)]
    pub height: Option<u32>,
    /// Whether the picture or data was left out or cut.
    #[serde(default)]
    pub truncated: bool,
    /// Note for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Description in words; only figures emitted with `save_figure` have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
}

/// A chart that a client draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chart {
    /// Always null; present because each output has it.
    #[serde(default)]
    pub name: Option<String>,
    /// Title.
    #[serde(default)]
    pub title: Option<String>,
    /// Description in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// Specification: an object.
    pub spec: Value,
    /// Number of rows.
    pub rows: u64,
    /// The reason why there is no picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A cell's result from `set_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Always null; present because each output has it.
    #[serde(default)]
    pub name: Option<String>,
    /// Name of its Python type.
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
    /// Number of its panel.
    #[serde(default)]
    pub axes: u32,
    /// Label in the legend.
    #[serde(default)]
    pub label: Option<String>,
    /// Kind of its marks.
    pub kind: SeriesKind,
    /// Positions on the horizontal axis.
    #[serde(default)]
    pub x: Vec<Scalar>,
    /// Values, one per position.
    #[serde(default)]
    pub y: Vec<Scalar>,
    /// Number of points; at most 1,000 of them are sent.
    #[serde(default)]
    pub points: u64,
    /// For a line over time: the share of its axis' time range for which it has finite values, from
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Further values, one per point, by name: `low` and `high` of error bars and whiskers,
    /// `first_quartile`, `third_quartile` and the number of `outliers` of boxes, `from` and `to` of
    /// bins, `z` of cells, `low` of an area that does not begin at zero, `color` of points.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, Vec<Scalar>>,
}

/// Kind of a series' marks.
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
    /// A photo or another raster of colors, without data.
    Image,
    /// A histogram.
    Hist,
    /// Slices of a pie; x has their labels.
    Pie,
    /// Box plots; y has their medians.
    Box,
    /// Cells of a grid, such as those of a heatmap; the column `z` has their values.
    Heatmap,
    /// Another drawing, such as contours, without data.
    Other,
}

/// A panel of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Axes {
    /// Title.
    #[serde(default)]
    pub title: Option<String>,
    /// Label of the horizontal axis.
    #[serde(default)]
    pub xlabel: Option<String>,
    /// Label of the vertical axis.
    #[serde(default)]
    pub ylabel: Option<String>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Name of the variable, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Format of the bytes.
    pub mime: ImageMime,
    /// Width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Whether the bytes were left out.
    #[serde(default)]
    pub truncated: bool,
}

/// Format of a picture.
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
    /// Returns the media type.
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

/// A scalar with its Python type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Primitive {
    /// Name of the variable, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// The value.
    pub value: Scalar,
    /// Name of its Python type.
    pub python_type: String,
    /// Whether a text was cut.
    #[serde(default)]
    pub truncated: bool,
    /// Note for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A value in several representations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rich {
    /// Name of the variable, if it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// Media type of each blob.
    #[serde(default)]
    pub mimes: Vec<String>,
    /// Plain text form.
    #[serde(default)]
    pub text: String,
    /// Whether the text was cut or blobs were left out.
    #[serde(default)]
    pub truncated: bool,
}

/// An exception that a cell raised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exception {
    /// Always null; present because each output has it.
    #[serde(default)]
    pub name: Option<String>,
    /// Name of the exception's type.
    pub exception: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// Traceback as text, with only the user's frames.
    #[serde(default)]
    pub traceback: String,
    /// The user's frames, outermost first.
    #[serde(default)]
    pub frames: Vec<ExceptionFrame>,
    /// Line in the user's code.
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
    /// Name of the file.
    pub file: String,
    /// Line in the file.
    #[serde(default)]
    pub line: Option<u32>,
    /// Name of the function.
    #[serde(default)]
    pub function: Option<String>,
    /// Source code of the line.
    #[serde(default)]
    pub source: Option<String>,
}
