//! Applies sections to the text of a file. Sections are found by their context: as it is, then without
//! blanks at the ends of lines, then without those at their beginnings. Lines that stay keep every byte.

use super::reader::{LineKind, PatchLine, PatchSection};

/// Maximum number of comparisons of lines for one file, which bounds the time that a patch takes.
const MAX_COMPARED: u64 = 20_000_000;
/// Number of bytes of a line that count as one more comparison.
const LONG: usize = 64;
/// Number of bytes of blanks that count as one more comparison, because they are skipped one by one.
const BLANKS: usize = 4;
/// Maximum number of characters of a line in a message.
const SHOWN: usize = 120;

/// Returns the text after all sections were applied; the error is for the model.
pub fn apply(sections: &[PatchSection], text: &str) -> Result<String, String> {
    let mut patcher = TextPatcher::new(text);
    for (index, section) in sections.iter().enumerate() {
        patcher.section(section).map_err(|problem| {
            format!(
                "section {} (line {} of the patch): {problem}",
                index + 1,
                section.number
            )
        })?;
    }
    Ok(patcher.finish())
}

/// A text under change.
struct TextPatcher<'a> {
    /// Lines with their line breaks.
    lines: Vec<&'a str>,
    line_break: &'a str,
    /// Whether the last line has a line break.
    ends: bool,
    /// Number of lines that are before the next section.
    cursor: usize,
    /// Number of lines that are in `done`.
    copied: usize,
    /// The new text. Its last line has a line break, too.
    done: String,
    /// Number of bytes of that line break.
    last_break: usize,
    /// Number of bytes of blanks around all lines.
    blanks: usize,
    compared: u64,
}

/// Similarity of lines that are taken as equal.
#[derive(Clone, Copy)]
enum LineMatch {
    Exact,
    /// Except for blanks at the end.
    End,
    /// Except for blanks at both ends.
    Both,
}

const MATCHES: [LineMatch; 3] = [LineMatch::Exact, LineMatch::End, LineMatch::Both];

impl LineMatch {
    /// Returns the part of a line that is compared.
    fn part(self, line: &str) -> &str {
        match self {
            Self::Exact => line,
            Self::End => line.trim_end(),
            Self::Both => line.trim(),
        }
    }
}

impl<'a> TextPatcher<'a> {
    fn new(text: &'a str) -> Self {
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let line_break = lines.first().copied().map_or("", |line| split(line).1);
        let blanks = |line: &&str| {
            let (text, _) = split(line);
            text.len() - text.trim().len()
        };
        Self {
            line_break: if line_break.is_empty() { "\n" } else { line_break },
            ends: text.is_empty() || text.ends_with('\n'),
            blanks: lines.iter().map(blanks).sum(),
            lines,
            cursor: 0,
            copied: 0,
            done: String::new(),
            last_break: 0,
            compared: 0,
        }
    }

    fn section(&mut self, section: &'a PatchSection) -> Result<(), String> {
        for (depth, head) in section.heads.iter().enumerate() {
            self.seek(head, depth == 0)?;
        }
        let (mut lines, mut at_end) = (&section.lines[..], section.at_end);
        let at = loop {
            let old: Vec<&str> = lines
                .iter()
                .filter(|line| line.kind != LineKind::Added)
                .map(text)
                .collect();
            // Every blank line that is left out below costs one more search.
            self.spend(old.len() as u64)?;
            if let Some(at) = self.find(&old, at_end)? {
                break at;
            }
            // A blank line after the section need not be a line of the file, but may mean its end.
            at_end |= self.ends;
            match lines.split_last() {
                Some((last, rest)) if last.kind == LineKind::Context && last.text.is_empty() => lines = rest,
                _ => return Err(self.not_found(&old)),
            }
        };
        self.copy(at);
        let mut next = at;
        for line in lines {
            match line.kind {
                LineKind::Added => self.push(&line.text, self.line_break),
                LineKind::Context => {
                    next += 1;
                    self.copy(next);
                }
                LineKind::Removed => {
                    next += 1;
                    self.copied = next;
                }
            }
        }
        self.cursor = next;
        Ok(())
    }

