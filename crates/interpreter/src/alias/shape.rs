//! The shape of a result, without its values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outline of a value: its content, sizes and types, with a few samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Kind of the value.
    pub kind: ShapeKind,
    /// Number of rows of a table, items of an array, or keys of an object. For an inner value, the
    /// maximum of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Columns of a table, keys of an object, and one unnamed column for the items of an array.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ShapeColumn>,
    /// Number of values under keys that are not listed, because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// A scalar as JSON, cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
}

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShapeKind {
    /// Values by key.
    Object,
    /// A list.
    Array,
    /// A list of objects, or a recorded table.
    Table,
    /// A text, a number, a boolean or null.
    Scalar,
}

/// Values of one key in all rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Column")]
pub struct ShapeColumn {
    /// Name of the key.
    pub name: String,
    /// The types of its values other than null, such as `integer`; for a recorded table, the Arrow type.
    pub types: Vec<String>,
    /// Number of nulls, if it is known without reading a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nulls: Option<u64>,
    /// Number of rows that lack the key.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// First value as JSON, cut; a list or an object only by its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Last value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Combined shape of its lists or objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<Shape>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
