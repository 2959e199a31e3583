//! Putting skills into a session's sandboxes.
//!
//! Skills lie in the directory that only the guest can write, beside datasets and inputs: code
//! finds it read-only and without programs that it could start from there. Checkpoints and forks
//! leave the directory out, so that every sandbox gets its skills from the same archives.

use std::collections::BTreeSet;
use std::path::Path;

use cellblock_protocol::text::counted;
use cellblock_sandbox::jail::mounts::SKILLS;
use cellblock_sandbox::jail::protection::Protection;

use crate::error::{Error, Result};
use crate::session::contents::files::escape;
use crate::session::runtime::Runtime;
use crate::shared::InterpreterState;
use crate::skill::{MAX_SKILLS, SKILLS_FOLDER, SessionSkill};

/// Checks whether a session with these limits can have skills.
pub(crate) fn check(shared: &InterpreterState, data_bytes: u64, skills: &[SessionSkill]) -> Result<()> {
    let refused = |reason: String| {
        Err(Error::Argument {
            name: "skills",
            missing: false,
            reason,
        })
    };
    if skills.is_empty() {
        return Ok(());
    }
    if skills.len() > MAX_SKILLS {
        let count = skills.len();
        return refused(format!(
            "there are {count}, and a session can have at most {MAX_SKILLS}"
        ));
    }
    let mut names = BTreeSet::new();
    if let Some(skill) = skills.iter().find(|skill| !names.insert(&skill.name)) {
        return refused(format!("two have the name `{}`; leave one out", skill.name));
    }
    let bytes: u64 = skills.iter().map(|skill| skill.bundle.bytes()).sum();
    if bytes > data_bytes {
        let bytes = counted(bytes, "byte");
        return refused(format!(
            "they have {bytes}, and the limit `data_bytes` of the session is {data_bytes}; raise it, or \
             use fewer"
        ));
    }
    let backend = &shared.backend;
    if backend.wall().is_none() && !backend.report().is_active(Protection::MountNamespace) {
        return refused(format!(
            "sandboxes without namespaces have no `{SKILLS_FOLDER}`; use a host that permits namespaces, \
             or the backend `gvisor` or `microvm`"
        ));
    }
    Ok(())
}

/// Rejects a change of a file that belongs to a skill, by any of its names.
pub(in crate::session) fn check_change(path: &str) -> Result<()> {
    let named = Path::new(path);
    if named.starts_with(SKILLS) || named.starts_with(SKILLS_FOLDER) {
        return Err(Error::Request(format!(
            "change `{}`: skills are read-only; write below `/workspace`",
            escape(path)
        )));
    }
    Ok(())
}

impl Runtime {
    /// Writes the session's skills into a sandbox that was just taken.
    pub(in crate::session) async fn fill_skills(&self) -> Result<()> {
        let (false, Some(sandbox)) = (self.options.skills.is_empty(), &self.sandbox) else {
            return Ok(());
        };
        check(&self.shared, self.limits.data_bytes, &self.options.skills)?;
        for skill in &self.options.skills {
            for file in &*skill.bundle.files {
                let content = skill.bundle.read(&file.path).await?;
                let path = format!("{SKILLS}/{}/{}", skill.name, file.path);
                sandbox.guest().write(&path, file.mode, &*content).await?;
            }
        }
        Ok(())
    }
}