    /// Moves the cursor behind a head. The `first` head of a section may have been passed already, so that
    /// several sections can have the same one.
    fn seek(&mut self, head: &str, first: bool) -> Result<(), String> {
        for (like, blanks) in [(LineMatch::Exact, 0), (LineMatch::Both, self.blanks)] {
            self.spend((self.lines.len() + blanks / BLANKS) as u64)?;
            // Once, because it may be long.
            let part = like.part(head);
            let (before, after) = self.lines.split_at(self.cursor);
            if first && before.iter().any(|line| like.part(split(line).0) == part) {
                return Ok(());
            }
            if let Some(found) = after.iter().position(|line| like.part(split(line).0) == part) {
                self.cursor += found + 1;
                return Ok(());
            }
        }
        Err(format!(
            "the file has no line `{}`, which its `@@` names{}",
            shown(head),
            self.behind()
        ))
    }

    /// Returns the first line of a place with these lines.
    fn find(&mut self, old: &[&str], at_end: bool) -> Result<Option<usize>, String> {
        let Some(last) = self
            .lines
            .len()
            .checked_sub(old.len())
            .filter(|last| *last >= self.cursor)
        else {
            return Ok(None);
        };
        let parts = MATCHES.map(|like| (like, parts(old, like)));
        if at_end {
            for (like, old) in &parts {
                if self.equal(last, old, *like)? == old.len() {
                    return Ok(Some(last));
                }
            }
        }
        for (like, old) in &parts {
            for at in self.cursor..=last {
                if self.equal(at, old, *like)? == old.len() {
                    return Ok(Some(at));
                }
            }
        }
        Ok(None)
    }

    /// Returns the number of lines that are equal from here on; `wanted` has the parts that are compared.
    fn equal(&mut self, at: usize, wanted: &[&str], like: LineMatch) -> Result<usize, String> {
        let (mut count, mut bytes, mut blanks) = (0, 0, 0);
        for (found, wanted) in self.lines.iter().skip(at).zip(wanted) {
            let (content, _) = split(found);
            let part = like.part(content);
            bytes += wanted.len();
            blanks += content.len() - part.len();
            if part != *wanted {
                break;
            }
            count += 1;
        }
        self.spend((count + 1 + bytes / LONG + blanks / BLANKS) as u64)?;
        Ok(count)
    }

    fn spend(&mut self, compared: u64) -> Result<(), String> {
        self.compared += compared;
        if self.compared <= MAX_COMPARED {
            return Ok(());
        }
        Err(
            "the file is too large to find this section in it; change the file with a program instead"
                .to_owned(),
        )
    }

