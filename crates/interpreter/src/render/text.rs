//! Long text: its first and its last page, or any.

use super::label;
use super::page::cut;
use super::plain::lines;
use crate::output::TextPage;

/// Shows text in so many characters: all of it, or its first and last page with the places they are from.
pub(super) fn pages(text: &str, chars: usize, truncated: bool) -> String {
    let length = text.chars().count();
    let more = if truncated {
        "\n(the text was cut before it was sent: print a part of it to see more)"
    } else {
        ""
    };
    if length + more.chars().count() <= chars {
        return format!("{text}{more}");
    }
    // Room for both headings at their longest.
    let heading = |from: usize, to: usize| format!("Characters {from}-{to} of {length}:\n");
    let headings = 2 * heading(length, length).chars().count() + 1;
    let room = chars.saturating_sub(headings + more.chars().count());
    let last = room / 3;
    let first = room - last;
    if last == 0 {
        return text.to_owned();
    }
    let start: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(length - last).collect();
    format!(
        "{}{start}\n{}{end}{more}",
        heading(1, first),
        heading(length - last + 1, length)
    )
}

/// Shows a page of a text in so many characters.
pub(super) fn page(name: Option<&str>, page: &TextPage, chars: usize) -> String {
    let shown = page.text.chars().count() as u64;
    let heading = format!(
        "{}Characters {}-{} of {} (page {} of {}):\n",
        label(name),
        page.first_char + u64::from(shown > 0),
        page.first_char + shown,
        page.chars,
        page.page + 1,
        page.pages.max(1)
    );
    cut(&(heading + &lines(&page.text)), chars)
}

/// Shows text in so many characters: whole, or without whole lines of its middle. The end says most.
pub(super) fn ends(text: &str, chars: usize) -> String {
    if text.chars().nth(chars).is_none() {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    let size = |line: &&str| line.chars().count() + 1;
    let mark = |left_out: usize| format!("... {left_out} lines are left out ...");
    let mut room = chars.saturating_sub(mark(lines.len()).chars().count() + 1);
    let (mut first, mut last) = (0, 0);
    while first + last < lines.len() {
        // Two lines of the end for one of the start.
        let from_end = last <= 2 * first;
        let next = if from_end {
            &lines[lines.len() - 1 - last]
        } else {
            &lines[first]
        };
        let Some(rest) = room.checked_sub(size(next)) else {
            break;
        };
        room = rest;
        if from_end {
            last += 1;
        } else {
            first += 1;
        }
    }
    if last == 0 {
        let last = lines.last().copied().unwrap_or_default();
        let before = match lines.len() - 1 {
            0 => String::new(),
            others => mark(others) + "\n",
        };
        let room = chars.saturating_sub(before.chars().count());
        return super::page::cut(&(before + &super::page::cut(last, room)), chars);
    }
    let left_out = mark(lines.len() - first - last);
    let shown = lines[..first]
        .iter()
        .copied()
        .chain([left_out.as_str()])
        .chain(lines[lines.len() - last..].iter().copied());
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_shows_its_first_and_last_page_with_their_places() {
        let text: String = ('a'..='z').cycle().take(1000).collect();
        let shown = pages(&text, 200, false);
        assert!(shown.starts_with("Characters 1-93 of 1000:\nabc"), "{shown}");
        assert!(shown.contains("\nCharacters 955-1000 of 1000:\n"), "{shown}");
        assert!(shown.chars().count() <= 200);
    }

    #[test]
    fn text_that_fits_is_whole_and_says_when_it_was_cut_before() {
        assert_eq!(pages("abc", 3, false), "abc");
        assert_eq!(
            pages("abc", 100, true),
            "abc\n(the text was cut before it was sent: print a part of it to see more)"
        );
    }

    #[test]
    fn a_long_traceback_keeps_its_end_and_some_of_its_start() {
        let text: Vec<_> = (0..100).map(|at| format!("line {at}")).collect();
        let shown = ends(&text.join("\n"), 120);
        assert!(shown.starts_with("line 0\n"), "{shown}");
        assert!(shown.contains("\n... 89 lines are left out ...\n"), "{shown}");
        assert!(shown.ends_with("line 98\nline 99"), "{shown}");
        assert!(shown.chars().count() <= 120);
        assert_eq!(ends("ValueError: very long", 10), "ValueE…+15");
        let shown = ends(&format!("first\nsecond\n{}", "x".repeat(1000)), 150);
        assert_eq!(
            shown,
            format!(
                "... 2 lines are left out ...\n{} ... (906 more characters)",
                "x".repeat(94)
            )
        );
    }
}
