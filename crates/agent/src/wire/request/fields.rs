//! Reading the fields of a JSON object one by one: errors name the parameter.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::wire::error::ApiError;

/// A JSON object and its path in the request.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    /// Takes a value that must be an object.
    pub(super) fn of(value: &'a Value, path: impl Into<String>) -> Result<Self, ApiError> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other => Err(wrong(path, "an object", other)),
        }
    }

    /// Returns a field's path from the request's top.
    pub(super) fn path(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Returns a field's value; null counts as missing.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, ApiError> {
        self.read(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn required(&self, key: &str) -> Result<String, ApiError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, ApiError> {
        self.read(key, "a boolean", Value::as_bool)
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Map<String, Value>>, ApiError> {
        self.read(key, "an object", |value| value.as_object().cloned())
    }

    /// Reads a field that is an object.
    pub(super) fn fields(&self, key: &str) -> Result<Option<Self>, ApiError> {
        self.get(key)
            .map(|value| Self::of(value, self.path(key)))
            .transpose()
    }

    pub(super) fn list(&self, key: &str) -> Result<&'a [Value], ApiError> {
        let list = self
            .get(key)
            .map_or(Some(&[][..]), |value| value.as_array().map(Vec::as_slice));
        list.ok_or_else(|| wrong(self.path(key), "a list", self.get(key).unwrap_or(&Value::Null)))
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, ApiError> {
        let text = |(index, value): (usize, &Value)| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| wrong(format!("{}[{index}]", self.path(key)), "a string", value))
        };
        self.list(key)?.iter().enumerate().map(text).collect()
    }

    /// Reads a whole number of at least `least`.
    pub(super) fn count(&self, key: &str, least: u64) -> Result<Option<u64>, ApiError> {
        let count = self.read(key, "a whole number", Value::as_u64)?;
        match count {
            Some(count) if count < least => Err(self.range(key, &format!("{count} is less than {least}"))),
            count => Ok(count),
        }
    }

    /// Reads a number from `least` to `most`.
    pub(super) fn number(&self, key: &str, least: f64, most: f64) -> Result<Option<f64>, ApiError> {
        let number = self.read(key, "a number", Value::as_f64)?;
        match number {
            Some(number) if !(least..=most).contains(&number) => {
                Err(self.range(key, &format!("{number} is not from {least} to {most}")))
            }
            number => Ok(number),
        }
    }

    /// Reads strings by name, limited in number and size.
    pub(super) fn notes(&self, key: &str) -> Result<BTreeMap<String, String>, ApiError> {
        let Some(map) = self.object(key)? else {
            return Ok(BTreeMap::new());
        };
        if map.len() > 16 {
            return Err(self.range(key, &format!("{} entries are more than 16", map.len())));
        }
        let mut notes = BTreeMap::new();
        for (name, value) in map {
            let path = format!("{}.{name}", self.path(key));
            let Value::String(note) = value else {
                return Err(wrong(path, "a string", &value));
            };
            if name.chars().count() > 64 || note.chars().count() > 512 {
                let message =
                    format!("`{path}` is too long: names have at most 64, values at most 512 characters");
                return Err(ApiError::invalid(path, "string_above_max_length", message));
            }
            notes.insert(name, note);
        }
        Ok(notes)
    }

    pub(super) fn missing(&self, key: &str) -> ApiError {
        let path = self.path(key);
        let message = format!("`{path}` is required and missing");
        ApiError::invalid(path, "missing_required_parameter", message)
    }

    /// Returns the error for an unknown value.
    pub(super) fn unknown(&self, key: &str, value: &str, known: &str) -> ApiError {
        let path = self.path(key);
        let message = format!("`{path}` is `{value}`; it can be {known}");
        ApiError::invalid(path, "invalid_value", message)
    }

    fn range(&self, key: &str, why: &str) -> ApiError {
        let path = self.path(key);
        let message = format!("`{path}` is out of range: {why}");
        ApiError::invalid(path, "invalid_value", message)
    }

    fn read<T>(
        &self,
        key: &str,
        kind: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        read(value)
            .map(Some)
            .ok_or_else(|| wrong(self.path(key), kind, value))
    }
}

/// Returns the error for a value of the wrong type.
pub(super) fn wrong(path: String, kind: &str, value: &Value) -> ApiError {
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let message = format!("`{path}` must be {kind}, but is {actual}");
    ApiError::invalid(path, "invalid_type", message)
}
