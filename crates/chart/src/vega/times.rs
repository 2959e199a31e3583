//! Labels of time axes: as many as fit, each as brief as its neighbors permit. A second line has the
//! year, or the date of a time of day, at the first label and wherever it changes.

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use super::theme::{CHARACTER, NARROW};

/// Minimum distance between two labels in pixels.
const GAP: f64 = 10.0;
/// Maximum number of labels that are tried.
const MANY: i64 = 40;
const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A label: its place along the axis from 0 to 1, its time, and its lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) place: f64,
    pub(super) time: i64,
    pub(super) lines: Vec<String>,
}

/// Form of a label, from the longest to the briefest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LabelForm {
    Moment,
    Second,
    Minute,
    Day,
    Month,
    Year,
}

/// Distance between labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LabelInterval {
    Milliseconds(i64),
    Days(i64),
    Months(i32),
}

const EVERY: [LabelInterval; 38] = {
    use LabelInterval::{Days, Milliseconds, Months};
    [
        Milliseconds(1),
        Milliseconds(5),
        Milliseconds(10),
        Milliseconds(50),
        Milliseconds(100),
        Milliseconds(500),
        Milliseconds(SECOND),
        Milliseconds(5 * SECOND),
        Milliseconds(10 * SECOND),
        Milliseconds(30 * SECOND),
        Milliseconds(MINUTE),
        Milliseconds(5 * MINUTE),
        Milliseconds(10 * MINUTE),
        Milliseconds(15 * MINUTE),
        Milliseconds(30 * MINUTE),
        Milliseconds(HOUR),
        Milliseconds(2 * HOUR),
        Milliseconds(3 * HOUR),
        Milliseconds(6 * HOUR),
        Milliseconds(12 * HOUR),
        Days(1),
        Days(2),
        Days(3),
        Days(7),
        Days(14),
        Months(1),
        Months(2),
        Months(3),
        Months(6),
        Months(12),
        Months(24),
        Months(60),
        Months(120),
        Months(240),
        Months(600),
        Months(1200),
        Months(2400),
        Months(12000),
    ]
};

/// Returns the labels of a continuous axis over these times, which are sorted and distinct.
pub(super) fn continuous(times: &[i64]) -> Option<Vec<Tick>> {
    let (first, last) = (*times.first()?, *times.last()?);
    let length = last.checked_sub(first)?;
    #[expect(clippy::cast_precision_loss, reason = "a time in milliseconds is below 2^53")]
    let place = |time: i64| {
        if length == 0 {
            0.5
        } else {
            (time - first) as f64 / length as f64
        }
    };
    let own = form(times);
    let all = times.iter().map(|time| (place(*time), *time)).collect::<Vec<_>>();
    let periodic = periodic(times);
    let candidates = EVERY
        .iter()
        .filter(|every| every.form() >= own)
        .filter_map(|every| {
            let found = match *every {
                // A month is labeled at its own point, wherever in the month that is.
                LabelInterval::Months(step) if periodic => of_months(times, step),
                _ => every.between(first, last, own)?,
            };
            Some((
                found.into_iter().map(|time| (place(time), time)).collect(),
                every.form(),
            ))
        });
    choose(std::iter::once((all, own)).chain(candidates))
}

/// Returns the labels of an axis where these times are side by side, whatever the time between them.
pub(super) fn ordinal(times: &[i64]) -> Option<Vec<Tick>> {
    #[expect(clippy::cast_precision_loss, reason = "there are at most some thousand rows")]
    let place = |at: usize| (at as f64 + 0.5) / times.len() as f64;
    let own = form(times);
    let all: Vec<_> = times
        .iter()
        .enumerate()
        .map(|(at, time)| (place(at), *time))
        .collect();
    // Several days have no meaning where days are missing, but weeks do.
    let is_apt = |every: &&LabelInterval| every.form() >= own && !matches!(every, LabelInterval::Days(2..=3));
    let candidates = EVERY.iter().filter(is_apt).map(|every| {
        let mut before = None;
        let mut picked: Vec<_> = all
            .iter()
            .filter(|(_, time)| before.replace(every.number(*time)) != Some(every.number(*time)))
            .copied()
            .collect();
        // The first one only begins in the middle of something.
        if picked.len() > 2 && picked[1].0 - picked[0].0 < (picked[2].0 - picked[1].0) / 2.0 {
            picked.remove(0);
        }
        (picked, every.form())
    });
    choose(std::iter::once((all.clone(), own)).chain(candidates))
}

