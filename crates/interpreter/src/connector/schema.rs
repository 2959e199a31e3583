//! Checks values against the JSON Schemas that connectors declare.

use std::error::Error;
use std::fmt;

use boon::{Compiler, Draft, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;

const LOCATION: &str = "cellblock:schema";
/// Maximum size of a schema in values, and of its depth, where each reference counts as what it
/// refers to. Checking takes longer the larger it is, and forever in the worst case of recursive
/// references.
const NODES: u32 = 20_000;
const LEVELS: u32 = 100;
/// Maximum number of mistakes that are reported.
const MISTAKES: usize = 3;
/// Maximum number of characters of a mistake.
const CHARS: usize = 300;

/// A compiled schema.
pub(super) struct DeclaredSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl fmt::Debug for DeclaredSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeclaredSchema").finish_non_exhaustive()
    }
}

/// Fetches nothing: a schema stands alone.
struct NoRetrieval;

impl UrlLoader for NoRetrieval {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("`{url}` is not fetched").into())
    }
}

impl DeclaredSchema {
    /// Compiles a schema. `None` means that values are not checked here, because the schema is
    /// invalid or recursive, or has a pattern that only a backtracking engine can match. The
    /// connector checks them itself.
    pub(super) fn new(schema: &Value) -> Option<Self> {
        if !is_bounded(schema, schema, &mut { NODES }, LEVELS) {
            return None;
        }
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(NoRetrieval));
        let index = match compiler.add_resource(LOCATION, schema.clone()) {
            Ok(()) => compiler.compile(LOCATION, &mut schemas),
            Err(error) => Err(error),
        };
        index
            .inspect_err(|error| tracing::debug!(%error, "values are not checked against a schema"))
            .map(|index| Self { schemas, index })
            .ok()
    }

    /// Returns what is wrong with a value, with its place.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        let Err(error) = self.schemas.validate(value, self.index) else {
            return Ok(());
        };
        let mut mistakes = Vec::new();
        leaves(&error, &mut mistakes);
        Err(mistakes.join("; "))
    }
}

fn is_bounded(schema: &Value, root: &Value, nodes: &mut u32, levels: u32) -> bool {
    if *nodes == 0 || levels == 0 {
        return false;
    }
    *nodes -= 1;
    match schema {
        Value::Array(items) => items.iter().all(|item| is_bounded(item, root, nodes, levels - 1)),
        Value::Object(fields) => fields.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$dynamicRef" | "$recursiveRef", _) => false,
            ("$ref", Value::String(reference)) => reference
                .strip_prefix('#')
                .and_then(|pointer| root.pointer(pointer))
                .is_some_and(|target| is_bounded(target, root, nodes, levels - 1)),
            (_, value) => is_bounded(value, root, nodes, levels - 1),
        }),
        _ => true,
    }
}

fn leaves(error: &ValidationError<'_, '_>, mistakes: &mut Vec<String>) {
    if mistakes.len() == MISTAKES {
        return;
    }
    if error.causes.is_empty() {
        let place = error.instance_location.to_string();
        let place = place.trim_start_matches('/').replace('/', ".");
        let mistake = match place.as_str() {
            "" => error.kind.to_string(),
            place => format!("`{place}`: {}", error.kind),
        };
        mistakes.push(mistake.chars().take(CHARS).collect());
    }
    for cause in &error.causes {
        leaves(cause, mistakes);
    }
}
