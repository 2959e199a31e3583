//! Charts from the results of tools.

use serde_json::json;

use super::*;

fn spec() -> Value {
    json!({ "type": "line", "xKey": "day", "yKey": "n" })
}

fn rows() -> Value {
    json!([{ "day": "2024-01-01", "n": 1 }, { "day": "2024-01-02", "n": 2 }])
}

fn made(data: &Value, path: Option<&str>) -> Result<Value, ChartProblem> {
    let chart = from_json(&spec(), data, path, Some("T".into()), None);
    chart
        .map(|chart| json!(chart.rows))
        .map_err(|error| error.problems[0].clone())
}

#[test]
fn rows_are_found_in_the_usual_shapes() {
    let columns = json!({ "day": ["2024-01-01", "2024-01-02"], "n": [1, 2] });
    for data in [
        rows(),
        json!({ "symbol": "X", "prices": rows(), "errors": [] }),
        json!({ "ok": true, "data": { "prices": rows(), "count": 2 } }),
        columns.clone(),
        json!({ "symbol": "X", "data": columns }),
    ] {
        assert_eq!(made(&data, None), Ok(rows()), "{data}");
    }
}

#[test]
fn several_lists_need_a_path() {
    let data = json!({ "deep": { "futures": rows(), "deeper": { "more": rows() } }, "spot": rows() });
    let problem = made(&data, None).unwrap_err();
    assert_eq!(
        (problem.code, problem.field.as_str()),
        (code::DATA_AMBIGUOUS, "data")
    );
    assert_eq!(problem.valid, ["deep.futures", "spot"]);
    for path in ["spot", "deep.futures", "deep.deeper.more"] {
        assert_eq!(made(&data, Some(path)), Ok(rows()), "{path}");
    }
    let problem = made(&data, Some("deep.none")).unwrap_err();
    assert_eq!((problem.field.as_str(), problem.valid.len()), ("path", 2));
}

#[test]
fn results_without_rows_are_reported() {
    for data in [
        json!(7),
        json!({}),
        json!({ "a": [1, 2] }),
        json!([[1, 2]]),
        json!({ "a": { "b": { "c": rows() } } }),
    ] {
        let problem = made(&data, None).unwrap_err();
        assert_eq!(
            (problem.code, problem.field.as_str()),
            (code::DATA_AMBIGUOUS, "data"),
            "{data}"
        );
    }
    assert_eq!(made(&json!([]), None).unwrap_err().code, code::NO_ROWS);
}

#[test]
fn nested_cells_and_uneven_columns_are_reported_by_key() {
    let nested = json!({ "prices": [{ "day": "2024-01-01", "n": { "v": 1 } }] });
    let problem = made(&nested, None).unwrap_err();
    assert_eq!(
        (problem.code, problem.field.as_str()),
        (code::DATA_MALFORMED, "data.prices[0].n")
    );
    let uneven = json!({ "day": ["2024-01-01", "2024-01-02"], "n": [1] });
    let problem = made(&uneven, None).unwrap_err();
    assert_eq!(
        (problem.code, problem.field.as_str()),
        (code::DATA_MALFORMED, "data.n")
    );
}

#[test]
fn long_columns_are_rejected_like_many_rows() {
    let data = json!({ "day": vec!["2024-01-01"; 5001], "n": vec![1; 5001] });
    assert_eq!(made(&data, None).unwrap_err().code, code::ROW_COUNT_TRUNCATION);
    let text = "x".repeat(1000);
    let wide: Vec<_> = (0..5000)
        .map(|at| json!({ "day": at, "n": 1, "note": text }))
        .collect();
    assert_eq!(made(&json!(wide), None).unwrap_err().code, code::TOO_LARGE);
}
