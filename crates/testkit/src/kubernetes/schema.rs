//! The schemas of agent-sandbox that an API server validates objects against. `crds/` has them as
//! its releases do.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::status::{Resource, failure};
use crate::Schema;

static SCHEMAS: LazyLock<BTreeMap<&'static str, Schema>> = LazyLock::new(|| {
    [
        ("sandboxclaims", include_str!("crds/sandboxclaims.yaml")),
        ("sandboxwarmpools", include_str!("crds/sandboxwarmpools.yaml")),
        ("sandboxtemplates", include_str!("crds/sandboxtemplates.yaml")),
        ("sandboxes", include_str!("crds/sandboxes.yaml")),
    ]
    .map(|(plural, text)| (plural, compile(text)))
    .into()
});

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn compile(text: &str) -> Schema {
    let definition: Value = serde_saphyr::from_str(text).unwrap();
    let mut schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    close(&mut schema);
    schema["properties"]["metadata"] = json!({"type": "object"});
    Schema::new(&schema).unwrap()
}

/// Rejects unknown fields, as `fieldValidation=Strict` does: a misspelled one would otherwise be
/// dropped silently.
fn close(schema: &mut Value) {
    if schema["properties"].is_object() && schema["x-kubernetes-preserve-unknown-fields"] != true {
        schema["additionalProperties"] = json!(false);
    }
    if let Some(all) = schema.as_object_mut() {
        all.values_mut().for_each(close);
    }
}

/// Checks an object, with the failure that the API server answers.
pub(super) fn check(resource: &Resource, name: &str, object: &Value) -> Result<(), Value> {
    let Some(schema) = SCHEMAS.get(resource.plural) else {
        return Ok(());
    };
    schema.check(object).map_err(|error| {
        let message = format!(
            "{}.{} \"{name}\" is invalid: {error:#}",
            resource.kind, resource.group
        );
        failure(422, "Invalid", &message)
    })
}
