//! Conditions on columns, which skip files, row groups and rows.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Scalar, StringArray};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, Schema};
use serde_json::{Map, Value};

use super::types::named;
use crate::columns::type_name;

/// A condition on a column.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) column: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Compare(Comparison, Scalar<ArrayRef>),
    /// One of these, or null if the flag is set.
    OneOf(Vec<Scalar<ArrayRef>>, bool),
    NotNull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Statistics of row groups, one value for each.
#[derive(Debug)]
pub(super) struct Statistics {
    pub(super) least: ArrayRef,
    pub(super) greatest: ArrayRef,
    pub(super) nulls: Vec<Option<u64>>,
}

impl Condition {
    /// Reads the argument `where`.
    pub(super) fn all(written: &Map<String, Value>, schema: &Schema) -> Result<Vec<Self>, String> {
        let mut conditions = Vec::new();
        for (column, value) in written {
            let kind = named(schema, column)?.data_type();
            let tests = match value {
                Value::Object(operators) => operators
                    .iter()
                    .map(|(operator, value)| test(operator, value, column, kind))
                    .collect(),
                value => test("=", value, column, kind).map(|test| vec![test]),
            }?;
            let column = column.clone();
            conditions.extend(tests.into_iter().map(|test| Self {
                column: column.clone(),
                test,
            }));
        }
        Ok(conditions)
    }

    /// Returns which values meet the condition. Null meets no comparison, and neither does NaN, except `!=`.
    pub(super) fn holds(&self, values: &ArrayRef) -> Result<BooleanArray, ArrowError> {
        let met = match &self.test {
            Test::NotNull => present(values),
            Test::OneOf(list, null) => {
                let mut met: Vec<bool> = (0..values.len())
                    .map(|row| *null && values.is_null(row))
                    .collect();
                for value in list {
                    let equal = certain(&cmp::eq(values, value)?);
                    met.iter_mut()
                        .zip(equal.iter())
                        .for_each(|(met, equal)| *met |= equal == Some(true));
                }
                met.into()
            }
            Test::Compare(comparison, value) => {
                let met = match comparison {
                    Comparison::Unequal => cmp::neq(values, value),
                    Comparison::Less => cmp::lt(values, value),
                    Comparison::LessOrEqual => cmp::lt_eq(values, value),
                    Comparison::Greater => cmp::gt(values, value),
                    Comparison::GreaterOrEqual => cmp::gt_eq(values, value),
                }?;
                let met = certain(&met);
                if *comparison == Comparison::Unequal || !values.data_type().is_floating() {
                    met
                } else {
                    // The kernels order NaN; statistics leave it out, so it must not depend on them.
                    let floats = cast(values, &DataType::Float64)?;
                    let floats = floats.as_any().downcast_ref::<Float64Array>();
                    let numbers = floats
                        .into_iter()
                        .flatten()
                        .map(|value| value.is_some_and(|it| !it.is_nan()));
                    met.iter()
                        .zip(numbers)
                        .map(|(met, number)| Some(met == Some(true) && number))
                        .collect()
                }
            }
        };
        Ok(met)
    }

    /// Returns whether rows of each row group can meet the condition.
    pub(super) fn possible(&self, statistics: &Statistics) -> Result<Vec<bool>, ArrowError> {
        let Statistics {
            least,
            greatest,
            nulls,
        } = statistics;
        let excluded = |excluded: BooleanArray| {
            certain(&excluded)
                .iter()
                .map(|it| it == Some(true))
                .collect::<Vec<_>>()
        };
        let excluded = match &self.test {
            Test::NotNull | Test::Compare(Comparison::Unequal, _) => vec![false; nulls.len()],
            Test::Compare(comparison, value) => excluded(match comparison {
                Comparison::Less => cmp::gt_eq(least, value),
                Comparison::LessOrEqual => cmp::gt(least, value),
                Comparison::Greater => cmp::lt_eq(greatest, value),
                Comparison::GreaterOrEqual | Comparison::Unequal => cmp::lt(greatest, value),
            }?),
            Test::OneOf(list, null) => {
                let mut all: Vec<bool> = nulls.iter().map(|count| !null || *count == Some(0)).collect();
                for value in list {
                    let (above, below) = (
                        excluded(cmp::gt(least, value)?),
                        excluded(cmp::lt(greatest, value)?),
                    );
                    for (all, out) in all.iter_mut().zip(above.iter().zip(&below)) {
                        *all &= *out.0 || *out.1;
                    }
                }
                all
            }
        };
        Ok(excluded.into_iter().map(|excluded| !excluded).collect())
    }
}

