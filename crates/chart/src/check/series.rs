//! Checks that the rows have the numbers that a specification draws.

use crate::error::{Problems, code, quoted};
use crate::{ChartSpec, ChartType, Columns};

use super::{column, numeric};

pub(super) fn check(spec: &ChartSpec, columns: &Columns, problems: &mut Problems) {
    for (at, series) in spec.series.iter().enumerate() {
        numeric(columns, &series.key, &format!("series[{at}].key"), problems);
        if let Some(key) = &series.error_key {
            errors(columns, key, &format!("series[{at}].errorKey"), problems);
        }
    }
    match spec.kind {
        ChartType::Heatmap => {
            if let Some(key) = &spec.y_key {
                column(columns, key, "yKey", problems);
            }
            if let Some(key) = &spec.value_key {
                numeric(columns, key, "valueKey", problems);
            }
        }
        ChartType::Histogram if spec.series.is_empty() => {
            if let Some(key) = &spec.x_key {
                numeric(columns, key, "xKey", problems);
            }
        }
        ChartType::Candlestick => {
            let Some(ohlc) = &spec.ohlc else { return };
            let keys = [
                (&ohlc.open_key, "ohlc.openKey"),
                (&ohlc.high_key, "ohlc.highKey"),
                (&ohlc.low_key, "ohlc.lowKey"),
                (&ohlc.close_key, "ohlc.closeKey"),
            ];
            for (key, field) in keys {
                numeric(columns, key, field, problems);
            }
        }
        _ => {}
    }
}

fn errors(columns: &Columns, key: &str, field: &str, problems: &mut Problems) {
    let Some(column) = numeric(columns, key, field, problems) else {
        return;
    };
    if let Some(min) = column.min.filter(|min| *min < 0.0) {
        let message = format!(
            "{} has negative values such as {min}; an error is a distance up and down from its value",
            quoted(key)
        );
        problems.add(code::INVALID_VALUE, field, message);
    }
}
