//! Options of the type `openapi`.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wrong;
use crate::http::{HttpConnector, RequestOptions};
use crate::options::TypeOptions;
use crate::recipe::{ConnectorRecipe, ConnectorResult, OptionMistake, checked};

/// Options of the type `openapi` only.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OpenapiOptions {
    /// OpenAPI document of the API, in JSON or YAML, of version 3.0 or 3.1. Its first server is the
    /// default of `base_url`. A relative path counts from the configuration's own folder.
    pub document: Option<PathBuf>,
    /// Operations of the document that are offered, by `operationId`. By default, all GET operations.
    pub operations: Vec<String>,
}

impl ConnectorRecipe for TypeOptions<OpenapiOptions, RequestOptions> {
    fn connector(&self, name: &str, folder: Option<&Path>) -> ConnectorResult {
        let mut mistakes = self.calls.mistakes();
        let secrets = self.shared.secrets(folder, &mut mistakes);
        let Some(document) = &self.own.document else {
            let text = "missing key `document`: the OpenAPI document, such as `crm.openapi.json`";
            mistakes.push(OptionMistake::new(&[], text));
            return Err(mistakes);
        };
        let Some(folder) = folder else {
            return Err(mistakes);
        };
        let text = text(&folder.join(document)).map_err(|problem| vec![wrong(problem)]);
        let compiled = text.and_then(|text| HttpConnector::of_document(name, self, &text, &secrets));
        checked(mistakes, compiled)
    }
}

/// Maximum size of a document in bytes.
const DOCUMENT: u64 = 32 << 20;

/// Reads a document; the error continues a sentence that starts with its key.
fn text(path: &Path) -> Result<String, String> {
    let failed = |error| format!("`{}` cannot be read: {error}", path.display());
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > DOCUMENT {
        return Err(format!(
            "`{}` has {size} bytes; the maximum is {DOCUMENT}",
            path.display()
        ));
    }
    fs::read_to_string(path).map_err(failed)
}
