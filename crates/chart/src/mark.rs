//! What a checked specification draws: the mark of each series, and what its x axis is.

use super::{AxisType, ChartSpec, ChartType, Column, ColumnKind, Columns, Mark, Place, Series, time};

impl ChartType {
    /// Whether series are drawn over `xKey`.
    pub(super) fn is_over_x(self) -> bool {
        !matches!(self, Self::Histogram | Self::Heatmap)
    }

    /// How series are drawn that do not say how.
    pub(super) fn mark(self) -> Mark {
        match self {
            Self::Line | Self::Composed | Self::Candlestick | Self::Heatmap => Mark::Line,
            Self::Bar | Self::Histogram => Mark::Bar,
            Self::Area => Mark::Area,
            Self::Scatter => Mark::Scatter,
        }
    }
}

impl Mark {
    /// Whether neighbouring points are joined, so that their order means something.
    pub(super) fn joins(self) -> bool {
        matches!(self, Self::Line | Self::Area)
    }
}

impl ChartSpec {
    /// How a series is drawn.
    pub fn mark(&self, series: &Series) -> Mark {
        series.mark.unwrap_or_else(|| self.kind.mark())
    }

    /// The type that the x axis was given, or else the one that its values suggest.
    pub(super) fn x_type(&self, columns: &Columns) -> AxisType {
        let given = self.x_axis.as_ref().and_then(|axis| axis.kind);
        let column = self.x_key.as_ref().and_then(|key| columns.keys.get(key));
        given.unwrap_or_else(|| suggested(column))
    }
}

fn suggested(column: Option<&Column>) -> AxisType {
    match column.map(|column| column.kind) {
        Some(ColumnKind::Time) => AxisType::Time,
        Some(ColumnKind::Number) => AxisType::Number,
        _ => AxisType::Category,
    }
}

impl Place {
    /// The place as a label of an axis.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// Milliseconds since 1970 in UTC, when it can be read as a time.
    pub(super) fn time(&self) -> Option<i64> {
        match self {
            Self::Number(number) => time::of_number(number.as_f64()?),
            Self::Text(text) => time::of_text(text),
        }
    }
}
