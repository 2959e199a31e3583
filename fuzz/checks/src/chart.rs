//! Charts: a specification and rows that anyone wrote.

use std::fmt::Display;

use cellblock_interpreter::chart::{
    ChartError, ChartSpec, CheckedChart, MAX_ROWS, Rows, check, coverage, from_json, to_vega_lite,
};
use serde_json::{Value, json};

/// The most characters of everything that is wrong with a chart.
const ERROR_CHARS: usize = 100_000;

/// The first line is a specification, what follows it are rows or a tool's result.
pub(crate) fn whole(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (spec, rest) = data.split_at(end);
    let spec = serde_json::from_slice::<Value>(spec).unwrap_or_default();
    if let Ok(result) = serde_json::from_slice::<Value>(rest) {
        match from_json(&spec, &result, None, None, None) {
            Ok(chart) => is_right(&chart),
            Err(error) => is_helpful(&error),
        }
    }
    let rows = match Rows::parse(rest) {
        Ok(rows) => rows,
        Err(error) => return is_helpful(&error),
    };
    assert!(rows.len() <= MAX_ROWS, "{} rows", rows.len());
    // Whatever is converted without a check has to be survived.
    if let Ok(unchecked) = serde_json::from_value::<ChartSpec>(spec.clone()) {
        to_vega_lite(&unchecked, &rows, None);
        coverage(&unchecked, &rows);
    }
    let without_rows = check(&spec, &rows.summary());
    match CheckedChart::new(&spec, rows, None, None) {
        Ok(chart) => {
            assert_eq!(
                without_rows.as_ref(),
                Ok(&chart.spec),
                "rows make a chart no more right"
            );
            is_right(&chart);
        }
        Err(error) => is_helpful(&error),
    }
}

fn is_right(chart: &CheckedChart) {
    let document = chart.document();
    let read: Value = serde_json::from_slice(&document).expect("a document is JSON");
    assert_eq!(read["data"].as_array().map(Vec::len), Some(chart.rows.len()));
    let rows = Rows::parse(read["data"].to_string().as_bytes()).expect("rows of a document are read again");
    let again =
        CheckedChart::new(&read["spec"], rows, None, None).expect("what was accepted is accepted again");
    assert!(again.document() == document, "the same chart is the same bytes");
    let drawn = chart.vega_lite();
    assert!(
        drawn.get("mark").is_some() || drawn["layer"].as_array().is_some_and(|it| !it.is_empty()),
        "nothing is drawn"
    );
    assert!(drawn.pointer("/data/values").is_some_and(Value::is_array));
    for covered in chart.coverage() {
        assert!(covered.finite <= covered.expected, "{covered:?}");
        assert!(
            covered.coverage.is_none_or(|share| (0.0..=1.0).contains(&share)),
            "{covered:?}"
        );
    }
}

/// An error names what is wrong, in text that a terminal and a model are not harmed by.
fn is_helpful(error: &ChartError) {
    assert!((1..=10).contains(&error.problems.len()), "{error}");
    for problem in &error.problems {
        assert!(
            !problem.message.is_empty() && !problem.field.is_empty(),
            "{problem:?}"
        );
        is_plain(&problem.field);
        is_plain(&problem.message);
        problem.valid.iter().for_each(is_plain);
    }
    let text = error.to_string();
    assert!(text.chars().count() <= ERROR_CHARS, "{text:.200}");
    assert!(json!(error.problems).is_array());
}

fn is_plain(text: impl Display) {
    let text = text.to_string();
    assert!(!text.chars().any(cellblock_protocol::text::acts), "{text:?}");
}
