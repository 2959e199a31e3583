//! Columns of answers, as people read them.

use arrow_schema::{DataType, Schema};

/// Returns a short name of a type.
pub(crate) fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary => "bytes".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Time64(_) => "time".to_owned(),
        DataType::Timestamp(..) => "timestamp".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::List(item) => format!("list of {}", type_name(item.data_type())),
        other => other.to_string().to_lowercase(),
    }
}

/// Lists columns with their types.
pub(crate) fn listed(schema: &Schema) -> String {
    let columns = schema.fields().iter();
    let columns = columns.map(|field| format!("{} {}", field.name(), type_name(field.data_type())));
    columns.collect::<Vec<_>>().join(", ")
}