/// Returns the first candidate whose labels do not touch on a narrow chart.
fn choose(candidates: impl Iterator<Item = (Vec<(f64, i64)>, LabelForm)>) -> Option<Vec<Tick>> {
    candidates
        .filter(|(places, _)| !places.is_empty() && places.len() <= usize::try_from(MANY).unwrap_or_default())
        .filter_map(|(places, form)| labeled(&places, form))
        .find(|ticks| {
            let half = |tick: &Tick| {
                let longest = tick
                    .lines
                    .iter()
                    .map(|line| line.chars().count())
                    .max()
                    .unwrap_or_default();
                f64::from(u32::try_from(longest).unwrap_or_default()) * CHARACTER / 2.0
            };
            ticks.windows(2).all(|pair| {
                let distance = (pair[1].place - pair[0].place) * NARROW;
                distance >= half(&pair[0]) + half(&pair[1]) + GAP
            })
        })
}

/// Writes the labels of these times.
fn labeled(places: &[(f64, i64)], form: LabelForm) -> Option<Vec<Tick>> {
    let mut ticks: Vec<Tick> = Vec::new();
    let mut before: Option<NaiveDateTime> = None;
    for (place, time) in places {
        let (place, time) = (*place, *time);
        let date = date(time)?;
        let year = before.is_none_or(|before| before.year() != date.year());
        let day = before.is_none_or(|before| before.date() != date.date());
        let write = |form: &str| date.format(form).to_string();
        let (line, more) = match form {
            LabelForm::Year => (write("%Y"), None),
            LabelForm::Month => (write("%b"), year.then_some("%Y")),
            LabelForm::Day => (write("%b %-d"), year.then_some("%Y")),
            LabelForm::Minute => (
                write("%H:%M"),
                day.then_some(if year { "%b %-d, %Y" } else { "%b %-d" }),
            ),
            LabelForm::Second => (
                write("%H:%M:%S"),
                day.then_some(if year { "%b %-d, %Y" } else { "%b %-d" }),
            ),
            LabelForm::Moment => (
                write("%H:%M:%S%.3f"),
                day.then_some(if year { "%b %-d, %Y" } else { "%b %-d" }),
            ),
        };
        let mut lines = vec![line];
        lines.extend(more.map(write));
        ticks.push(Tick { place, time, lines });
        before = Some(date);
    }
    Some(ticks)
}

fn date(time: i64) -> Option<NaiveDateTime> {
    Some(DateTime::<Utc>::from_timestamp_millis(time)?.naive_utc())
}

/// Returns the number of months since the year 0.
fn months_of(time: i64) -> Option<i32> {
    let date = date(time)?;
    Some(date.year() * 12 + i32::try_from(date.month0()).ok()?)
}

/// Returns how brief labels may be that tell these times.
fn form(times: &[i64]) -> LabelForm {
    let all = |divisor: i64| times.iter().all(|time| time.rem_euclid(divisor) == 0);
    if !all(DAY) {
        // A time of day that all have in common says nothing.
        let same = times.len() > 1
            && times
                .iter()
                .all(|time| time.rem_euclid(DAY) == times[0].rem_euclid(DAY));
        return match () {
            () if same => LabelForm::Day,
            () if all(MINUTE) => LabelForm::Minute,
            () if all(SECOND) => LabelForm::Second,
            () => LabelForm::Moment,
        };
    }
    let months = |time: i64| months_of(time).unwrap_or_default();
    match periodic(times) {
        true if times
            .iter()
            .all(|time| (months(*time) - months(times[0])) % 12 == 0) =>
        {
            LabelForm::Year
        }
        true => LabelForm::Month,
        false => LabelForm::Day,
    }
}