/// Returns which of these are true, and not false or null.
fn certain(values: &BooleanArray) -> BooleanArray {
    values.iter().map(|value| Some(value == Some(true))).collect()
}

fn present(values: &ArrayRef) -> BooleanArray {
    (0..values.len()).map(|row| Some(values.is_valid(row))).collect()
}

fn test(operator: &str, value: &Value, column: &str, kind: &DataType) -> Result<Test, String> {
    let comparison = match operator {
        "=" | "==" => {
            let list = match value {
                Value::Array(list) => list.as_slice(),
                value => std::slice::from_ref(value),
            };
            let values = list.iter().filter(|value| !value.is_null());
            let values = values
                .map(|value| scalar(value, column, kind))
                .collect::<Result<_, _>>()?;
            return Ok(Test::OneOf(values, list.iter().any(Value::is_null)));
        }
        "!=" if value.is_null() => return Ok(Test::NotNull),
        "!=" => Comparison::Unequal,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        other => {
            return Err(format!(
                "`{other}` is not a comparison for `{column}`; use `=`, `!=`, `<`, `<=`, `>` or `>=`"
            ));
        }
    };
    Ok(Test::Compare(comparison, scalar(value, column, kind)?))
}

/// Returns an argument as a value of the column's type.
fn scalar(value: &Value, column: &str, kind: &DataType) -> Result<Scalar<ArrayRef>, String> {
    let text = match value {
        Value::Number(number) if kind.is_numeric() => match number.as_f64() {
            // `10.0` for a column of integers.
            #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
            Some(float)
                if kind.is_integer() && number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 =>
            {
                Some((float as i64).to_string())
            }
            _ => Some(number.to_string()),
        },
        Value::Bool(value) if *kind == DataType::Boolean => Some(value.to_string()),
        Value::String(text)
            if kind.is_temporal()
                || kind.is_decimal()
                || matches!(kind, DataType::Utf8 | DataType::LargeUtf8) =>
        {
            Some(text.clone())
        }
        _ => None,
    };
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let array = text.and_then(|text| cast_with_options(&StringArray::from(vec![text]), kind, &options).ok());
    array.map(|array| Scalar::new(Arc::clone(&array))).ok_or_else(|| {
        format!(
            "`{column}` is of the type {}, which cannot be compared with {value}",
            type_name(kind)
        )
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_schema::Field;
    use serde_json::json;

    use super::*;

    #[test]
    fn row_groups_are_skipped_only_if_no_row_can_match() {
        // From 1 to 5 without null, from 10 to 20 with one, and unknown.
        let statistics = Statistics {
            least: Arc::new(Int64Array::from(vec![Some(1), Some(10), None])),
            greatest: Arc::new(Int64Array::from(vec![Some(5), Some(20), None])),
            nulls: vec![Some(0), Some(1), None],
        };
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        for (condition, expected) in [
            (json!({">": 5}), [false, true, true]),
            (json!({">=": 5}), [true, true, true]),
            (json!({"<": 10}), [true, false, true]),
            (json!({"<=": 10}), [true, true, true]),
            (json!(7), [false, false, true]),
            (json!([7, 20]), [false, true, true]),
            (json!(null), [false, true, true]),
            (json!([3, null]), [true, true, true]),
            (json!({"!=": 1}), [true, true, true]),
            (json!({"!=": null}), [true, true, true]),
        ] {
            let written = Map::from_iter([("n".to_owned(), condition.clone())]);
            let all = Condition::all(&written, &schema).unwrap();
            assert_eq!(all[0].possible(&statistics).unwrap(), expected, "{condition}");
        }
    }
}
