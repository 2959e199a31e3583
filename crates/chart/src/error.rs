//! Errors in a chart, written for a model that repairs them.

use std::fmt;

use cellblock_protocol::text::acts;
use cellblock_settings::json::TypeMistake;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of listed problems; others are counted.
const MOST_PROBLEMS: usize = 10;
/// Maximum number of valid values in a text.
const MOST_NAMED: usize = 20;
/// Maximum number of repeated characters of a text.
const MOST_REPEATED: usize = 60;

/// Stable codes of problems.
pub mod code {
    /// A value has the wrong JSON type, or the specification is missing.
    pub const SPEC_MALFORMED: &str = "chart_spec_malformed";
    /// A key that specifications do not have.
    pub const UNKNOWN_KEY: &str = "chart_unknown_key";
    /// A key that this type of chart needs is missing.
    pub const MISSING_KEY: &str = "chart_missing_key";
    /// A key that means nothing for this type of chart.
    pub const MEANINGLESS_KEY: &str = "chart_meaningless_key";
    /// A value is not one of the valid ones.
    pub const INVALID_VALUE: &str = "chart_invalid_value";
    /// More bytes, characters or entries than the maximum.
    pub const TOO_LARGE: &str = "chart_too_large";
    /// The data is not an array of flat objects.
    pub const DATA_MALFORMED: &str = "chart_data_malformed";
    /// The data contains several lists of rows, or none.
    pub const DATA_AMBIGUOUS: &str = "chart_data_ambiguous";
    /// The data has no rows.
    pub const NO_ROWS: &str = "chart_no_rows";
    /// Rows would be left out: there are too many, or they have no position on the x axis.
    pub const ROW_COUNT_TRUNCATION: &str = "chart_row_count_truncation";
    /// No row has the key.
    pub const UNKNOWN_COLUMN: &str = "chart_unknown_column";
    /// Values that must be numbers are not.
    pub const NOT_NUMERIC: &str = "chart_not_numeric";
    /// A series has no values.
    pub const EMPTY_SERIES: &str = "chart_empty_series";
    /// Two series are equal or have the same name.
    pub const DUPLICATE_SERIES: &str = "chart_duplicate_series";
    /// Several rows have the same position.
    pub const DUPLICATE_ROWS: &str = "chart_duplicate_rows";
    /// An axis' type does not fit its values.
    pub const AXIS_TYPE_MISMATCH: &str = "chart_axis_type_mismatch";
    /// An axis without a series.
    pub const UNUSED_AXIS: &str = "chart_unused_axis";
    /// Categories are joined by a line.
    pub const CATEGORICAL_RENDERED_AS_LINE: &str = "chart_categorical_rendered_as_line";
    /// A line over times whose axis is not a time axis.
    pub const TIME_SERIES_NO_DATE_AXIS: &str = "chart_time_series_no_date_axis";
    /// An expected measure that no series shows.
    pub const SERIES_METRIC_MISMATCH: &str = "chart_series_metric_mismatch";

    /// Every code.
    pub const ALL: [&str; 20] = [
        SPEC_MALFORMED,
        UNKNOWN_KEY,
        MISSING_KEY,
        MEANINGLESS_KEY,
        INVALID_VALUE,
        TOO_LARGE,
        DATA_MALFORMED,
        DATA_AMBIGUOUS,
        NO_ROWS,
        ROW_COUNT_TRUNCATION,
        UNKNOWN_COLUMN,
        NOT_NUMERIC,
        EMPTY_SERIES,
        DUPLICATE_SERIES,
        DUPLICATE_ROWS,
        AXIS_TYPE_MISMATCH,
        UNUSED_AXIS,
        CATEGORICAL_RENDERED_AS_LINE,
        TIME_SERIES_NO_DATE_AXIS,
        SERIES_METRIC_MISMATCH,
    ];
}

