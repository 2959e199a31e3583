//! Uploaded files.

use cellblock_gateway::{FileOptions, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::units::Bytes;

/// Uploaded files.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Files {
    /// The largest upload.
    pub(crate) max_size: Bytes,
    /// The most text of files that a model reads with a request that has no interpreter.
    pub(crate) inline_text: Bytes,
    /// The largest picture that a model is shown.
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
