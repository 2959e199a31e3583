//! Labels of times as readers see them.

use super::*;

fn times(texts: &[&str]) -> Vec<i64> {
    texts
        .iter()
        .map(|text| crate::time::of_text(text).unwrap())
        .collect()
}

/// Days from one on.
fn days(first: &str, count: i64, step: i64) -> Vec<i64> {
    (0..count)
        .map(|at| times(&[first])[0] + at * step * DAY)
        .collect()
}

fn written(ticks: Option<Vec<Tick>>) -> Vec<String> {
    ticks.unwrap().iter().map(|tick| tick.lines.join("/")).collect()
}

fn months(first: (i32, u32), count: u32, last_day: bool) -> Vec<i64> {
    (0..count)
        .map(|at| {
            let begin = NaiveDate::from_ymd_opt(first.0, first.1, 1).unwrap();
            let day = begin
                .checked_add_months(Months::new(at + u32::from(last_day)))
                .unwrap();
            let day = if last_day { day.pred_opt().unwrap() } else { day };
            day.and_time(NaiveTime::MIN).and_utc().timestamp_millis()
        })
        .collect()
}

#[test]
fn the_year_is_under_the_first_label_and_where_it_changes() {
    assert_eq!(
        written(continuous(&days("2023-12-15", 36, 1))),
        [
            "Dec 15/2023",
            "Dec 22",
            "Dec 29",
            "Jan 5/2024",
            "Jan 12",
            "Jan 19"
        ]
    );
    assert_eq!(
        written(continuous(&days("2024-01-01", 120, 1))),
        ["Jan/2024", "Feb", "Mar", "Apr"]
    );
    assert_eq!(
        written(continuous(&times(&[
            "2023-11-01",
            "2023-12-01",
            "2024-01-01",
            "2024-02-01"
        ]))),
        ["Nov/2023", "Dec", "Jan/2024", "Feb"]
    );
}

#[test]
fn months_are_labeled_at_their_own_points() {
    let year = [
        "Jan/2023", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct",
    ];
    for last_day in [false, true] {
        let points = months((2023, 1), 10, last_day);
        let ticks = continuous(&points).unwrap();
        assert_eq!(ticks.iter().map(|tick| tick.time).collect::<Vec<_>>(), points);
        assert_eq!(written(Some(ticks)), year);
        assert_eq!(
            written(continuous(&months((2022, 11), 30, last_day))),
            [
                "Jan/2023", "Apr", "Jul", "Oct", "Jan/2024", "Apr", "Jul", "Oct", "Jan/2025", "Apr"
            ]
        );
    }
    assert_eq!(
        written(continuous(&times(&[
            "2023-03-31",
            "2023-06-30",
            "2023-09-30",
            "2023-12-31",
            "2024-03-31"
        ]))),
        ["Mar/2023", "Jun", "Sep", "Dec", "Mar/2024"]
    );
}

#[test]
fn years_and_times_of_day_have_their_own_forms() {
    let years: Vec<_> = (1990..2021).map(|year| format!("{year}-12-31")).collect();
    let years = times(&years.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        written(continuous(&years)),
        ["1990", "1995", "2000", "2005", "2010", "2015", "2020"]
    );
    let hours: Vec<_> = (0..30)
        .map(|at| times(&["2024-05-17T20:00"])[0] + at * HOUR)
        .collect();
    assert_eq!(
        written(continuous(&hours)),
        ["00:00/May 18, 2024", "06:00", "12:00", "18:00", "00:00/May 19"]
    );
    let seconds: Vec<_> = (0..5)
        .map(|at| times(&["2024-05-17T20:00:00.5"])[0] + at * 10 * SECOND)
        .collect();
    assert_eq!(written(continuous(&seconds)).len(), 4);
    // A time of day that all have in common says nothing.
    assert_eq!(
        written(continuous(&times(&["2024-05-17T16:00", "2024-05-20T16:00"]))),
        ["May 17/2024", "May 20"]
    );
}

#[test]
fn days_side_by_side_are_labeled_by_weeks_months_or_years() {
    let weekdays: Vec<_> = days("2024-01-02", 400, 1)
        .into_iter()
        .filter(|time| date(*time).is_some_and(|date| date.weekday().num_days_from_monday() < 5))
        .collect();
    assert_eq!(
        written(ordinal(&weekdays[..5])),
        ["Jan 2/2024", "Jan 3", "Jan 4", "Jan 5", "Jan 8"]
    );
    assert_eq!(
        written(ordinal(&weekdays[..24])),
        ["Jan 2/2024", "Jan 8", "Jan 15", "Jan 22", "Jan 29"]
    );
    assert_eq!(
        written(ordinal(&weekdays[..130])),
        ["Jan/2024", "Feb", "Mar", "Apr", "May", "Jun", "Jul"]
    );
}

#[test]
fn labels_never_touch_and_never_repeat() {
    for step in [
        1,
        7,
        999,
        60_000,
        61_000,
        HOUR,
        5 * HOUR,
        DAY,
        2 * DAY,
        7 * DAY,
        30 * DAY,
        365 * DAY,
        4000 * DAY,
    ] {
        for count in [1, 2, 3, 10, 100, 1000] {
            if step * count > 8000 * 365 * DAY {
                continue;
            }
            let times: Vec<_> = (0..count).map(|at| 951_700_000_123 + at * step).collect();
            for ticks in [continuous(&times), ordinal(&times)] {
                let Some(ticks) = ticks else {
                    panic!("{step} {count}")
                };
                assert!(ticks.len() <= 14, "{step} {count} {ticks:?}");
                let texts: Vec<_> = ticks.iter().map(|tick| tick.lines.concat()).collect();
                assert!(
                    texts.windows(2).all(|pair| pair[0] != pair[1]),
                    "{step} {count} {texts:?}"
                );
            }
        }
    }
    assert_eq!(continuous(&[]), None);
}
