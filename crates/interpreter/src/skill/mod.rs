//! Skills: folders of instructions and files that sessions find, read-only, in `/skills`.
//!
//! ```text
//! zip, files or folder ──SkillPackage──> one plain zip in the artifact store ──SkillBundle──> SessionSkill
//!                                                                    /skills/<name> in sandboxes <─┘
//! ```
//!
//! An upload is hostile: it is taken apart file by file, checked, and packed again. Only the result
//! is stored, so that whatever reads a skill later reads a plain archive. A stored version never
//! changes, and neither does a session's.

mod announcement;
mod bundle;
mod error;
mod front_matter;
mod library;
mod limits;
mod package;
mod shared_file;
mod source;
mod tree;

#[cfg(test)]
mod tests;

pub use announcement::{announced, announcement};
pub use bundle::{SessionSkill, SkillBundle, SkillFile};
pub use error::SkillError;
pub use front_matter::SkillMetadata;
pub use library::{LibrarySkill, SkillLibrary};
pub use limits::{MAX_ARCHIVE, MAX_FILE, MAX_FILES, MAX_SKILLS, MAX_UNPACKED, SKILLS_FOLDER};
pub use package::SkillPackage;
