//! Reader of patches. It knows no files: whether a patch fits one is seen when it is applied.

/// Maximum size of a patch in bytes.
pub const MAX_PATCH: usize = 1 << 20;
/// Maximum number of files of a patch.
pub const MAX_FILES: usize = 50;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
/// Line that ends a section whose context ends with the file.
const END_OF_FILE: &str = "*** End of File";
/// Maximum number of characters of a line in a message.
const SHOWN: usize = 80;

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// Path of the file, as the patch names it.
    pub path: String,
    /// The change.
    pub action: PatchAction,
}

/// Change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchAction {
    /// Creates it with this text.
    Create(String),
    /// Changes its text.
    Update(Vec<PatchSection>),
    /// Deletes it.
    Delete,
}

/// A part of a file that changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchSection {
    /// Number of its first line in the patch, from 1.
    pub number: usize,
    /// Lines of the file above it, from the outermost, each searched for after the one before.
    pub heads: Vec<String>,
    /// Its lines, at least one.
    pub lines: Vec<PatchLine>,
    /// Whether it ends where the file ends.
    pub at_end: bool,
}

/// A line of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchLine {
    /// Kind of the line.
    pub kind: LineKind,
    /// The line without its sign.
    pub text: String,
}

/// Kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It stays.
    Context,
    /// It is removed.
    Removed,
    /// It is added.
    Added,
}

/// Mistake in the syntax of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchMistake {
    /// It has no lines.
    Empty,
    /// It is larger than [`MAX_PATCH`].
    TooLarge(usize),
    /// Its last section has no lines.
    Unfinished,
    /// It ends without [`END`].
    CutOff,
    /// One of its lines is wrong.
    Line {
        /// Number of the line, from 1.
        number: usize,
        /// Beginning of the line.
        text: String,
        /// The rule that it breaks.
        rule: String,
    },
}

impl PatchMistake {
    fn line(number: usize, line: &str, rule: impl Into<String>) -> Self {
        Self::Line {
            number,
            text: line.chars().take(SHOWN).collect(),
            rule: rule.into(),
        }
    }

    /// Returns the mistake in words for the model that sent the patch as `field`.
    pub fn words(&self, field: &str) -> String {
        match self {
            Self::Empty => format!("`{field}` is empty"),
            Self::TooLarge(bytes) => {
                format!("`{field}` has {bytes} bytes (max {MAX_PATCH}); send several smaller patches")
            }
            Self::Unfinished => "the last section has no lines".to_owned(),
            Self::CutOff => format!("`{field}` does not end with the line `{END}`; send the whole patch"),
            Self::Line { number, text, rule } => {
                format!("line {number} of `{field}` is `{text}`, and {rule}")
            }
        }
    }
}

type Read<T> = Result<T, PatchMistake>;

/// Reads a patch of at least one file.
pub fn read_patch(patch: &str) -> Read<Vec<FilePatch>> {
    if patch.len() > MAX_PATCH {
        return Err(PatchMistake::TooLarge(patch.len()));
    }
    let mut lines = lines(patch)?;
    // Blank lines around it mean nothing.
    while lines.last().is_some_and(|(_, line)| line.trim().is_empty()) {
        lines.pop();
    }
    let mut lines = lines.into_iter().skip_while(|(_, line)| line.trim().is_empty());
    match lines.next() {
        Some((_, line)) if line.trim_end() == BEGIN => {}
        Some((number, line)) => {
            let rule = format!("a patch begins with the line `{BEGIN}`");
            return Err(PatchMistake::line(number, line, rule));
        }
        None => return Err(PatchMistake::Empty),
    }
    let rest: Vec<_> = lines.collect();
    let Some((last, rest)) = rest.split_last().filter(|(last, _)| last.1.trim_end() == END) else {
        return Err(PatchMistake::CutOff);
    };
    let mut files = Vec::new();
    let mut rest = rest;
    while let Some((head, after)) = rest.split_first() {
        let ends = |(_, line): &(usize, &str)| file_head(line).is_some();
        let (body, next) = after.split_at(after.iter().position(ends).unwrap_or(after.len()));
        files.push(file(*head, body)?);
        if files.len() > MAX_FILES {
            let rule = format!("a patch has at most {MAX_FILES} files; send several patches");
            return Err(PatchMistake::line(head.0, head.1, rule));
        }
        rest = next;
    }
    if files.is_empty() {
        let rule = "there is no file before it".to_owned();
        return Err(PatchMistake::line(last.0, last.1, rule));
    }
    Ok(files)
}

/// Reads the sections of a change of one file.
pub fn read_sections(diff: &str) -> Read<Vec<PatchSection>> {
    sections(&lines(diff)?)
}

/// Reads the text of a new file, which ends without a line break.
pub fn read_added(diff: &str) -> Read<String> {
    added(&lines(diff)?)
}

/// Returns the lines of a diff with their numbers.
fn lines(diff: &str) -> Read<Vec<(usize, &str)>> {
    if diff.trim().is_empty() {
        return Err(PatchMistake::Empty);
    }
    Ok((1..).zip(diff.lines()).collect())
}

