//! The specification of a chart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Specification of a chart, by which rows are drawn. `docs/reference/chart.md` lists the keys that each type
/// needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChartSpec {
    /// The type of chart.
    #[serde(rename = "type")]
    pub kind: ChartType,
    /// The key of the rows that the x axis shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_key: Option<String>,
    /// The key of the y axis of a heatmap; for other types, shorthand for a single series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_key: Option<String>,
    /// The key whose numbers color the cells of a heatmap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_key: Option<String>,
    /// Series to draw, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub series: Vec<ChartSeries>,
    /// Measures that the chart must show, at most 20; each needs a series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub expected_measures: Vec<String>,
    /// The x axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_axis: Option<Axis>,
    /// The left y axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_axis: Option<Axis>,
    /// The right y axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_axis_right: Option<Axis>,
    /// Whether there is a legend; by default, if there are several series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<bool>,
    /// Whether bars and areas are stacked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stacked: bool,
    /// Whether a reader can choose a range of the x axis.
    #[serde(default, skip_serializing_if = "is_false")]
    pub brush: bool,
    /// Lines across the chart, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub reference_lines: Vec<ReferenceLine>,
    /// Areas behind the chart, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub reference_areas: Vec<ReferenceArea>,
    /// The keys of a candlestick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ohlc: Option<Ohlc>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// An enumeration whose values have names in a specification.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$about:meta])* $name:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $type {
            $($(#[$about])* #[serde(rename = $text)] $name),*
        }

        impl $type {
            /// Every name.
            pub const NAMES: &'static [&'static str] = &[$($text),*];

            /// Its name in a specification.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// The one of a name.
            pub fn of(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

names!(
    /// The type of a chart.
    ChartType {
        /// Lines over x.
        Line = "line",
        /// Bars over x.
        Bar = "bar",
        /// Filled lines over x.
        Area = "area",
        /// Points over x.
        Scatter = "scatter",
        /// Lines, bars, areas and points over one x.
        Composed = "composed",
        /// Counts of values in bins.
        Histogram = "histogram",
        /// Cells of x and y, colored by a value.
        Heatmap = "heatmap",
        /// Opening, highest, lowest and closing prices over x.
        Candlestick = "candlestick",
    }
);

names!(
    /// Mark with which one series is drawn.
    Mark {
        /// A line.
        Line = "line",
        /// Bars.
        Bar = "bar",
        /// An area.
        Area = "area",
        /// Points.
        Scatter = "scatter",
    }
);

names!(
    /// Side of the y axis of a series.
    Side {
        /// The left one.
        Left = "left",
        /// The right one.
        Right = "right",
    }
);

names!(
    /// Type of the values of an axis.
    AxisType {
        /// Times, on a continuous axis.
        Time = "time",
        /// Names, side by side in the order of the rows.
        Category = "category",
        /// Numbers, on a continuous axis.
        Number = "number",
    }
);

names!(
    /// Format of the numbers of an axis.
    Format {
        /// `1,234.5`.
        Number = "number",
        /// `12.3%`.
        Percent = "percent",
        /// `$1,234.50`.
        Currency = "currency",
        /// `1.23M`.
        Compact = "compact",
    }
);

names!(
    /// Scale of percentages in the rows.
    ValueScale {
        /// 0.12 is 12 %.
        Fraction = "fraction",
        /// 12 is 12 %.
        PercentPoints = "percent_points",
    }
);

/// One set of values over x.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Series")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChartSeries {
    /// The key of its numbers.
    pub key: String,
    /// Its name for readers; by default, its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Mark with which it is drawn in a composed chart; by default, a line.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// The key of its errors; each extends equally up and down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_key: Option<String>,
    /// Its y axis; the left one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_axis: Option<Side>,
    /// The expected measure that it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub satisfies: Option<String>,
}

impl ChartSeries {
    /// Its name for readers.
    pub fn name(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.key)
    }

    /// Its y axis.
    pub fn side(&self) -> Side {
        self.y_axis.unwrap_or(Side::Left)
    }
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Axis {
    /// Type of its values; by default, that of the rows' values.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<AxisType>,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Format of its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Scale of percentages in the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_scale: Option<ValueScale>,
}

/// A place on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Place")]
#[serde(untagged)]
pub enum AxisPlace {
    /// A number.
    Number(Number),
    /// A time or a name.
    Text(String),
}

/// A line across the chart at one x or one y.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReferenceLine {
    /// Position at which it crosses the x axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<AxisPlace>,
    /// Position at which it crosses the y axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<Number>,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its color: `#rgb`, `#rrggbb`, `#rrggbbaa` or a CSS color name.
    #[serde(default, alias = "stroke", skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The y axis of `y`; the left one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_axis: Option<Side>,
}

/// An area behind the chart; an omitted side is the edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReferenceArea {
    /// Start on the x axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x1: Option<AxisPlace>,
    /// End on the x axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x2: Option<AxisPlace>,
    /// Start on the y axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y1: Option<Number>,
    /// End on the y axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y2: Option<Number>,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its color: `#rgb`, `#rrggbb`, `#rrggbbaa` or a CSS color name.
    #[serde(default, alias = "fill", skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The y axis of `y1` and `y2`; the left one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_axis: Option<Side>,
}

/// The keys of a candlestick.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ohlc {
    /// The key of the opening price.
    pub open_key: String,
    /// The key of the highest price.
    pub high_key: String,
    /// The key of the lowest price.
    pub low_key: String,
    /// The key of the closing price.
    pub close_key: String,
}
