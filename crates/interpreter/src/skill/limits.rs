//! Limits of a skill, and where sessions find it.

/// Directory in which code finds the skills of its session, each in a folder with its name.
pub const SKILLS_FOLDER: &str = "/skills";
/// Maximum size of an uploaded archive.
pub const MAX_ARCHIVE: u64 = 50 << 20;
/// Maximum number of files.
pub const MAX_FILES: usize = 500;
/// Maximum size of an unpacked file.
pub const MAX_FILE: u64 = 25 << 20;
/// Maximum size of all unpacked files.
pub const MAX_UNPACKED: u64 = 100 << 20;
/// Maximum number of skills of a session.
pub const MAX_SKILLS: usize = 20;
/// Maximum number of entries that an archive may list, ignored files and folders included.
pub(super) const MAX_ENTRIES: usize = 4096;
/// Maximum size of the front matter of `SKILL.md`.
pub(super) const MAX_FRONT_MATTER: usize = 16 << 10;
/// Maximum length of a path below the skill's folder, in bytes.
pub(super) const MAX_PATH: usize = 255;
/// Maximum depth of a path.
pub(super) const MAX_DEPTH: usize = 12;
