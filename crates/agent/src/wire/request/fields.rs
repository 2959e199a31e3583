//! Fields of a request, read with the errors of the APIs.

use std::collections::BTreeMap;

use cellblock_settings::json::{COUNT, FieldReader, NUMBER, POSITIVE, STRING, TypeMistake};
use serde_json::Value;

use crate::wire::error::ApiError;

/// Fields of a JSON object in a request.
pub(super) type Fields<'a> = FieldReader<'a, ApiError>;

impl From<TypeMistake> for ApiError {
    fn from(mistake: TypeMistake) -> Self {
        let (path, expected) = (mistake.path, mistake.expected);
        let message = format!("`{path}` must be {expected}, but is {}", mistake.found);
        Self::invalid(path, "invalid_type", message)
    }
}

/// Reading of fields with the limits and errors of the APIs.
pub(super) trait RequestFields: Sized {
    /// Reads a string that must be there.
    fn required(&self, key: &str) -> Result<String, ApiError>;
    /// Reads an object that must be there.
    fn required_fields(&self, key: &str) -> Result<Self, ApiError>;
    /// Reads an integer of at least `least`.
    fn count(&self, key: &str, least: u64) -> Result<Option<u64>, ApiError>;
    /// Reads a number from `least` to `most`.
    fn number(&self, key: &str, least: f64, most: f64) -> Result<Option<f64>, ApiError>;
    /// Reads strings by name, limited in number and size.
    fn notes(&self, key: &str) -> Result<BTreeMap<String, String>, ApiError>;
    /// Returns the error for a field; the reason follows its path.
    fn invalid(&self, key: &str, code: &str, reason: &str) -> ApiError;
    /// Returns the error for a missing field.
    fn missing(&self, key: &str) -> ApiError;
    /// Returns the error for an unknown value.
    fn unknown(&self, key: &str, value: &str, known: &str) -> ApiError;
}

impl RequestFields for Fields<'_> {
    fn required(&self, key: &str) -> Result<String, ApiError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    fn required_fields(&self, key: &str) -> Result<Self, ApiError> {
        self.fields(key)?.ok_or_else(|| self.missing(key))
    }

    fn count(&self, key: &str, least: u64) -> Result<Option<u64>, ApiError> {
        let expected = if least == 0 { COUNT } else { POSITIVE };
        match self.read(key, expected, Value::as_u64)? {
            Some(count) if count < least => {
                let reason = format!("is out of range: {count} is less than {least}");
                Err(self.invalid(key, "invalid_value", &reason))
            }
            count => Ok(count),
        }
    }

    fn number(&self, key: &str, least: f64, most: f64) -> Result<Option<f64>, ApiError> {
        match self.read(key, NUMBER, Value::as_f64)? {
            Some(number) if !(least..=most).contains(&number) => {
                let reason = format!("is out of range: {number} is not from {least} to {most}");
                Err(self.invalid(key, "invalid_value", &reason))
            }
            number => Ok(number),
        }
    }

    fn notes(&self, key: &str) -> Result<BTreeMap<String, String>, ApiError> {
        let mut notes = BTreeMap::new();
        let Some(fields) = self.fields(key)? else {
            return Ok(notes);
        };
        let count = fields.entries().count();
        if count > 16 {
            let reason = format!("is out of range: {count} entries are more than 16");
            return Err(self.invalid(key, "invalid_value", &reason));
        }
        for (name, value) in fields.entries() {
            let note = value.as_str().ok_or_else(|| fields.wrong(name, STRING))?;
            if name.chars().count() > 64 || note.chars().count() > 512 {
                let reason = "is too long: names have at most 64, values at most 512 characters";
                return Err(fields.invalid(name, "string_above_max_length", reason));
            }
            notes.insert(name.to_owned(), note.to_owned());
        }
        Ok(notes)
    }

    fn invalid(&self, key: &str, code: &str, reason: &str) -> ApiError {
        let path = self.path(key);
        let message = format!("`{path}` {reason}");
        ApiError::invalid(path, code, message)
    }

    fn missing(&self, key: &str) -> ApiError {
        self.invalid(key, "missing_required_parameter", "is required and missing")
    }

    fn unknown(&self, key: &str, value: &str, known: &str) -> ApiError {
        let reason = format!("is `{value}`; it can be {known}");
        self.invalid(key, "invalid_value", &reason)
    }
}

/// Reads a string, or an array of objects whose strings are joined.
pub(super) fn joined(
    fields: &Fields<'_>,
    key: &str,
    expected: &'static str,
    separator: &str,
    read: impl FnMut(&Fields<'_>) -> Result<String, ApiError>,
) -> Result<Option<String>, ApiError> {
    match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(_)) => Ok(Some(fields.each(key, read)?.join(separator))),
        Some(_) => Err(fields.wrong(key, expected)),
    }
}
