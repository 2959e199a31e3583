//! The command line of skills.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Skills to use, and a command for them.
#[derive(Args, Clone, Debug)]
pub(crate) struct SkillArgs {
    /// Print one JSON object as the only line of stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: SkillCommand,
}

/// Command for skills.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SkillCommand {
    /// Add a skill, or a version of one whose name is known
    Add {
        /// Folder with a `SKILL.md`, or a zip of one
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
    /// List the skills
    List,
    /// Show a skill: its description, files and versions
    #[command(aliases = ["get", "inspect"])]
    Show {
        /// Name of the skill
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a skill with all its versions
    #[command(alias = "delete")]
    Remove {
        /// Name of the skill
        #[arg(value_name = "NAME")]
        name: String,
    },
}
