//! Small views of large values, for logs.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::records::records;

/// Rows of the head, and of the tail.
pub(super) const ROWS: usize = 5;
/// Maximum number of columns that are listed.
pub(super) const COLUMNS: usize = 200;
/// Rows whose columns are listed.
const SEARCHED: usize = 1000;
/// Limits of a sample: characters of a text, items of a list, levels.
const CHARS: usize = 200;
const ITEMS: usize = 20;
const LEVELS: usize = 3;

/// The rows of a result that is a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    pub(super) count: Option<u64>,
    pub(super) columns: Vec<String>,
    pub(super) head: Vec<Value>,
    pub(super) tail: Vec<Value>,
}

/// Rows of a list that is seen item by item.
#[derive(Debug, Default)]
pub(super) struct RowsSample {
    rows: Rows,
    seen: u64,
    /// Whether an item was no record.
    is_other: bool,
    tail: VecDeque<Value>,
}

impl RowsSample {
    pub(super) fn add(&mut self, item: &Value) {
        self.seen += 1;
        let Some(fields) = item.as_object() else {
            self.is_other = true;
            return;
        };
        if self.seen <= SEARCHED as u64 {
            self.rows.list(fields);
        }
        if self.seen <= ROWS as u64 {
            return self.rows.head.push(sample(item));
        }
        if self.tail.len() == ROWS {
            self.tail.pop_front();
        }
        self.tail.push_back(sample(item));
    }

    /// Returns the rows, if all items were records.
    pub(super) fn finish(self) -> Rows {
        if self.is_other {
            return Rows::default();
        }
        Rows {
            count: Some(self.seen),
            tail: self.tail.into(),
            ..self.rows
        }
    }
}

impl Rows {
    /// Adds the names of columns that are not listed yet.
    fn list(&mut self, fields: &Map<String, Value>) {
        for name in fields.keys() {
            if self.columns.len() < COLUMNS && !self.columns.contains(name) {
                self.columns.push(name.clone());
            }
        }
    }

    /// Looks for rows; see [`records`].
    pub(super) fn of(value: &Value) -> Self {
        let Some(list) = records(value) else {
            return Self::default();
        };
        let mut rows = Self {
            count: Some(list.len() as u64),
            ..Self::default()
        };
        for fields in list.iter().take(SEARCHED).filter_map(Value::as_object) {
            rows.list(fields);
        }
        rows.head = list.iter().take(ROWS).map(sample).collect();
        let tail = &list[list.len().saturating_sub(ROWS).max(ROWS.min(list.len()))..];
        rows.tail = tail.iter().map(sample).collect();
        rows
    }
}

/// Returns a value without what is long or deep; "…" marks what is left out.
pub(super) fn sample(value: &Value) -> Value {
    within(value, LEVELS)
}

fn within(value: &Value, levels: usize) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]).into(),
            None => value.clone(),
        },
        Value::Array(items) if levels == 0 && !items.is_empty() => "[…]".into(),
        Value::Object(fields) if levels == 0 && !fields.is_empty() => "{…}".into(),
        Value::Array(items) => {
            let kept = items.iter().take(ITEMS).map(|item| within(item, levels - 1));
            let left_out = items.len().saturating_sub(ITEMS);
            let mark = (left_out > 0).then(|| format!("… {left_out} more").into());
            kept.chain(mark).collect()
        }
        Value::Object(fields) => {
            let kept = fields.iter().take(ITEMS).map(|(name, value)| {
                let name = name.chars().take(CHARS).collect();
                (name, within(value, levels - 1))
            });
            let left_out = fields.len().saturating_sub(ITEMS);
            let mark = (left_out > 0).then(|| ("…".to_owned(), format!("{left_out} more").into()));
            Value::Object(kept.chain(mark).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