/// Returns the verb and the path of a line that begins a file.
fn file_head(line: &str) -> Option<(&str, &str)> {
    let (verb, path) = line.strip_prefix("*** ")?.split_once(" File:")?;
    ["Add", "Update", "Delete"]
        .contains(&verb)
        .then(|| (verb, path.trim()))
}

fn file((number, line): (usize, &str), body: &[(usize, &str)]) -> Read<FilePatch> {
    let wrong = |rule: &str| Err(PatchMistake::line(number, line, rule));
    let Some((verb, path)) = file_head(line) else {
        return wrong("a file begins with `*** Add File: `, `*** Update File: ` or `*** Delete File: `");
    };
    if path.is_empty() {
        return wrong("it names no file");
    }
    let action = match verb {
        "Add" => {
            let body = without_blank_end(body);
            let text = added(body)?;
            // Text files end with a line break.
            let end = if body.is_empty() { "" } else { "\n" };
            PatchAction::Create(text + end)
        }
        "Update" => {
            if let Some((number, line)) = body.first().filter(|(_, line)| line.starts_with("*** Move to:")) {
                let rule = "files cannot be moved; add the file at its new path and delete the old one";
                return Err(PatchMistake::line(*number, line, rule));
            }
            if body.iter().all(|(_, line)| line.trim().is_empty()) {
                return wrong("no changes follow");
            }
            // Blank lines between files are no context behind the end of one.
            let whole = without_blank_end(body);
            let at_end = whole.last().is_some_and(|(_, line)| *line == END_OF_FILE);
            PatchAction::Update(sections(if at_end { whole } else { body })?)
        }
        _ => match body.iter().find(|(_, line)| !line.trim().is_empty()) {
            Some((number, line)) => {
                let rule = "a file that is deleted has no lines";
                return Err(PatchMistake::line(*number, line, rule));
            }
            None => PatchAction::Delete,
        },
    };
    Ok(FilePatch {
        path: path.to_owned(),
        action,
    })
}