/// One mistake in a chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ChartProblem {
    /// Kind of the mistake: one of [`code`].
    pub code: &'static str,
    /// Location, such as `series[1].key`, `data[3].price` or `data`.
    pub field: String,
    /// The problem, and how to repair it.
    pub message: String,
    /// Valid values, if they can be listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub valid: Vec<String>,
}

impl ChartProblem {
    pub(super) fn new(code: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            field: field.into(),
            message: message.into(),
            valid: Vec::new(),
        }
    }

    pub(super) fn with_valid<S: Into<String>>(mut self, valid: impl IntoIterator<Item = S>) -> Self {
        self.valid = valid.into_iter().map(Into::into).collect();
        self
    }
}

impl From<TypeMistake> for ChartProblem {
    fn from(mistake: TypeMistake) -> Self {
        let message = format!("has to be {}, but is {}", mistake.expected, mistake.found);
        let field = match mistake.path.as_str() {
            "" => "spec",
            path => path,
        };
        Self::new(code::SPEC_MALFORMED, field, message)
    }
}

impl fmt::Display for ChartProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.field, self.message, self.code)?;
        for (at, valid) in self.valid.iter().take(MOST_NAMED).enumerate() {
            f.write_str(if at == 0 { "; valid: " } else { ", " })?;
            f.write_str(&repeated(valid))?;
        }
        match self.valid.len().checked_sub(MOST_NAMED) {
            Some(more @ 1..) => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}

/// All mistakes that were found in a chart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ChartError {
    /// The first problems: at least 1 and at most 10.
    pub problems: Vec<ChartProblem>,
    /// Number of further problems.
    pub more: usize,
}

impl ChartError {
    pub(super) fn of(problem: ChartProblem) -> Self {
        Self {
            problems: vec![problem],
            more: 0,
        }
    }

    /// Adds the problems of another error; those beyond the maximum are counted.
    pub(super) fn and(&mut self, other: Self) {
        self.problems.extend(other.problems);
        let over = self.problems.len().saturating_sub(MOST_PROBLEMS);
        self.problems.truncate(MOST_PROBLEMS);
        self.more = self.more.saturating_add(other.more).saturating_add(over);
    }
}

impl fmt::Display for ChartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problems[..] {
            [only] if self.more == 0 => return write!(f, "chart was not accepted: {only}"),
            problems => write!(
                f,
                "chart was not accepted: {} problems",
                problems.len() + self.more
            )?,
        }
        for problem in &self.problems {
            write!(f, "\n- {problem}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n- and {more} more"),
        }
    }
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<ChartProblem>,
    more: usize,
}

impl Problems {
    pub(super) fn push(&mut self, problem: ChartProblem) {
        // Unreadable values were left out, which is not another mistake.
        if problem.code == code::MISSING_KEY && self.has(&problem.field) {
            return;
        }
        if self.found.len() < MOST_PROBLEMS {
            self.found.push(problem);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    pub(super) fn add(&mut self, code: &'static str, field: impl Into<String>, message: impl Into<String>) {
        self.push(ChartProblem::new(code, field, message));
    }

    /// Returns what was read, or notes the problem.
    pub(super) fn keep<T>(&mut self, read: Result<T, ChartProblem>) -> Option<T> {
        read.map_err(|problem| self.push(problem)).ok()
    }

    /// Returns whether a field, or a part of it, has a problem.
    pub(super) fn has(&self, field: &str) -> bool {
        let is_part = |it: &str| {
            it.strip_prefix(field)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.found.iter().any(|it| is_part(&it.field))
    }

    pub(super) fn into_error(self) -> Option<ChartError> {
        (!self.found.is_empty()).then_some(ChartError {
            problems: self.found,
            more: self.more,
        })
    }
}

/// Repeats an untrusted text: quoted, escaped and cut.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", repeated(text))
}

/// Repeats a text without quotes; characters that act on a terminal are escaped.
pub(super) fn repeated(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MOST_REPEATED {
            shown.push('…');
            break;
        }
        if !acts(c) && c != '"' {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    shown
}
