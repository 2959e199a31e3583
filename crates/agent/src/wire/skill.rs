//! Skills that a request names or brings for its container.

use serde::{Deserialize, Serialize};

/// A skill of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SkillRequest {
    /// A skill of the caller, or of the operator.
    SkillReference {
        /// ID of the skill.
        skill_id: String,
        /// Number of a version, or `latest`; by default, the default version.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
    /// A skill that comes with the request.
    Inline {
        /// Name, in the place of that in its front matter.
        name: String,
        /// Description, in the place of that in its front matter.
        description: String,
        /// Its files.
        source: InlineSource,
    },
}

impl SkillRequest {
    /// Returns it as responses have it: without the files that came with the request.
    pub(super) fn without_files(mut self) -> Self {
        if let Self::Inline { source, .. } = &mut self {
            source.data = String::new();
        }
        self
    }
}

/// Files of a skill that comes with a request: a zip archive in base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "base64")]
pub struct InlineSource {
    /// `application/zip`.
    pub media_type: String,
    /// The archive. Responses leave it out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
}

impl std::fmt::Debug for InlineSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("InlineSource");
        shown.field("bytes", &self.data.len()).finish_non_exhaustive()
    }
}
