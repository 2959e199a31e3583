//! Coverage of axes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::CheckedChart;

fn chart(spec: &Value, rows: &Value) -> CheckedChart {
    CheckedChart::new(
        spec,
        Rows::parse(rows.to_string().as_bytes()).unwrap(),
        None,
        None,
    )
    .unwrap()
}

fn line(values: &[(i64, Option<f64>)]) -> Vec<SeriesCoverage> {
    let rows: Value = values
        .iter()
        .map(|(day, v)| json!({ "t": 1_704_067_200 + 86_400 * day, "v": v }))
        .collect();
    let spec = json!({ "type": "line", "xKey": "t", "series": [{ "key": "v", "label": "V" }],
        "xAxis": { "type": "time" } });
    chart(&spec, &rows).coverage()
}

fn of(values: &[(i64, Option<f64>)]) -> (Option<f64>, usize, usize) {
    let [one] = <[SeriesCoverage; 1]>::try_from(line(values)).unwrap();
    assert_eq!((one.key.as_str(), one.label.as_str()), ("v", "V"));
    (one.coverage, one.finite, one.expected)
}

#[test]
fn a_series_with_every_point_covers_all() {
    assert_eq!(
        of(&[(0, Some(1.0)), (1, Some(2.0)), (2, Some(3.0))]),
        (Some(1.0), 3, 3)
    );
}

#[test]
fn nulls_and_missing_rows_are_gaps() {
    assert_eq!(
        of(&[(0, Some(1.0)), (1, None), (2, Some(3.0)), (3, None)]),
        (Some(0.5), 2, 4)
    );
    let missing = [(0, Some(1.0)), (1, Some(1.0)), (2, Some(1.0)), (9, Some(1.0))];
    assert_eq!(of(&missing), (Some(0.4), 4, 10));
}

#[test]
fn fewer_than_three_expected_points_have_no_coverage() {
    assert_eq!(of(&[(0, Some(1.0))]), (None, 1, 1));
    assert_eq!(of(&[(0, Some(1.0)), (1, Some(1.0))]), (None, 2, 2));
}

#[test]
fn each_line_and_area_is_measured_and_nothing_else() {
    let rows = json!([
        { "t": "2024-01-01T00:00:00+01:00", "a": 1, "b": 1 },
        { "t": "2024-01-02", "a": null, "b": 1 },
        { "t": "2024-01-03", "a": null, "b": 1 },
    ]);
    let spec = json!({ "type": "composed", "xKey": "t", "series": [
        { "key": "a", "type": "area" }, { "key": "b", "type": "bar" },
        { "key": "b", "type": "line", "label": "B" },
    ] });
    let found: Vec<_> = chart(&spec, &rows)
        .coverage()
        .into_iter()
        .map(|it| (it.label, it.finite))
        .collect();
    assert_eq!(found, [("a".to_owned(), 1), ("B".to_owned(), 3)]);

    let spec =
        json!({ "type": "line", "xKey": "t", "series": [{ "key": "b" }], "xAxis": { "type": "category" } });
    let names = json!([{ "t": "x", "b": 1 }, { "t": "y", "b": null }, { "t": "z", "b": 2 }]);
    assert_eq!(chart(&spec, &names).coverage(), []);
}

proptest! {
    #[test]
    fn more_points_never_lower_the_share(
        days in proptest::collection::btree_map(0..400_i64, proptest::option::of(-1e9..1e9), 1..60),
        filled in 0..400_i64,
    ) {
        prop_assume!(days.values().any(Option::is_some));
        let values: Vec<_> = days.iter().map(|(day, value)| (*day, *value)).collect();
        let (share, finite, expected) = of(&values);
        prop_assert_eq!(finite, days.values().flatten().count());
        prop_assert!(finite <= days.len() && days.len() <= expected);
        prop_assert_eq!(share.is_none(), expected < 3);
        prop_assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
        // A value that replaces a null is one more of the same number of points.
        if let Some(slot) = days.range(filled..).next().filter(|(_, value)| value.is_none()) {
            let mut more = days.clone();
            more.insert(*slot.0, Some(0.0));
            let more: Vec<_> = more.into_iter().collect();
            let share = (expected >= 3).then(|| super::share(finite + 1, expected));
            prop_assert_eq!(of(&more), (share, finite + 1, expected));
        }
    }

    #[test]
    fn an_even_series_covers_all_whatever_its_step(
        count in 3..80_i64, step in 1..30_i64, start in 0..1000_i64,
    ) {
        let values: Vec<_> = (0..count).map(|at| (start + at * step, Some(1.0))).collect();
        let count = usize::try_from(count).unwrap();
        prop_assert_eq!(of(&values), (Some(1.0), count, count));
    }

    #[test]
    fn the_order_of_rows_does_not_matter(
        days in proptest::collection::btree_map(0..400_i64, proptest::option::of(-1e9..1e9), 3..30),
    ) {
        prop_assume!(days.values().any(Option::is_some));
        let mut values: Vec<_> = days.into_iter().collect();
        let before = line(&values);
        values.reverse();
        prop_assert_eq!(line(&values), before);
    }

    #[test]
    fn a_series_that_ends_halfway_covers_half(count in 4..200_i64) {
        let half = |at: i64| (at < count / 2).then_some(1.0);
        let values: Vec<_> = (0..count).map(|at| (at, half(at))).collect();
        let (share, ..) = of(&values);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let expected = (count / 2) as f64 / count as f64;
        prop_assert_eq!(share, Some(expected));
    }
}
