//! Long text: its first and its last page, or any.

use cellblock_protocol::text::counted;

use super::label;
use super::page::cut;
use super::plain::lines;
use super::redraw::LEFT_OUT;
use super::share;
use crate::output::TextPage;

/// Characters below which nothing is said of what is left out between lines.
const TIGHT: usize = 64;

/// Shows text in so many characters: all of it, or its first and last page with the places they are from.
pub(super) fn pages(text: &str, chars: usize, truncated: bool) -> String {
    let length = text.chars().count();
    // Places are those in the whole text: of a value that was too long, the middle is missing here.
    let hidden = if truncated { hidden(text) } else { 0 };
    let total = length + hidden;
    let more = if truncated {
        "\n(the text was cut before it was sent: print a part of it to see more)"
    } else {
        ""
    };
    if length + more.chars().count() <= chars {
        return format!("{text}{more}");
    }
    // Room for both headings at their longest.
    let heading = |from: usize, to: usize| format!("Characters {from}-{to} of {total}:\n");
    let headings = 2 * heading(total, total).chars().count() + 1;
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
        heading(total - last + 1, total)
    )
}

/// Returns how many more characters a text had than it has, from the line that the kernel put in
/// place of its middle.
fn hidden(text: &str) -> usize {
    let mark = text.lines().find_map(|line| {
        let count = line.strip_prefix("… ")?.strip_suffix(" left out …")?;
        let count = count
            .strip_suffix(" characters")
            .or_else(|| count.strip_suffix(" character"))?;
        Some((count.parse::<usize>().ok()?, line.chars().count() + 2))
    });
    mark.map_or(0, |(left_out, mark)| left_out.saturating_sub(mark))
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

/// Shows text in so many characters: whole, without the middle of its long lines, or without lines
/// of its middle. The end says most.
pub(super) fn ends(text: &str, chars: usize) -> String {
    if text.chars().nth(chars).is_none() {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    if chars < TIGHT {
        return tight(text, &lines, chars);
    }
    let needs: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
    let minimum = chars / 8;
    if let Some(room) = chars.checked_sub(lines.len() - 1) {
        let shares = share::fairly(&needs, room);
        let mut pairs = shares.iter().zip(&needs);
        if pairs.all(|(share, need)| share >= need || *share >= minimum) {
            let shown = lines.iter().zip(&shares);
            let shown: Vec<_> = shown.map(|(line, share)| middle_out(line, *share)).collect();
            return shown.join("\n");
        }
    }
    // The text was cut before, and its lines there are not known.
    let cut_at = lines.iter().position(|line| is_cut(line));
    let marks = cut_at.map_or(1, |_| 2);
    let cut = cut_at.map_or(0, |at| needs[at] + 1);
    let mut room = chars.saturating_sub(marks * (mark(lines.len()).chars().count() + 1) + cut);
    let (mut first, mut last) = (0, 0);
    while first + last < lines.len() {
        // Two lines of the end for one of the start.
        let from_end = last <= 2 * first;
        let next = if from_end { lines.len() - 1 - last } else { first };
        let Some(rest) = room.checked_sub(needs[next].min(minimum) + 1) else {
            break;
        };
        room = rest;
        if from_end {
            last += 1;
        } else {
            first += 1;
        }
    }
    let show =
        |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| middle_out(line, minimum)).collect() };
    let hidden = first..lines.len() - last;
    let between = match cut_at.filter(|at| hidden.contains(at)) {
        None => vec![mark(hidden.len())],
        Some(at) => {
            let parts = [hidden.start..at, at + 1..hidden.end].map(|part| part.len());
            let [before, after] = parts.map(|count| (count > 0).then(|| mark(count)));
            [before, Some(lines[at].to_owned()), after]
                .into_iter()
                .flatten()
                .collect()
        }
    };
    let (start, end) = (show(&lines[..hidden.start]), show(&lines[hidden.end..]));
    [start, between, end].concat().join("\n")
}

/// Whether a line says how much of a text was not kept.
fn is_cut(line: &str) -> bool {
    line.starts_with(LEFT_OUT) && line.ends_with(" …]") && line.len() < TIGHT * 2
}

/// Stands for lines that are not shown.
fn mark(lines: usize) -> String {
    let verb = if lines == 1 { "is" } else { "are" };
    format!("... {} {verb} left out ...", counted(lines, "line"))
}

/// Shows a line in so many characters: whole, or its head and its tail.
fn middle_out(line: &str, chars: usize) -> String {
    let length = line.chars().count();
    let mark = |hidden: usize| format!(" ... ({hidden} characters are left out) ... ");
    let marked = mark(length).chars().count();
    if length <= chars || marked > chars / 2 {
        return cut(line, chars);
    }
    let kept = chars - marked;
    let (head, tail) = (kept - kept / 2, kept / 2);
    let start: String = line.chars().take(head).collect();
    let end: String = line.chars().skip(length - tail).collect();
    start + &mark(length - kept) + &end
}