    /// Describes the best place for lines that are nowhere.
    fn not_found(&mut self, old: &[&str]) -> String {
        let mut best: Option<(usize, usize)> = None;
        let trimmed = parts(old, LineMatch::Both);
        for at in 0..self.lines.len() {
            match self.equal(at, &trimmed, LineMatch::Both) {
                Ok(count) if count > best.map_or(0, |best| best.1) => best = Some((at, count)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let Some((at, count)) = best else {
            let first = old.first().copied().unwrap_or_default();
            return format!("its first line `{}` is not in the file", shown(first));
        };
        let number = at + 1;
        let Some(missing) = old.get(count) else {
            return format!(
                "its lines are at line {number} of the file, before the end of the section above it; order \
                 sections as their places in the file"
            );
        };
        let found = match self.lines.get(at + count) {
            Some(line) => format!(
                "line {} of the file is `{}`",
                at + count + 1,
                shown(split(line).0)
            ),
            None => "the file ends there".to_owned(),
        };
        format!(
            "its lines are not in the file{}; the nearest place begins at line {number}, but instead of `{}` \
             {found}",
            self.behind(),
            shown(missing)
        )
    }

    /// Returns the place behind which is searched.
    fn behind(&self) -> String {
        match self.cursor {
            0 => String::new(),
            line => format!(" after line {line}"),
        }
    }

    /// Copies the lines before this one.
    fn copy(&mut self, until: usize) {
        for at in self.copied.min(until)..until {
            if let Some(line) = self.lines.get(at).copied() {
                let (text, line_break) = split(line);
                self.push(text, line_break);
            }
        }
        self.copied = until;
    }

    fn push(&mut self, text: &str, line_break: &str) {
        let line_break = if line_break.is_empty() {
            self.line_break
        } else {
            line_break
        };
        self.done.push_str(text);
        self.done.push_str(line_break);
        self.last_break = line_break.len();
    }

    fn finish(mut self) -> String {
        self.copy(self.lines.len());
        if !self.ends {
            self.done.truncate(self.done.len() - self.last_break);
        }
        self.done
    }
}

/// Returns the text of a line, and its line break.
fn split(line: &str) -> (&str, &str) {
    match line.strip_suffix("\r\n") {
        Some(text) => (text, "\r\n"),
        None => line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n")),
    }
}

fn text(line: &PatchLine) -> &str {
    &line.text
}

fn parts<'a>(lines: &[&'a str], like: LineMatch) -> Vec<&'a str> {
    lines.iter().map(|&line| like.part(line)).collect()
}

