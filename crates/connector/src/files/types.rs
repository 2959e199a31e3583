//! Types of columns, as answers have them and people read them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};

use crate::columns::{listed, type_name};
use crate::options::CellType;

/// Returns a schema whose types an answer may have, with nullable columns and no metadata.
pub(super) fn plain(schema: &Schema) -> Schema {
    let fields = schema.fields().iter();
    Schema::new(
        fields
            .map(|field| Field::new(field.name(), plain_type(field.data_type()), true))
            .collect::<Vec<_>>(),
    )
}

fn plain_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::Utf8View | DataType::Null => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => {
            let inner = plain_type(item.data_type());
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(inner)))
        }
        other => other.clone(),
    }
}

/// Returns the type that an operator declared; `json` is none of a file.
pub(super) fn declared(kind: CellType) -> Option<DataType> {
    Some(match kind {
        CellType::String => DataType::Utf8,
        CellType::Int64 => DataType::Int64,
        CellType::Float64 => DataType::Float64,
        CellType::Bool => DataType::Boolean,
        CellType::Date => DataType::Date32,
        CellType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        CellType::Json => return None,
    })
}

/// Returns a column, or the error that lists those that exist.
pub(super) fn named<'a>(schema: &'a Schema, column: &str) -> Result<&'a Field, String> {
    schema.field_with_name(column).map_err(|_| {
        format!(
            "there is no column `{column}`; the columns are {}",
            listed(schema)
        )
    })
}

/// Says how the columns of two files differ, if they do. Their order does not matter.
pub(super) fn difference(first: &Schema, other: &Schema) -> Option<String> {
    for field in first.fields() {
        match other.field_with_name(field.name()) {
            Err(_) => return Some(format!("`{}` is only in the first", field.name())),
            Ok(found) if found.data_type() != field.data_type() => {
                let kinds = (type_name(field.data_type()), type_name(found.data_type()));
                return Some(format!(
                    "`{}` is {} in the first and {} in the second",
                    field.name(),
                    kinds.0,
                    kinds.1
                ));
            }
            Ok(_) => {}
        }
    }
    let extra = other
        .fields()
        .iter()
        .find(|field| first.field_with_name(field.name()).is_err());
    extra.map(|field| format!("`{}` is only in the second", field.name()))
}
