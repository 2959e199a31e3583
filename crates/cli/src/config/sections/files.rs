//! Uploaded files.

use cellblock_gateway::{FileOptions, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::units::Bytes;

/// Uploaded files.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Files {
    /// Maximum size of an upload.
    pub(crate) max_size: Bytes,
    /// Maximum size of file text that a model reads in a request without the interpreter.
    pub(crate) inline_text: Bytes,
    /// Maximum size of an image that a model is shown.
    pub(crate) picture: Bytes,
}

impl Default for Files {
    fn default() -> Self {
        let options = FileOptions::default();
        Self {
            max_size: Bytes(options.max_bytes),
            inline_text: Bytes(options.inline_text),
            picture: Bytes(options.picture),
        }
    }
}

impl Files {
    pub(in crate::config) fn apply(&self, options: &mut Options) {
        options.files = FileOptions {
            max_bytes: self.max_size.0,
            inline_text: self.inline_text.0,
            picture: self.picture.0,
        };
    }
}