fn shown(line: &str) -> String {
    line.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::read_sections;
    use super::*;

    fn patched(text: &str, diff: &str) -> Result<String, String> {
        apply(&read_sections(diff).unwrap(), text)
    }

    #[test]
    fn sections_change_the_lines_that_they_name() {
        for (text, diff, after) in [
            ("a\nb\nc\n", " a\n-b\n+B\n c", "a\nB\nc\n"),
            ("a\nb\nc\n", "-a\n@@\n-c", "b\n"),
            // Heads narrow the place down, one after the other.
            (
                "class A:\n  def f():\n    1\nclass B:\n  def f():\n    1\n",
                "@@ class B:\n@@ def f():\n-    1\n+    2",
                "class A:\n  def f():\n    1\nclass B:\n  def f():\n    2\n",
            ),
            (
                "def f\n1\nclass B\ndef f\n1\n",
                "@@ class B\n@@ def f\n-1",
                "def f\n1\nclass B\ndef f\n",
            ),
            // Two sections with the same head.
            ("f\n1\n2\n3\ng\n3\n", "@@ f\n-1\n@@ f\n-3", "f\n2\ng\n3\n"),
            // Blanks at the ends of lines do not matter, and stay.
            ("\ta  \n  b\n", " a\n", "\ta  \n  b\n"),
            ("\ta  \n  b\n", " a\n-b\n+c", "\ta  \nc\n"),
            // An exact place comes before a similar one.
            (" x\nx\n", "-x", " x\n"),
            // At the end.
            ("x\ny\nx\n", "-x\n+z\n*** End of File", "x\ny\nz\n"),
            ("x\ny\n", "@@\n+z\n*** End of File", "x\ny\nz\n"),
            ("x\ny\n", "@@ x\n+z", "x\nz\ny\n"),
            ("x\ny\n", "+z", "z\nx\ny\n"),
            ("", "+z", "z\n"),
            // Line breaks are those of the file, also that of its last line.
            ("a\r\nb\r\n", " a\n+x\n b", "a\r\nx\r\nb\r\n"),
            ("a\nb", " b\n+c", "a\nb\nc"),
            ("a\nb", " a\n-b", "a"),
            ("a\nb\r\nc\n", "-a\n+A", "A\nb\r\nc\n"),
            // A blank line after a section, which may be the end of the file.
            ("c\na\nc\n", "@@\n-c\n+d\n ", "c\na\nd\n"),
            ("a\nb\n", "-a\n+A\n\n@@\n-b\n", "A\n"),
            ("a\n", "-a\n", ""),
        ] {
            assert_eq!(patched(text, diff).as_deref(), Ok(after), "{text:?} {diff:?}");
        }
    }

    #[test]
    fn a_section_that_has_no_place_is_explained() {
        for (text, diff, words) in [
            (
                "a\nb\n",
                "-x",
                "section 1 (line 1 of the patch): its first line `x` is not in the file",
            ),
            (
                "a\nb\nc\n",
                "-a\n@@\n b\n-x",
                "section 2 (line 2 of the patch): its lines are not in the file after line 1; the nearest \
                 place begins at line 2, but instead of `x` line 3 of the file is `c`",
            ),
            ("a\nb\n", " b\n-c", "instead of `c` the file ends there"),
            (
                "a\nb\n",
                "-b\n@@\n-a",
                "its lines are at line 1 of the file, before the end of the section above",
            ),
            (
                "a\nb\n",
                "@@ f\n-a",
                "the file has no line `f`, which its `@@` names",
            ),
            (
                "a\nb\nc\n",
                "@@ a\n@@ z\n-c",
                "the file has no line `z`, which its `@@` names after line 1",
            ),
            ("", "-a", "its first line `a` is not in the file"),
        ] {
            let refused = patched(text, diff).unwrap_err();
            assert!(refused.contains(words), "{text:?} {diff:?}: {refused}");
        }
    }

    #[test]
    fn the_time_of_a_hostile_patch_is_bounded() {
        let text = "a\n".repeat(200_000);
        let diff = " a\n".repeat(1000) + "-b";
        let refused = patched(&text, &diff).unwrap_err();
        assert!(refused.contains("too large to find this section"), "{refused}");
        // Blank lines at the end, each of which may be left out.
        let refused = patched("a\n", &format!("-b{}", "\n".repeat(500_000))).unwrap_err();
        assert!(refused.contains("too large to find this section"), "{refused}");
    }

    #[test]
    fn long_blanks_cost_no_more_than_other_lines() {
        // In the head, which is compared with every line.
        let blank = " ".repeat(500_000);
        let refused = patched(&"a\n".repeat(200_000), &format!("@@ {blank}x\n-a")).unwrap_err();
        assert!(
            refused.starts_with("section 1 (line 1 of the patch): the file has no line"),
            "{refused}"
        );
        // In the file, of which every head is searched.
        let refused = patched(&format!("{blank}\nf \n"), &"@@ f\n+x\n".repeat(20_000)).unwrap_err();
        assert!(refused.contains("too large to find this section"), "{refused}");
    }

    proptest! {
        /// A patch with all lines of a text as its context changes exactly the lines with signs.
        #[test]
        fn a_whole_context_is_applied_exactly(
            lines in prop::collection::vec(("[a-c ]{0,3}", 0..3_u8), 1..12),
            ends in any::<bool>(),
        ) {
            let mut before = Vec::new();
            let mut after = Vec::new();
            let mut diff = String::new();
            for (line, kind) in &lines {
                let sign = match kind {
                    0 => {
                        before.push(line.as_str());
                        after.push(line.as_str());
                        ' '
                    }
                    1 => {
                        before.push(line.as_str());
                        '-'
                    }
                    _ => {
                        after.push(line.as_str());
                        '+'
                    }
                };
                diff.push(sign);
                diff.push_str(line);
                diff.push('\n');
            }
            let whole = |lines: &[&str]| {
                let end = if ends && !lines.is_empty() { "\n" } else { "" };
                lines.join("\n") + end
            };
            // Without a last line nothing tells whether a text ends with a line break.
            prop_assume!(!diff.trim().is_empty() && !before.is_empty() && !after.is_empty());
            prop_assume!(ends || (before.last() != Some(&"") && after.last() != Some(&"")));
            prop_assert_eq!(patched(&whole(&before), &diff), Ok(whole(&after)));
        }
    }
}
