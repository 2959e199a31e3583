//! What a result looks like, without its values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outline of a value: what is in it, how much, of what types, with a few samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// What it is.
    pub kind: ShapeKind,
    /// Rows of a table, items of an array, keys of an object. Below another value, the most that one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Columns of a table, keys of an object, and one without a name for the items of an array.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Values under keys that are not among the columns, because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// A scalar as JSON, cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShapeKind {
    /// Values by keys.
    Object,
    /// A list.
    Array,
    /// A list of objects, or a recorded table.
    Table,
    /// A text, a number, a truth value or null.
    Scalar,
}

/// What is under a key, in all rows together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// The key.
    pub name: String,
    /// The types of its values other than null, such as `integer`; for a recorded table, the Arrow type.
    pub types: Vec<String>,
    /// How often it is null, where that is known without reading a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nulls: Option<u64>,
    /// How many rows lack it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// Its first value as JSON, cut; a list or an object only by its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Its last value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// What its lists or objects look like, taken together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<Shape>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
