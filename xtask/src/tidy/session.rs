//! A session's state stays in its parts, and few files see all of it.

use super::Violation;
use super::tree::File;

const FOLDER: &str = "crates/interpreter/src/session/";
/// The struct of the whole state.
const WHOLE: &str = "Actor";

/// Ceilings; lower one when its number has fallen.
const MAX_FIELDS: usize = 10;
const MAX_FILES: usize = 6;

/// Refuses more fields of the whole, and its methods in more files.
pub(super) fn violations(files: &[File]) -> Vec<Violation> {
    let inside = files
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && file.is("rs"));
    let mut found = Vec::new();
    let mut with_methods = Vec::new();
    for file in inside {
        let declared = format!("pub(super) struct {WHOLE} {{");
        if let Some((line, _)) = file.lines().find(|(_, text)| *text == declared) {
            let body = file.text.lines().skip(line);
            let fields = body
                .take_while(|text| *text != "}")
                .filter(|text| !text.trim_start().starts_with("//"))
                .count();
            if fields > MAX_FIELDS {
                let message = format!(
                    "`{WHOLE}` has {fields} fields, the ceiling is {MAX_FIELDS}; put one into the part \
                     of the state that it belongs to"
                );
                found.push(Violation::new(file, line, message));
            }
        }
        let methods = format!("impl {WHOLE} {{");
        with_methods.extend(
            file.lines()
                .find(|(_, text)| *text == methods)
                .map(|(line, _)| (file, line)),
        );
    }
    if let Some((file, line)) = with_methods.get(MAX_FILES) {
        let message = format!(
            "{} files have methods of `{WHOLE}`, the ceiling is {MAX_FILES}; let one take the parts that \
             it needs",
            with_methods.len()
        );
        found.push(Violation::new(file, *line, message));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> File {
        File::of(&format!("{FOLDER}{name}"), text)
    }

    #[test]
    fn a_whole_with_too_many_fields_is_rejected() {
        let of = |count: usize| {
            let fields = "    /// A field.\n    pub(super) a: u8,\n".repeat(count);
            let text = format!("pub(super) struct Actor {{\n{fields}}}\n");
            violations(&[file("actor.rs", &text)]).len()
        };
        assert_eq!((of(10), of(11)), (0, 1));
    }

    #[test]
    fn methods_of_the_whole_in_too_many_files_are_rejected() {
        let of = |count: usize| {
            let files: Vec<_> = (0..count)
                .map(|number| file(&format!("{number}.rs"), "impl Actor {\n}\n"))
                .collect();
            violations(&files).len()
        };
        assert_eq!((of(6), of(7)), (0, 1));
    }
}
