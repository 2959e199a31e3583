//! The JSON Schema of the file, and the reference that is made of it.

use schemars::Schema;
use schemars::generate::SchemaSettings;

use super::Settings;

/// The schema, as text.
pub(crate) fn schema() -> String {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Settings>();
    schema.insert("title".into(), "cellblock.yaml".into());
    sorted(schema)
}

/// A schema as text that does not change where only the order of fields in the code does.
pub(crate) fn sorted(schema: Schema) -> String {
    let mut schema = schema.to_value();
    schema.sort_all_objects();
    // As a schema it is written with its keywords in their usual order; it is JSON to begin with.
    let schema = Schema::try_from(schema).unwrap_or_default();
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
