//! Times in charts: ISO 8601 texts, and numbers since 1970 in a unit that their magnitude
//! determines.

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveTime};

/// Maximum length in bytes of a text that is read as a time.
const MOST_BYTES: usize = 64;
/// Smallest number that is read as a time: March 1973 in seconds. Years and counts are smaller.
const SMALLEST: f64 = 1e8;

/// Returns milliseconds since 1970 in UTC of a text: `2024` (from 1900 to 2100), `2024-05`,
/// `2024-05-17`, or a date followed by `T` or a space and a time of day, optionally with seconds
/// and their fraction, and with `Z`, `UTC`, `+02:00`, `+0200`, `+02` or no zone, which means UTC.
pub(super) fn of_text(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.len() > MOST_BYTES || !text.is_ascii() || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match text.len() {
        // Other numbers of four digits are more likely names.
        4 if ("1900"..="2100").contains(&text) => date(&format!("{text}-01-01")).and_then(midnight),
        7 => date(&format!("{text}-01")).and_then(midnight),
        10 => date(text).and_then(midnight),
        _ => moment(text),
    }
}

/// Returns milliseconds since 1970 of a number of seconds, milliseconds, microseconds or
/// nanoseconds, depending on its magnitude: below 10^11 seconds, below 10^14 milliseconds, and so
/// on. A number below 10^8 is not a time.
pub(super) fn of_number(number: f64) -> Option<i64> {
    let milliseconds = match number.abs() {
        size if size < SMALLEST => return None,
        size if size < 1e11 => number * 1e3,
        size if size < 1e14 => number,
        size if size < 1e17 => number / 1e3,
        size if size < 1e20 => number / 1e6,
        _ => return None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the arms leave fewer than 10^14 milliseconds, and a fraction of one is not shown"
    )]
    let milliseconds = milliseconds.round() as i64;
    Some(milliseconds)
}

/// Formats a time as text: midnight as the date alone.
pub(super) fn text(milliseconds: i64) -> String {
    let Some(time) = DateTime::from_timestamp_millis(milliseconds) else {
        return milliseconds.to_string();
    };
    let form = match milliseconds {
        it if it.rem_euclid(86_400_000) == 0 => "%Y-%m-%d",
        it if it.rem_euclid(60_000) == 0 => "%Y-%m-%d %H:%M",
        _ => "%Y-%m-%d %H:%M:%S%.f",
    };
    time.format(form).to_string()
}

/// Reads a date of exactly `YYYY-MM-DD`; chrono also accepts signs and missing zeros.
fn date(text: &str) -> Option<NaiveDate> {
    let digits = |from, to| {
        text.get(from..to)
            .is_some_and(|it: &str| it.bytes().all(|b| b.is_ascii_digit()))
    };
    if text.len() != 10 || !digits(0, 4) || !digits(5, 7) || !digits(8, 10) {
        return None;
    }
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

fn midnight(date: NaiveDate) -> Option<i64> {
    Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis())
}

fn moment(text: &str) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let clock = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, offset) = zone(clock)?;
    let time = ["%H:%M:%S%.f", "%H:%M"]
        .iter()
        .find_map(|form| NaiveTime::parse_from_str(clock, form).ok())?;
    let local = date(day)?.and_time(time);
    let moment = local.and_local_timezone(offset).single()?;
    Some(moment.timestamp_millis())
}

/// Splits a time of day from its zone.
fn zone(clock: &str) -> Option<(&str, FixedOffset)> {
    let utc = FixedOffset::east_opt(0)?;
    for name in ["Z", "z", " UTC", "UTC", " GMT", "GMT"] {
        if let Some(clock) = clock.strip_suffix(name) {
            return Some((clock, utc));
        }
    }
    let Some(at) = clock.rfind(['+', '-']) else {
        return Some((clock, utc));
    };
    let (clock, offset) = clock.split_at_checked(at)?;
    let digits = offset[1..].replace(':', "");
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let hours: i32 = digits.get(..2)?.parse().ok()?;
    let minutes: i32 = digits
        .get(2..)
        .filter(|it| !it.is_empty())
        .map_or(Ok(0), str::parse)
        .ok()?;
    let seconds = (hours * 60 + minutes) * 60;
    let offset = FixedOffset::east_opt(if offset.starts_with('-') {
        -seconds
    } else {
        seconds
    })?;
    Some((clock.trim_end(), offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAY_17: i64 = 1_715_904_000_000;

    #[test]
    fn texts_of_one_moment_are_one_time() {
        for text in [
            "2024-05-17T12:30:00Z",
            "2024-05-17 12:30",
            "2024-05-17T12:30:00.000",
            "2024-05-17 14:30:00+02:00",
            "2024-05-17T14:30+0200",
            "2024-05-17T07:30:00-05",
            "2024-05-17 12:30:00 UTC",
            " 2024-05-17t12:30:00z ",
        ] {
            assert_eq!(of_text(text), Some(MAY_17 + 45_000_000), "{text}");
        }
        assert_eq!(of_text("2024-05-17"), Some(MAY_17));
        assert_eq!(of_text("2024-05"), Some(1_714_521_600_000));
        assert_eq!(of_text("2024"), Some(1_704_067_200_000));
        assert_eq!(of_text("2024-05-17T00:00:00.250Z"), Some(MAY_17 + 250));
        assert_eq!(of_text("0001-01-01"), Some(-62_135_596_800_000));
    }

    #[test]
    fn other_texts_are_not_times() {
        for text in [
            "",
            "x",
            "12",
            "20240517",
            "2024-13-01",
            "2024-02-30",
            "2024-5-17",
            "17.05.2024",
            "2024-05-17T",
            "2024-05-17T25:00",
            "2024-05-17x12:00",
            "2024-05-17T12:00+2",
            "2024-05-17T12:00+99:00",
            "+024-05-17",
            "1001",
            "2024-05-17T12:00:00é",
            "Jan 2024",
            "2024-Q1",
            "12:30",
        ] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }

    #[test]
    fn the_magnitude_of_a_number_determines_its_unit() {
        for number in [1_715_904_000.0, 1_715_904_000e3, 1_715_904_000e6, 1_715_904_000e9] {
            assert_eq!(of_number(number), Some(MAY_17), "{number}");
        }
        assert_eq!(of_number(-1_715_904_000.0), Some(-MAY_17));
        assert_eq!(of_number(1e8), Some(100_000_000_000));
        for number in [0.0, 2024.0, 99_999_999.0, 1e20, f64::INFINITY, f64::NAN] {
            assert_eq!(of_number(number), None, "{number}");
        }
    }

    #[test]
    fn a_time_is_formatted_without_zero_parts() {
        assert_eq!(text(MAY_17), "2024-05-17");
        assert_eq!(text(MAY_17 + 45_000_000), "2024-05-17 12:30");
        assert_eq!(text(MAY_17 + 1250), "2024-05-17 00:00:01.250");
        assert_eq!(text(i64::MAX), i64::MAX.to_string());
    }
}
