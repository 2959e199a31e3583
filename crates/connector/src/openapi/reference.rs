//! References within a document.

use serde_json::{Map, Value};

/// Maximum number of references that lead to each other.
const CHAIN: usize = 16;
/// Maximum number of values of a schema with all that it refers to.
const VALUES: usize = 20_000;

/// A document, in which references are followed.
pub(super) struct Document<'a>(pub(super) &'a Value);

impl<'a> Document<'a> {
    /// Returns what a value refers to, or itself.
    pub(super) fn followed(&self, value: &'a Value) -> Result<&'a Map<String, Value>, String> {
        let mut value = value;
        for _ in 0..CHAIN {
            match value.get("$ref").and_then(Value::as_str) {
                Some(reference) => value = self.target(reference)?,
                None => return value.as_object().ok_or_else(|| "must be an object".to_owned()),
            }
        }
        Err("has references that lead back to themselves".to_owned())
    }

    fn target(&self, reference: &str) -> Result<&'a Value, String> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!(
                "`{reference}` is in another document, which is not read; copy it into this one"
            ));
        };
        let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
        let found = self.0.pointer(&pointer);
        found.ok_or_else(|| format!("`{reference}` is not in the document"))
    }

    /// Returns a schema without references, each replaced by what it refers to.
    pub(super) fn whole(&self, schema: &'a Value) -> Result<Value, String> {
        self.replaced(schema, &mut Vec::new(), &mut { VALUES })
    }

    fn replaced(&self, value: &'a Value, open: &mut Vec<&'a str>, room: &mut usize) -> Result<Value, String> {
        *room = room.checked_sub(1).ok_or_else(|| {
            format!("the schema has more than {VALUES} values with all that it refers to; simplify it")
        })?;
        match value {
            Value::Array(items) => {
                let items = items.iter().map(|item| self.replaced(item, open, room));
                Ok(Value::Array(items.collect::<Result<_, _>>()?))
            }
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    if open.contains(&reference) {
                        return Err(format!(
                            "`{reference}` refers to itself, which a function's parameters cannot"
                        ));
                    }
                    open.push(reference);
                    let mut target = self.replaced(self.target(reference)?, open, room)?;
                    open.pop();
                    // Of version 3.1, keys beside a reference count, too.
                    if let Value::Object(target) = &mut target {
                        for (key, value) in fields.iter().filter(|(key, _)| *key != "$ref") {
                            target.insert(key.clone(), self.replaced(value, open, room)?);
                        }
                    }
                    return Ok(target);
                }
                let fields = fields
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), self.replaced(value, open, room)?)));
                Ok(Value::Object(fields.collect::<Result<_, String>>()?))
            }
            other => Ok(other.clone()),
        }
    }
}
