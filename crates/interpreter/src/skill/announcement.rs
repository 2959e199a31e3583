//! The text by which a model learns which skills it has.

use std::fmt::Write as _;

use cellblock_protocol::text::or_space;

use super::bundle::SessionSkill;

/// Maximum number of characters of a description.
const DESCRIPTION: usize = 1024;

const INTRODUCTION: &str = "## Skills\n\nA skill is a folder of instructions and files, read-only in the \
                            sandbox. If a task fits the description of a skill, read its `SKILL.md` first, \
                            and follow it; read its other files when it refers to them. Run its scripts with \
                            their interpreter, such as `python PATH`. Available skills:\n";

/// Returns the text that announces skills, each by its name, description and the path of its
/// folder; nothing if there are none. Whatever offers a model code or a shell in a sandbox with
/// skills adds it to the developer's instructions.
pub fn announcement<'a>(skills: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Option<String> {
    let mut text = String::new();
    for (name, description, path) in skills {
        let plain: String = description.chars().take(DESCRIPTION).map(or_space).collect();
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        // Writing to a string does not fail.
        let _ = write!(text, "\n- `{name}` (`{path}/SKILL.md`): {plain}");
    }
    (!text.is_empty()).then(|| format!("{INTRODUCTION}{text}"))
}

/// Returns the text that announces the skills of a session.
pub fn announced(skills: &[SessionSkill]) -> Option<String> {
    let folders: Vec<_> = skills.iter().map(SessionSkill::folder).collect();
    let each = skills.iter().zip(&folders);
    announcement(each.map(|(skill, folder)| (&*skill.name, &*skill.description, folder.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_announced_by_name_description_and_path() {
        let text = announcement([("pdf-form", "Fills\n  forms.\u{202e}", "/skills/pdf-form")]).unwrap();
        assert!(text.starts_with("## Skills\n"), "{text}");
        assert!(
            text.ends_with("\n\n- `pdf-form` (`/skills/pdf-form/SKILL.md`): Fills forms."),
            "{text}"
        );
    }

    #[test]
    fn no_skills_are_not_announced() {
        assert_eq!(announcement([]), None);
    }
}
