//! Finding the rows of a chart in the JSON of a tool's result, in one of the usual shapes.

use serde_json::{Map, Value, json};

use super::error::{ChartError, ChartProblem, code, quoted, repeated};
use super::{CheckedChart, MAX_ROWS, Rows};

/// Maximum depth at which lists of rows are searched.
const DEPTH: usize = 2;
/// Maximum number of locations in an error.
const MOST_NAMED: usize = 20;

/// Creates a chart from a tool's result without Python: from a list of row objects, an object of
/// columns (lists of equal length), or an object in which exactly one value is one of these, up to
/// two levels down. `path` selects one of several, such as `data.prices`.
pub fn from_json(
    spec: &Value,
    data: &Value,
    path: Option<&str>,
    title: Option<String>,
    alt: Option<String>,
) -> Result<CheckedChart, ChartError> {
    let rows = match rows(data, path) {
        Ok(rows) => rows,
        // The rest can also be checked without rows, so that a model repairs everything at once.
        Err(mut error) => {
            if let Some(form) = super::form(spec, title.as_deref(), alt.as_deref()) {
                error.and(form);
            }
            return Err(error);
        }
    };
    CheckedChart::new(spec, rows, title, alt)
}

/// The rows of a result.
fn rows(data: &Value, path: Option<&str>) -> Result<Rows, ChartError> {
    let (at, found) = find(data, path)?;
    let field = if at.is_empty() {
        "data".to_owned()
    } else {
        format!("data.{}", repeated(&at))
    };
    match found {
        RowSource::Rows(list) => Rows::from_value(list, &field),
        RowSource::Columns(columns) => Rows::from_value(&transposed(columns, &field)?, &field),
    }
}

/// A part of a result from which rows can be made.
#[derive(Clone, Copy)]
enum RowSource<'a> {
    Rows(&'a Value),
    Columns(&'a Map<String, Value>),
}

fn find<'a>(data: &'a Value, path: Option<&str>) -> Result<(String, RowSource<'a>), ChartError> {
    let mut places = Vec::new();
    search(data, "", DEPTH, &mut places);
    if let Some(path) = path {
        let known = places.iter().find(|(at, _)| at == path).map(|(_, found)| *found);
        let found = known.or_else(|| usable(path.split('.').try_fold(data, |value, key| value.get(key))?));
        return found.map(|found| (path.to_owned(), found)).ok_or_else(|| {
            let message = format!(
                "{} does not lead to a list of rows; name another path",
                quoted(path)
            );
            ambiguous("path", message, &places)
        });
    }
    match &places[..] {
        [(at, found)] => Ok((at.clone(), *found)),
        [] => Err(ambiguous(
            "data",
            "has no list of row objects, up to two levels down; compute one in Python and call \
             render_chart there"
                .to_owned(),
            &places,
        )),
        several => {
            let message = format!("has {} lists of rows; pick one by its path", several.len());
            Err(ambiguous("data", message, &places))
        }
    }
}

fn ambiguous(field: &str, message: String, places: &[(String, RowSource<'_>)]) -> ChartError {
    let valid = places.iter().take(MOST_NAMED).map(|(at, _)| repeated(at));
    ChartError::of(ChartProblem::new(code::DATA_AMBIGUOUS, field, message).with_valid(valid))
}

/// Finds every usable part, without searching inside it.
fn search<'a>(value: &'a Value, at: &str, depth: usize, places: &mut Vec<(String, RowSource<'a>)>) {
    if let Some(found) = usable(value) {
        // An empty list counts only if there is nothing else.
        let empty = matches!(found, RowSource::Rows(Value::Array(list)) if list.is_empty());
        if !(empty && depth < DEPTH) {
            places.push((at.to_owned(), found));
        }
        return;
    }
    let Value::Object(map) = value else { return };
    if depth == 0 {
        return;
    }
    for (key, value) in map {
        let at = if at.is_empty() {
            key.clone()
        } else {
            format!("{at}.{key}")
        };
        search(value, &at, depth - 1, places);
    }
}

fn usable(value: &Value) -> Option<RowSource<'_>> {
    match value {
        Value::Array(list) if list.first().is_none_or(Value::is_object) => Some(RowSource::Rows(value)),
        Value::Object(map) if is_columns(map) => Some(RowSource::Columns(map)),
        _ => None,
    }
}

/// Returns whether an object has at least two columns, and otherwise only plain values.
fn is_columns(map: &Map<String, Value>) -> bool {
    let mut columns = 0;
    map.values().all(|value| match value {
        Value::Array(list) => {
            columns += 1;
            list.first().is_some_and(|it| !it.is_object() && !it.is_array())
        }
        other => !other.is_object(),
    }) && columns >= 2
}

/// Converts columns to rows; one more than allowed is enough to be rejected.
fn transposed(columns: &Map<String, Value>, field: &str) -> Result<Value, ChartError> {
    let lists = columns
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_array()?)));
    let lists: Vec<_> = lists.collect();
    let longest = lists.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
    if let Some((key, list)) = lists.iter().find(|(_, list)| list.len() != longest) {
        let message = format!(
            "has {} values where another column has {longest}; columns of a chart must have the same length",
            list.len()
        );
        let problem = ChartProblem::new(
            code::DATA_MALFORMED,
            format!("{field}.{}", repeated(key)),
            message,
        );
        return Err(ChartError::of(problem));
    }
    if longest > MAX_ROWS {
        let message = format!(
            "{longest} rows are over the limit of {MAX_ROWS}, and none is left out silently; aggregate or \
             sample to at most {MAX_ROWS} rows"
        );
        return Err(ChartError::of(ChartProblem::new(
            code::ROW_COUNT_TRUNCATION,
            field,
            message,
        )));
    }
    let row = |at: usize| {
        let cells = lists
            .iter()
            .map(|(key, list)| ((*key).clone(), list.get(at).cloned().unwrap_or_default()));
        Value::Object(cells.collect())
    };
    Ok(json!((0..longest).map(row).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests;