/// Shows text where there is no room for remarks: the start of a line, or the end of several.
fn tight(text: &str, lines: &[&str], chars: usize) -> String {
    if lines.len() == 1 {
        return cut(lines[0], chars);
    }
    let text = text.trim_end_matches('\n');
    let length = text.chars().count();
    let kept = chars.saturating_sub(1).min(length);
    let mark = if chars > 0 { "…" } else { "" };
    text.chars()
        .skip(length - kept)
        .fold(mark.to_owned(), |mut shown, next| {
            shown.push(next);
            shown
        })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

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
    fn places_are_those_of_the_whole_text_also_if_it_was_cut_before() {
        let text = format!(
            "{}\n… 2900052 characters left out …\n{}",
            "a".repeat(49_974),
            "z".repeat(49_974)
        );
        let shown = pages(&text, 300, true);
        assert!(shown.starts_with("Characters 1-"), "{shown}");
        assert!(shown.contains(" of 3000000:\na"), "{shown}");
        assert!(shown.contains("-3000000 of 3000000:\nz"), "{shown}");
        assert!(shown.chars().count() <= 300);
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
                "first\nsecond\n{}x ... (903 characters are left out) ... {0}",
                "x".repeat(48)
            )
        );
    }

    #[test]
    fn a_long_line_keeps_its_head_and_its_tail_and_hides_no_other() {
        let long: Vec<_> = (0..20_000).map(|at| at.to_string()).collect();
        let text = format!("intro\n[{}]\noutro\n", long.join(", "));
        let shown = ends(&text, 1000);
        assert!(shown.starts_with("intro\n[0, 1, 2, "), "{shown}");
        assert!(shown.ends_with(", 19998, 19999]\noutro"), "{shown}");
        assert_eq!(shown.chars().count(), 1000);
        let short: Vec<_> = (0..20_000).map(|at| format!("row {at}")).collect();
        let text = format!("{}\n{}", "x".repeat(3_000_000), short.join("\n"));
        let shown = ends(&text, 1000);
        assert!(shown.ends_with("\nrow 19998\nrow 19999"), "{shown}");
        assert!(shown.lines().count() > 50, "{shown}");
    }

    #[test]
    fn lines_that_were_not_kept_are_said_to_be_missing() {
        let row = |at: usize| format!("row {at}");
        let (head, tail): (Vec<_>, Vec<_>) = ((0..500).map(row).collect(), (900..1400).map(row).collect());
        let cut = "[… 3000 of 12000 bytes left out …]";
        let text = format!("{}\n{cut}\n{}", head.join("\n"), tail.join("\n"));
        let shown = ends(&text, 400);
        let lines: Vec<_> = shown.lines().collect();
        let at = lines.iter().position(|line| *line == cut).unwrap();
        let hidden = |line: &str| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap();
        assert_eq!(hidden(lines[at - 1]) + at - 1, 500, "{shown}");
        assert_eq!(hidden(lines[at + 1]) + lines.len() - at - 2, 500, "{shown}");
        assert!(shown.chars().count() <= 400, "{shown}");
    }

    #[test]
    fn one_line_and_several_have_their_own_words() {
        assert_eq!(mark(1), "... 1 line is left out ...");
        assert_eq!(mark(2), "... 2 lines are left out ...");
    }

    /// Returns the number after the first mark, and the text around it.
    fn parted<'a>(line: &'a str, before: &str, after: &str) -> Option<(&'a str, usize, &'a str)> {
        let (head, rest) = line.split_once(before)?;
        let (number, tail) = rest.split_once(after)?;
        Some((head, number.parse().ok()?, tail))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn at_least_half_of_the_budget_is_used_and_the_counts_add_up(
            lines in vec(prop_oneof![
                3 => "[a-zé]{0,20}",
                1 => "[a-z ]{100,900}",
                1 => (1000usize..60_000).prop_map(|length| "x".repeat(length)),
            ], 1..120),
            chars in TIGHT..4000,
        ) {
            let text = lines.join("\n");
            let shown = ends(&text, chars);
            let count = shown.chars().count();
            prop_assert!(count <= chars);
            let length = text.trim_end_matches('\n').chars().count();
            prop_assert!(count * 2 >= length.min(chars), "{count} of {length} in {chars}");
            let mut at = 0;
            for line in shown.lines() {
                if let Some(("", hidden, "")) = parted(line, "... ", " lines are left out ...")
                    .or_else(|| (line == mark(1)).then_some(("", 1, "")))
                {
                    at += hidden;
                    continue;
                }
                let whole = lines[at].as_str();
                let inside = parted(line, " ... (", " characters are left out) ... ");
                let after = parted(line, " ... (", " more characters)").or_else(|| {
                    let (head, hidden) = line.split_once("…+")?;
                    Some((head, hidden.parse().ok()?, ""))
                });
                match inside.or(after) {
                    Some((head, hidden, tail)) => {
                        prop_assert!(whole.starts_with(head) && whole.ends_with(tail));
                        let kept = head.chars().count() + tail.chars().count();
                        prop_assert_eq!(kept + hidden, whole.chars().count());
                    }
                    None if line.ends_with('…') => prop_assert!(chars / 8 < 20),
                    None => prop_assert_eq!(line, whole),
                }
                at += 1;
            }
            prop_assert_eq!(at, text.lines().count());
        }

        #[test]
        fn nothing_after_a_progress_bar_is_lost(
            parts in vec((0usize..200, "[a-z]{1,30}", 0usize..5000), 1..8),
        ) {
            let mut text = String::new();
            for (redraws, word, long) in &parts {
                for at in 0..*redraws {
                    text.extend(["\r", &at.to_string(), "%|", &"#".repeat(at / 4), "|"]);
                }
                text.extend(["\n", word.as_str(), "\n", &"y".repeat(*long), "\n"]);
            }
            text += "last words\n";
            let shown = super::super::stream(&text, 1000);
            prop_assert!(shown.trim_end().ends_with("last words"), "{shown}");
            prop_assert!(!shown.contains("\\r"));
            for (redraws, word, _) in &parts {
                prop_assert!(shown.lines().any(|line| line == word), "{word} in {shown}");
                let last = redraws.checked_sub(1).map(|at| format!("{at}%|{}|", "#".repeat(at / 4)));
                prop_assert!(last.is_none_or(|last| shown.contains(&last)));
            }
        }
    }
}
