//! The front matter of `SKILL.md`: YAML between two lines `---`.

use serde::Deserialize;

use super::error::{SkillError, shown};
use super::limits::MAX_FRONT_MATTER;

/// Maximum number of characters of each text.
const NAME: usize = 64;
const DESCRIPTION: usize = 1024;
const COMPATIBILITY: usize = 500;
const FENCE: &str = "---";

/// The part of a skill that a model always knows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SkillMetadata {
    /// Name, which is also that of the skill's folder: 1 to 64 of `a-z`, `0-9` and single hyphens inside.
    pub name: String,
    /// Description of what the skill does, and of when to use it.
    pub description: String,
    #[serde(default)]
    compatibility: Option<String>,
}

impl SkillMetadata {
    /// Reads the metadata of a `SKILL.md`. Keys that this version does not know are left alone:
    /// other programs read the same file.
    pub fn of(manifest: &[u8]) -> Result<Self, SkillError> {
        let yaml = fenced(manifest)?;
        // An alias could repeat a text without end; no field of a skill needs one.
        let options = serde_saphyr::options! {
            strict_booleans: true,
            budget: serde_saphyr::budget! { max_aliases: 0, max_nodes: 2000, max_depth: 16 },
        };
        let read = serde_saphyr::from_str_with_options::<Self>(yaml, options);
        let metadata = read.map_err(|error| {
            let reason = error.without_snippet().to_string();
            SkillError::invalid(format!(
                "invalid front matter of `SKILL.md`: {}; begin the file with `{FENCE}`, `name: …`, \
                 `description: …` and `{FENCE}`",
                shown(&reason)
            ))
        })?;
        metadata.check()?;
        Ok(metadata)
    }

    fn check(&self) -> Result<(), SkillError> {
        check_name(&self.name)?;
        check_description(&self.name, &self.description)?;
        let length = self.compatibility.as_ref().map_or(0, |it| it.chars().count());
        if length > COMPATIBILITY {
            return Err(SkillError::invalid(format!(
                "invalid `compatibility` of the skill `{}`: it has {length} characters, and can have at \
                 most {COMPATIBILITY}",
                self.name
            )));
        }
        Ok(())
    }
}

/// Checks the description of a skill with this name.
pub(super) fn check_description(name: &str, description: &str) -> Result<(), SkillError> {
    let length = description.trim().chars().count();
    if length == 0 || length > DESCRIPTION {
        return Err(SkillError::invalid(format!(
            "invalid `description` of the skill `{name}`: it has {length} characters, and must have 1 to \
             {DESCRIPTION}"
        )));
    }
    Ok(())
}

/// Checks the name of a skill.
pub(super) fn check_name(name: &str) -> Result<(), SkillError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let parts = || name.split('-');
    if name.len() <= NAME && parts().all(|part| !part.is_empty() && part.chars().all(plain)) {
        return Ok(());
    }
    Err(SkillError::invalid(format!(
        "invalid name `{}` of a skill: use 1 to {NAME} of `a-z`, `0-9` and `-`, without a hyphen at an \
         end or two in a row",
        shown(name)
    )))
}

/// Returns the text between the fences.
fn fenced(manifest: &[u8]) -> Result<&str, SkillError> {
    // The front matter ends before this, so that a text in another encoding below it does no harm.
    let start = manifest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(manifest);
    let mut lines = start.split_inclusive(|byte| *byte == b'\n');
    let missing = || {
        SkillError::invalid(format!(
            "`SKILL.md` has no front matter: begin it with a line `{FENCE}`, YAML with `name` and \
             `description`, and another line `{FENCE}`"
        ))
    };
    let first = lines.next().filter(|line| is_fence(line)).ok_or_else(missing)?;
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            let text = std::str::from_utf8(&start[first.len()..end]);
            return text.map_err(|_| SkillError::invalid("the front matter of `SKILL.md` is not UTF-8"));
        }
        end += line.len();
        if end - first.len() > MAX_FRONT_MATTER {
            return Err(SkillError::invalid(format!(
                "the front matter of `SKILL.md` has more than {MAX_FRONT_MATTER} bytes; move text below it"
            )));
        }
    }
    Err(missing())
}

fn is_fence(line: &[u8]) -> bool {
    line.trim_ascii_end() == FENCE.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SkillMetadata, String> {
        SkillMetadata::of(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn names_and_descriptions_are_read_in_every_usual_form() {
        for text in [
            "---\nname: pdf-form\ndescription: Fills forms.\n---\nBody",
            "\u{feff}---\r\nname: pdf-form\r\ndescription: \"Fills forms.\"\r\n---\r\n",
            "---\nname: pdf-form\ndescription: >-\n  Fills\n  forms.\nlicense: MIT\nmetadata:\n  \
             version: 1.0\nallowed-tools: Bash Read\n---",
        ] {
            let metadata = read(text).unwrap();
            assert_eq!(metadata.name, "pdf-form", "{text}");
            assert_eq!(metadata.description, "Fills forms.", "{text}");
        }
    }

    #[test]
    fn text_below_the_front_matter_may_have_any_encoding() {
        let manifest = b"---\nname: a\ndescription: b\n---\n\xff\xfe";
        assert_eq!(SkillMetadata::of(manifest).unwrap().name, "a");
    }

    #[test]
    fn invalid_front_matter_is_rejected_with_its_reason() {
        let long = |length: usize| format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(length));
        for (text, reason) in [
            ("# A skill\n", "has no front matter"),
            ("---\nname: a\ndescription: b\n", "has no front matter"),
            ("---\ndescription: b\n---\n", "name"),
            ("---\nname: a\n---\n", "description"),
            (
                "---\nname: a\nname: b\ndescription: c\n---\n",
                "invalid front matter",
            ),
            ("---\nname: [a]\ndescription: b\n---\n", "invalid front matter"),
            ("---\nname: &a a\ndescription: *a\n---\n", "invalid front matter"),
            ("---\nname: a\ndescription: ''\n---\n", "it has 0 characters"),
            (long(1025).as_str(), "it has 1025 characters"),
            (long(20_000).as_str(), "more than 16384 bytes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(reason), "{}: {error}", &text[..text.len().min(40)]);
        }
        assert!(read(&long(1024)).is_ok());
    }

    #[test]
    fn a_name_must_be_one_that_a_folder_can_have_everywhere() {
        for name in ["a", "pdf-form", "x9", &"a".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "-a",
            "a-",
            "a--b",
            "A",
            "a_b",
            "a/b",
            "..",
            "ä",
            &"a".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
