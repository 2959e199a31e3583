//! The JSON Schema of every message, for authors of other guests, and as a golden file.

use serde_json::{Value, json};

use crate::{FromGuest, FromKernel, GENERATION, ToGuest, ToKernel};

/// Returns the schema of all messages of this generation, as stored in `schema/gen-6.json`.
pub fn schema() -> Value {
    json!({
        "generation": GENERATION,
        "to_kernel": schemars::schema_for!(ToKernel),
        "from_kernel": schemars::schema_for!(FromKernel),
        "to_guest": schemars::schema_for!(ToGuest),
        "from_guest": schemars::schema_for!(FromGuest),
    })
}
