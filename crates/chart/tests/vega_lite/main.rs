//! The Vega-Lite of each chart type, compared with the stored one;
//! `crates/interpreter/tests/it/chart.rs` draws the same cases.

#[expect(dead_code, reason = "how a case looks is checked where it is drawn")]
mod cases;

use cases::Case;
use cellblock_chart::{CheckedChart, Rows};

#[test]
fn the_vega_lite_of_each_type_is_unchanged() {
    let types = [
        cases::line,
        cases::bar,
        cases::area,
        cases::scatter,
        cases::composed,
        cases::histogram,
        cases::heatmap,
        cases::candlestick,
    ];
    for Case { name, spec, rows, .. } in types.into_iter().flat_map(|cases| cases()) {
        let rows = Rows::parse(rows.to_string().as_bytes()).unwrap();
        let chart = CheckedChart::new(&spec, rows, Some(name.replace('_', " ")), None);
        let chart = chart.unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!(name,
            chart.vega_lite()); });
    }
}