fn without_blank_end<'a>(lines: &'a [(usize, &'a str)]) -> &'a [(usize, &'a str)] {
    let blank = |(_, line): &&(usize, &str)| line.trim().is_empty();
    &lines[..lines.len() - lines.iter().rev().take_while(blank).count()]
}

fn added(lines: &[(usize, &str)]) -> Read<String> {
    let mut texts = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        let Some(text) = line.strip_prefix('+') else {
            let rule = "every line of a new file begins with `+`";
            return Err(PatchMistake::line(*number, line, rule));
        };
        texts.push(text);
    }
    Ok(texts.join("\n"))
}

fn sections(lines: &[(usize, &str)]) -> Read<Vec<PatchSection>> {
    let mut done = Vec::new();
    let mut open = Some(PatchSection::default());
    for &(number, line) in lines {
        let wrong = |rule: &str| Err(PatchMistake::line(number, line, rule));
        if line == "@@" || line.starts_with("@@ ") {
            if is_numbered(line) {
                return wrong("sections have no line numbers; use `@@`, or `@@ ` and a line of the file");
            }
            let mut section = open.take().unwrap_or_default();
            if !section.lines.is_empty() {
                done.push(section);
                section = PatchSection::default();
            }
            let head = line.strip_prefix("@@ ").filter(|head| !head.trim().is_empty());
            section.heads.extend(head.map(str::to_owned));
            section.number = if section.number == 0 {
                number
            } else {
                section.number
            };
            open = Some(section);
            continue;
        }
        if line == END_OF_FILE {
            match open.take().filter(|section| !section.lines.is_empty()) {
                Some(section) => done.push(PatchSection {
                    at_end: true,
                    ..section
                }),
                None => return wrong("the section before it has no lines"),
            }
            continue;
        }
        if line.starts_with("*** ") {
            return wrong("send the changes of one file, without the frame of a patch");
        }
        let Some(section) = &mut open else {
            return wrong("the next section begins with `@@`");
        };
        let (kind, text) = match line.chars().next() {
            None => (LineKind::Context, ""),
            Some(' ') => (LineKind::Context, &line[1..]),
            Some('+') => (LineKind::Added, &line[1..]),
            Some('-') => (LineKind::Removed, &line[1..]),
            Some(_) => return wrong("lines begin with a space, `+` or `-`, and sections with `@@`"),
        };
        section.number = if section.number == 0 {
            number
        } else {
            section.number
        };
        section.lines.push(PatchLine {
            kind,
            text: text.to_owned(),
        });
    }
    match open {
        Some(section) if !section.lines.is_empty() => done.push(section),
        // It has a head.
        Some(section) if section.number != 0 => return Err(PatchMistake::Unfinished),
        _ => {}
    }
    Ok(done)
}

/// Returns whether a head is one of a unified diff, such as `@@ -1,3 +1,4 @@`.
fn is_numbered(head: &str) -> bool {
    let mut words = head.split(' ').skip(1);
    let range = |word: Option<&str>, sign: char| {
        let digits = word.and_then(|word| word.strip_prefix(sign)).unwrap_or_default();
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == ',')
    };
    range(words.next(), '-') && range(words.next(), '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(number: usize, heads: &[&str], lines: &[&str], at_end: bool) -> PatchSection {
        let line = |line: &&str| PatchLine {
            kind: match &line[..1] {
                "+" => LineKind::Added,
                "-" => LineKind::Removed,
                _ => LineKind::Context,
            },
            text: line[1..].to_owned(),
        };
        PatchSection {
            number,
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            lines: lines.iter().map(line).collect(),
            at_end,
        }
    }

    #[test]
    fn sections_have_heads_and_signed_lines() {
        for (diff, sections) in [
            (" a\n-b\n+c", vec![section(1, &[], &[" a", "-b", "+c"], false)]),
            (
                "@@ class A\n@@ def f\n x\n\n-y\n@@\n z\r\n",
                vec![
                    section(1, &["class A", "def f"], &[" x", " ", "-y"], false),
                    section(6, &[], &[" z"], false),
                ],
            ),
            (
                "@@\n-a\n@@\n+b\n*** End of File\n@@ x\n-y",
                vec![
                    section(1, &[], &["-a"], false),
                    section(3, &[], &["+b"], true),
                    section(6, &["x"], &["-y"], false),
                ],
            ),
            (
                "+++ is added\n--- is removed",
                vec![section(1, &[], &["+++ is added", "--- is removed"], false)],
            ),
        ] {
            assert_eq!(read_sections(diff), Ok(sections), "{diff:?}");
        }
    }

    #[test]
    fn a_wrong_line_of_a_section_is_named_with_its_rule() {
        for (diff, words) in [
            ("", "`diff` is empty"),
            (
                "return 0",
                "line 1 of `diff` is `return 0`, and lines begin with a space",
            ),
            ("@@ -1,2 +1,3 @@\n-a", "sections have no line numbers"),
            ("*** Update File: a", "without the frame of a patch"),
            ("@@ f\n", "the last section has no lines"),
            ("-a\n@@ f", "the last section has no lines"),
            (
                " a\n*** End of File\n-b",
                "line 3 of `diff` is `-b`, and the next section begins with `@@`",
            ),
            ("*** End of File", "the section before it has no lines"),
            ("@@ a\n*** End of File", "line 2 of `diff`"),
        ] {
            let refused = read_sections(diff).unwrap_err().words("diff");
            assert!(refused.contains(words), "{diff:?}: {refused}");
        }
    }

    #[test]
    fn a_patch_has_files_in_their_order() {
        let patch = "\n*** Begin Patch\n*** Add File: a/new.py\n+x = 1\n+\n*** Add File: empty\n\
                     *** Update File:  b.py \n@@ def f\n-1\n+2\n*** End of File\n\n*** Delete File: c\n\n\
                     *** End Patch\n\n";
        let update = PatchAction::Update(vec![section(8, &["def f"], &["-1", "+2"], true)]);
        let read = read_patch(patch).unwrap().into_iter();
        let read: Vec<_> = read.map(|file| (file.path, file.action)).collect();
        let expected = [
            ("a/new.py", PatchAction::Create("x = 1\n\n".to_owned())),
            ("empty", PatchAction::Create(String::new())),
            ("b.py", update),
            ("c", PatchAction::Delete),
        ];
        assert_eq!(read, expected.map(|(path, action)| (path.to_owned(), action)));
    }

    #[test]
    fn a_wrong_patch_is_explained() {
        let framed = |body: &str| format!("*** Begin Patch\n{body}\n*** End Patch");
        let many = "*** Delete File: a\n".repeat(MAX_FILES + 1);
        for (patch, words) in [
            (String::new(), "`patch` is empty"),
            ("x".repeat(MAX_PATCH + 1), "1048577 bytes (max 1048576)"),
            (
                "--- a\n+++ b".to_owned(),
                "a patch begins with the line `*** Begin Patch`",
            ),
            (
                "*** Begin Patch\n*** Delete File: a".to_owned(),
                "does not end with the line",
            ),
            (
                "*** Begin Patch\n*** End Patch".to_owned(),
                "there is no file before it",
            ),
            (
                framed("@@\n-a"),
                "line 2 of `patch` is `@@`, and a file begins with",
            ),
            (framed("*** Rename File: a"), "a file begins with"),
            (framed("*** Delete File: "), "it names no file"),
            (framed("*** Update File: a"), "no changes follow"),
            (
                framed("*** Update File: a\n*** Move to: b\n-x"),
                "files cannot be moved",
            ),
            (
                framed("*** Add File: a\nx"),
                "line 3 of `patch` is `x`, and every line of a new file",
            ),
            (
                framed("*** Delete File: a\n-x"),
                "a file that is deleted has no lines",
            ),
            (framed(many.trim_end()), "at most 50 files"),
        ] {
            let refused = read_patch(&patch).unwrap_err().words("patch");
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn a_new_file_of_the_client_ends_without_a_line_break() {
        assert_eq!(read_added("+x\n+\n+y").as_deref(), Ok("x\n\ny"));
        let refused = read_added("+x\ny").unwrap_err().words("diff");
        assert_eq!(
            refused,
            "line 2 of `diff` is `y`, and every line of a new file begins with `+`"
        );
    }
}
