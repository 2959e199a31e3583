//! JSON schemas that a test checks answers against.

use std::fmt;

use anyhow::{Result, anyhow};
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

/// A compiled JSON schema, of draft 2020-12 unless it names another.
pub struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Schema")
    }
}

impl Schema {
    /// Compiles a schema; fails if it is not a valid one.
    pub fn new(schema: &Value) -> Result<Self> {
        const PLACE: &str = "memory:schema.json";
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        let failed = |error: boon::CompileError| anyhow!("{error:#}");
        compiler.add_resource(PLACE, schema.clone()).map_err(failed)?;
        let index = compiler.compile(PLACE, &mut schemas).map_err(failed)?;
        Ok(Self { schemas, index })
    }

    /// Fails, with every violation, if a value does not match.
    pub fn check(&self, value: &Value) -> Result<()> {
        let checked = self.schemas.validate(value, self.index);
        checked.map_err(|error| anyhow!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invalid_schema_and_a_value_that_does_not_match_are_errors() {
        assert!(Schema::new(&json!({"type": "no type"})).is_err());
        let schema = Schema::new(&json!({"properties": {"a": {"type": "integer"}}})).unwrap();
        assert!(schema.check(&json!({"a": 1})).is_ok());
        let error = schema.check(&json!({"a": "1"})).unwrap_err().to_string();
        assert!(error.contains("/a"), "{error}");
    }
}
