//! Files stay small enough to be read in one sitting.

use super::Violation;
use super::tree::File;

const LIMIT: usize = 600;
const NOTED: usize = 400;

fn counted(file: &File) -> Option<usize> {
    (file.is("rs") || file.is("py")).then(|| file.text.lines().count())
}

/// Refuses source files beyond the limit.
pub(super) fn check(file: &File) -> Vec<Violation> {
    let over = counted(file).filter(|lines| *lines > LIMIT);
    let message = |lines| format!("file has {lines} lines, the limit is {LIMIT}; split it by noun or verb");
    over.map(|lines| Violation::new(file, LIMIT + 1, message(lines)))
        .into_iter()
        .collect()
}

/// Names source files that come near the limit.
pub(super) fn note(file: &File) -> Option<String> {
    let lines = counted(file).filter(|lines| (NOTED + 1..=LIMIT).contains(lines))?;
    Some(format!("{} has {lines} lines", file.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_at_the_limit_passes_and_one_beyond_it_does_not() {
        assert_eq!(check(&File::of("a.rs", &"x\n".repeat(600))), []);
        let found = check(&File::of("a.py", &"x\n".repeat(601)));
        assert_eq!(
            found[0].to_string(),
            "a.py:601: file has 601 lines, the limit is 600; split it by noun or verb"
        );
        assert_eq!(check(&File::of("a.json", &"x\n".repeat(601))), []);
    }

    #[test]
    fn only_large_files_within_the_limit_are_noted() {
        assert_eq!(note(&File::of("a.rs", &"x\n".repeat(400))), None);
        assert_eq!(
            note(&File::of("a.rs", &"x\n".repeat(401))),
            Some("a.rs has 401 lines".to_owned())
        );
        assert_eq!(note(&File::of("a.rs", &"x\n".repeat(601))), None);
    }
}
