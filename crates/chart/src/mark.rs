//! The marks of a checked specification's series, and the type of its x axis.

use super::{
    AxisPlace, AxisType, ChartSeries, ChartSpec, ChartType, ColumnKind, ColumnSummary, Columns, Mark, time,
};

impl ChartType {
    /// Returns whether series are drawn over `xKey`.
    pub(super) fn is_over_x(self) -> bool {
        !matches!(self, Self::Histogram | Self::Heatmap)
    }

    /// Returns the default mark of series.
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
    /// Returns whether neighboring points are joined, so that their order matters.
    pub(super) fn joins(self) -> bool {
        matches!(self, Self::Line | Self::Area)
    }
}

impl ChartSpec {
    /// Returns the mark of a series.
    pub fn mark(&self, series: &ChartSeries) -> Mark {
        series.mark.unwrap_or_else(|| self.kind.mark())
    }

    /// Returns the x axis's given type, or else the one that its values suggest.
    pub(super) fn x_type(&self, columns: &Columns) -> AxisType {
        let given = self.x_axis.as_ref().and_then(|axis| axis.kind);
        let column = self.x_key.as_ref().and_then(|key| columns.keys.get(key));
        given.unwrap_or_else(|| suggested(column))
    }
}

fn suggested(column: Option<&ColumnSummary>) -> AxisType {
    match column.map(|column| column.kind) {
        Some(ColumnKind::Time) => AxisType::Time,
        Some(ColumnKind::Number) => AxisType::Number,
        _ => AxisType::Category,
    }
}

impl AxisPlace {
    /// Returns the position as a label of an axis.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// Returns milliseconds since 1970 in UTC, if it can be read as a time.
    pub(super) fn time(&self) -> Option<i64> {
        match self {
            Self::Number(number) => time::of_number(number.as_f64()?),
            Self::Text(text) => time::of_text(text),
        }
    }
}
