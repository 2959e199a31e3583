//! JSON of clients and models, read field by field with a [`FieldReader`], whose mistakes name the
//! field; and the only words that messages have for the types of JSON.

use std::marker::PhantomData;

use serde_json::{Map, Value};

/// Names of the types in a JSON Schema.
pub const TYPES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

const NULL: &str = "null";
const BOOLEAN: &str = "a boolean";
const STRINGS: &str = "an array of strings";
/// Word for an integer.
pub const INTEGER: &str = "an integer";
/// Words for an integer that is not negative.
pub const COUNT: &str = "an integer that is 0 or greater";
/// Words for an integer that is positive.
pub const POSITIVE: &str = "an integer that is 1 or greater";
/// Word for any number.
pub const NUMBER: &str = "a number";
/// Word for a string.
pub const STRING: &str = "a string";
/// Word for an array.
pub const ARRAY: &str = "an array";
/// Word for an object.
pub const OBJECT: &str = "an object";

/// Returns the word for a value's type.
pub const fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(_) => NUMBER,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// The error of a value with the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` must be {expected}, not {found}")]
pub struct TypeMistake {
    /// Path of the value, such as `tools[0].name`; empty for the outermost one.
    pub path: String,
    /// Words for the expected type.
    pub expected: &'static str,
    /// Word for the value's type.
    pub found: &'static str,
}

impl TypeMistake {
    /// Creates the error of a value.
    pub const fn new(path: String, expected: &'static str, value: &Value) -> Self {
        let found = type_of(value);
        Self {
            path,
            expected,
            found,
        }
    }
}

impl From<TypeMistake> for String {
    fn from(mistake: TypeMistake) -> Self {
        mistake.to_string()
    }
}

/// Reader of an object's fields. A mistake is reported as the error `E` of the API that reads.
#[derive(Clone, Debug)]
pub struct FieldReader<'a, E> {
    map: &'a Map<String, Value>,
    path: String,
    error: PhantomData<fn() -> E>,
}

impl<'a, E: From<TypeMistake>> FieldReader<'a, E> {
    /// Takes a value that must be an object.
    pub fn of(value: &'a Value, path: impl Into<String>) -> Result<Self, E> {
        let (path, error) = (path.into(), PhantomData);
        match value {
            Value::Object(map) => Ok(Self { map, path, error }),
            other => Err(TypeMistake::new(path, OBJECT, other).into()),
        }
    }

    /// Returns the object's path; empty for the outermost one.
    pub fn own_path(&self) -> &str {
        &self.path
    }

    /// Returns a field's path.
    pub fn path(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Returns all fields with their values, including null.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a, E> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns a field's value; null counts as missing.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Returns the error of a field with the wrong type.
    pub fn wrong(&self, key: &str, expected: &'static str) -> E {
        let value = self.map.get(key).unwrap_or(&Value::Null);
        TypeMistake::new(self.path(key), expected, value).into()
    }

    /// Reads a field with a function that returns nothing for another type than the expected one.
    pub fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, E> {
        let read = |value| read(value).ok_or_else(|| self.wrong(key, expected));
        self.get(key).map(read).transpose()
    }

    /// Reads a string.
    pub fn text(&self, key: &str) -> Result<Option<String>, E> {
        self.read(key, STRING, |value| value.as_str().map(str::to_owned))
    }

    /// Reads a boolean.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, E> {
        self.read(key, BOOLEAN, Value::as_bool)
    }

    /// Reads an object as it is.
    pub fn object(&self, key: &str) -> Result<Option<Map<String, Value>>, E> {
        self.read(key, OBJECT, |value| value.as_object().cloned())
    }

    /// Reads an object as its fields.
    pub fn fields(&self, key: &str) -> Result<Option<Self>, E> {
        self.get(key)
            .map(|value| Self::of(value, self.path(key)))
            .transpose()
    }

    /// Reads an array; one that is missing is empty.
    pub fn list(&self, key: &str) -> Result<&'a [Value], E> {
        self.array(key, ARRAY)
    }

    /// Reads an array of objects, each with a function; one that is missing is empty.
    pub fn each<T>(&self, key: &str, mut read: impl FnMut(&Self) -> Result<T, E>) -> Result<Vec<T>, E> {
        let items = self.list(key)?.iter().enumerate();
        let path = self.path(key);
        items
            .map(|(index, value)| read(&Self::of(value, format!("{path}[{index}]"))?))
            .collect()
    }

    /// Reads an array of strings; one that is missing is empty.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, E> {
        let text = |(index, value): (usize, &Value)| match value {
            Value::String(text) => Ok(text.clone()),
            other => Err(TypeMistake::new(format!("{}[{index}]", self.path(key)), STRING, other).into()),
        };
        self.array(key, STRINGS)?.iter().enumerate().map(text).collect()
    }

    fn array(&self, key: &str, expected: &'static str) -> Result<&'a [Value], E> {
        let list = self.read(key, expected, |value| value.as_array().map(Vec::as_slice));
        Ok(list?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Fields<'a> = FieldReader<'a, String>;

    fn mistake<T>(read: impl FnMut(&Fields<'_>) -> Result<T, String>) -> String {
        let body = json!({"tools": [{"name": 1, "strict": "no", "tags": ["a", null]}, 5]});
        let top = Fields::of(&body, "").unwrap();
        top.each("tools", read).err().unwrap()
    }

    #[test]
    fn a_mistake_names_the_path_and_both_types() {
        let mistakes = [
            mistake(|tool| tool.text("name")),
            mistake(|tool| tool.flag("strict")),
            mistake(|tool| tool.texts("tags")),
            mistake(|tool| tool.texts("name")),
            mistake(|tool| tool.object("tags")),
            mistake(|tool| Ok(tool.own_path().to_owned())),
        ];
        let messages = [
            "`tools[0].name` must be a string, not a number",
            "`tools[0].strict` must be a boolean, not a string",
            "`tools[0].tags[1]` must be a string, not null",
            "`tools[0].name` must be an array of strings, not a number",
            "`tools[0].tags` must be an object, not an array",
            "`tools[1]` must be an object, not a number",
        ];
        assert_eq!(mistakes, messages);
    }

    #[test]
    fn null_counts_as_missing() {
        let body = json!({"a": null});
        let fields = Fields::of(&body, "").unwrap();
        assert_eq!(fields.text("a"), Ok(None));
        assert_eq!(fields.list("a"), Ok(&[][..]));
    }

    #[test]
    fn every_type_has_its_word() {
        let values = json!([null, true, 1.5, "a", [], {}]);
        let words: Vec<_> = values.as_array().unwrap().iter().map(type_of).collect();
        let named = [
            "null",
            "a boolean",
            "a number",
            "a string",
            "an array",
            "an object",
        ];
        assert_eq!(words, named);
    }
}
