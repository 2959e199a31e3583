//! A description of the rows of a chart.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RowValue, Rows};
use crate::time;

/// Descriptions of the rows' keys. A kernel sends it to have a specification checked; omitted facts
/// are not checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// Number of rows.
    pub rows: u64,
    /// Keys that at least one row has.
    pub keys: BTreeMap<String, ColumnSummary>,
}

/// Description of the values of one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Column")]
pub struct ColumnSummary {
    /// Kind of the values that are not null.
    pub kind: ColumnKind,
    /// Number of rows with null, or without the key.
    #[serde(default)]
    pub nulls: u64,
    /// Number of different values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
    /// Smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Value that decided the kind, such as the first text that is not a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
}

/// Kind of a key's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// All numbers.
    Number,
    /// Only texts, not all of which are times.
    Text,
    /// Only texts that are times.
    Time,
    /// No values.
    Null,
    /// Numbers and texts.
    Mixed,
}

impl ColumnKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Number => "numbers",
            Self::Text => "texts",
            Self::Time => "times",
            Self::Null => "nulls only",
            Self::Mixed => "numbers and texts",
        }
    }
}

/// Facts that are gathered about one key.
#[derive(Default)]
struct KeyFacts<'a> {
    numbers: u64,
    texts: u64,
    times: u64,
    bits: BTreeSet<u64>,
    words: BTreeSet<&'a str>,
    range: Option<(f64, f64)>,
    text: Option<&'a str>,
    no_time: Option<&'a str>,
}

pub(super) fn of(rows: &Rows) -> Columns {
    let mut gathered: BTreeMap<&str, KeyFacts<'_>> = BTreeMap::new();
    for (key, cell) in rows.iter().flatten() {
        let gathered = gathered.entry(key).or_default();
        match cell {
            RowValue::Null => {}
            RowValue::Number(_) => {
                let Some(number) = cell.number() else { continue };
                gathered.numbers += 1;
                gathered.bits.insert(number.to_bits());
                let (min, max) = gathered.range.unwrap_or((number, number));
                gathered.range = Some((min.min(number), max.max(number)));
            }
            RowValue::Text(text) => {
                gathered.texts += 1;
                gathered.words.insert(text);
                gathered.text.get_or_insert(text);
                if time::of_text(text).is_some() {
                    gathered.times += 1;
                } else {
                    gathered.no_time.get_or_insert(text);
                }
            }
        }
    }
    let rows = rows.len() as u64;
    let keys = gathered
        .into_iter()
        .map(|(key, gathered)| (key.to_owned(), gathered.column(rows)));
    Columns {
        rows,
        keys: keys.collect(),
    }
}

impl KeyFacts<'_> {
    fn column(self, rows: u64) -> ColumnSummary {
        let kind = match (self.numbers, self.texts) {
            (0, 0) => ColumnKind::Null,
            (_, 0) => ColumnKind::Number,
            (0, texts) if texts == self.times => ColumnKind::Time,
            (0, _) => ColumnKind::Text,
            _ => ColumnKind::Mixed,
        };
        ColumnSummary {
            kind,
            nulls: rows - self.numbers - self.texts,
            distinct: Some((self.bits.len() + self.words.len()) as u64),
            min: self.range.map(|(min, _)| min),
            max: self.range.map(|(_, max)| max),
            sample: self.no_time.or(self.text).map(str::to_owned),
        }
    }
}