/// Returns whether the times stand for months: the first, or the last, day of each.
fn periodic(times: &[i64]) -> bool {
    let dates = || times.iter().filter_map(|time| date(*time));
    let is_last = |date: NaiveDateTime| date.date().succ_opt().is_some_and(|next| next.day() == 1);
    let of_months = dates().all(|date| date.day() == 1) || dates().all(is_last);
    of_months && times.len() > 1 && dates().all(|date| date.time() == NaiveTime::MIN)
}

/// Returns those of the times whose months are multiples of a step, counted from a January or else
/// from the first.
fn of_months(times: &[i64], step: i32) -> Vec<i64> {
    let phase = |time: &i64| months_of(*time).map(|month| month.rem_euclid(step));
    let wanted = times
        .iter()
        .map(phase)
        .find(|it| *it == Some(0))
        .or_else(|| times.first().map(phase))
        .flatten();
    times
        .iter()
        .copied()
        .filter(|time| phase(time) == wanted)
        .collect()
}

/// Returns the times from `start` to `last` in steps.
fn steps(start: i64, step: i64, last: i64) -> Vec<i64> {
    std::iter::successors(Some(start), |time| time.checked_add(step))
        .take_while(|time| *time <= last)
        .collect()
}

impl LabelInterval {
    fn form(self) -> LabelForm {
        match self {
            Self::Milliseconds(step) if step % MINUTE == 0 => LabelForm::Minute,
            Self::Milliseconds(step) if step % SECOND == 0 => LabelForm::Second,
            Self::Milliseconds(_) => LabelForm::Moment,
            Self::Days(_) => LabelForm::Day,
            Self::Months(step) if step % 12 == 0 => LabelForm::Year,
            Self::Months(_) => LabelForm::Month,
        }
    }

    /// Returns the times of this distance from `first` to `last`; none if there are many.
    fn between(self, first: i64, last: i64, own: LabelForm) -> Option<Vec<i64>> {
        let step = match self {
            Self::Milliseconds(step) => step,
            Self::Days(days) => days * DAY,
            Self::Months(months) => i64::from(months) * 28 * DAY,
        };
        if (last - first) / step > MANY {
            return None;
        }
        Some(match self {
            // Whole days from the first one, so that weekly values have their labels.
            Self::Days(_) => {
                let start = if own == LabelForm::Day {
                    first
                } else {
                    first + (-first).rem_euclid(DAY)
                };
                steps(start, step, last)
            }
            Self::Milliseconds(_) => {
                let start = first + (-first).rem_euclid(step);
                steps(start, step, last)
            }
            Self::Months(months) => {
                let month = months_of(first)?;
                let start = month - month.rem_euclid(months);
                let begin = NaiveDate::from_ymd_opt(
                    start.div_euclid(12),
                    start.rem_euclid(12).unsigned_abs() + 1,
                    1,
                )?;
                let at = |number: u32| begin.checked_add_months(Months::new(number * months.unsigned_abs()));
                let times = (0..)
                    .map_while(at)
                    .map(|date| date.and_time(NaiveTime::MIN).and_utc().timestamp_millis());
                times
                    .skip_while(|time| *time < first)
                    .take_while(|time| *time <= last)
                    .collect()
            }
        })
    }

    /// Returns the number of the period that a time is in.
    fn number(self, time: i64) -> i64 {
        match self {
            Self::Milliseconds(step) => time.div_euclid(step),
            // A week begins on Monday, as the fifth day of 1970 did.
            Self::Days(days) => (time.div_euclid(DAY) - 4).div_euclid(days),
            Self::Months(months) => i64::from(months_of(time).unwrap_or_default().div_euclid(months)),
        }
    }
}

#[cfg(test)]
mod tests;
