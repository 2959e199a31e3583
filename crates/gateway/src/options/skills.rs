//! Options of skills.

use std::path::PathBuf;
use std::sync::Arc;

use cellblock_interpreter::skill::SkillBundle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Skills: folders of instructions and files that sessions find in `/skills`, `/v1/skills`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillOptions {
    /// Folders with skills that all keys can use: each is a skill with a `SKILL.md`, or has a folder
    /// per skill. They are read when the server starts; the ID of such a skill is its name.
    pub folders: Vec<PathBuf>,
    /// Maximum number of skills per key.
    pub max_per_key: usize,
    /// The skills of these folders.
    #[serde(skip)]
    pub shared: Vec<Arc<SkillBundle>>,
}

impl Default for SkillOptions {
    fn default() -> Self {
        Self {
            folders: Vec::new(),
            max_per_key: 100,
            shared: Vec::new(),
        }
    }
}
