//! The wall clock, as records and answers have it: a number since the start of 1970 in UTC.
//!
//! A time before 1970 is 0, and a number that its type does not hold is the largest of that type.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time from 1970 until now.
pub fn now() -> Duration {
    since_epoch(SystemTime::now())
}

/// Returns the time from 1970 until now, in seconds.
pub fn unix_seconds() -> u64 {
    now().as_secs()
}

/// Returns the time from 1970 until now, in milliseconds.
pub fn unix_millis() -> u64 {
    whole_millis(now())
}

/// Returns the time from 1970 until now, in milliseconds, as databases and calendars count it.
pub fn signed_unix_millis() -> i64 {
    i64::try_from(unix_millis()).unwrap_or(i64::MAX)
}

/// Returns the time from 1970 until another time.
pub fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the time from 1970 until another time, in seconds.
pub fn seconds_since_epoch(time: SystemTime) -> u64 {
    since_epoch(time).as_secs()
}

/// Returns the time from 1970 until another time, in milliseconds.
pub fn millis_since_epoch(time: SystemTime) -> u64 {
    whole_millis(since_epoch(time))
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_of_whole_units_since_1970() {
        let time = UNIX_EPOCH + Duration::from_micros(1_709_210_096_999_789);
        assert_eq!(since_epoch(time).as_micros(), 1_709_210_096_999_789);
        assert_eq!(seconds_since_epoch(time), 1_709_210_096);
        assert_eq!(millis_since_epoch(time), 1_709_210_096_999);
    }

    #[test]
    fn a_time_before_1970_is_0() {
        let time = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(since_epoch(time), Duration::ZERO);
        assert_eq!((seconds_since_epoch(time), millis_since_epoch(time)), (0, 0));
    }

    #[test]
    fn a_number_that_is_too_large_is_the_largest() {
        assert_eq!(whole_millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn the_time_now_is_the_same_in_every_unit() {
        let before = SystemTime::now();
        let (span, seconds, millis, signed) = (now(), unix_seconds(), unix_millis(), signed_unix_millis());
        let after = SystemTime::now();
        assert!((since_epoch(before)..=since_epoch(after)).contains(&span));
        assert!((seconds_since_epoch(before)..=seconds_since_epoch(after)).contains(&seconds));
        let range = millis_since_epoch(before)..=millis_since_epoch(after);
        assert!(range.contains(&millis));
        assert!(range.contains(&u64::try_from(signed).unwrap()));
    }
}
