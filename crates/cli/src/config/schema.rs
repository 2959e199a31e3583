//! The JSON Schema of the file, and the reference that is made of it.

use schemars::generate::SchemaSettings;

use super::Settings;

/// The schema, as text.
pub(crate) fn schema() -> String {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Settings>();
    schema.insert("title".into(), "cellblock.yaml".into());
    // A schema is JSON to begin with.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
