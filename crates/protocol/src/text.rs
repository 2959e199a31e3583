//! The list of characters that have an effect rather than an appearance.
//!
//! Text from a sandbox, a model or a tool server is shown in terminals, logs and prompts. There,
//! such a character can move the cursor, change the order of text, break a line, or hide words.
//! Each caller decides whether to escape, replace or reject characters that [`acts`] recognizes,
//! and which line ends and tabs it keeps.
//!
//! The zero-width joiner and non-joiner are not on the list: emoji and several scripts cannot be
//! written without them.

/// Returns whether a character has an effect rather than an appearance: it is on one of the lists
/// below.
pub const fn acts(c: char) -> bool {
    is_control(c) || reorders(c) || breaks_line(c) || is_hidden(c)
}

/// Returns a word in the number that fits a count: `row`, `rows`.
pub fn plural(count: u64, word: &str) -> String {
    if count == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}

/// Returns a count with what it counts: `1 row`, `2 rows`.
pub fn counted(count: impl TryInto<u64>, word: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", plural(count, word))
}

/// Replaces a character that [`acts`] with a space; returns others unchanged.
pub const fn or_space(c: char) -> char {
    if acts(c) { ' ' } else { c }
}

/// Returns whether a terminal may obey a character: C0 and C1 controls and DEL, the same as
/// [`char::is_control`].
pub const fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Returns whether a character changes the order in which text is shown: bidirectional marks,
/// embeddings, overrides and isolates.
pub const fn reorders(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character separates lines or paragraphs without being a control character.
pub const fn breaks_line(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether a character is invisible and does not affect the shape of its neighbors:
/// zero-width spaces, invisible operators, deprecated format characters, the byte order mark,
/// annotations and tags.
pub const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ranges of all characters for which a predicate holds.
    fn ranges(holds: fn(char) -> bool) -> Vec<(u32, u32)> {
        let mut found: Vec<(u32, u32)> = Vec::new();
        for at in ('\0'..=char::MAX).filter(|c| holds(*c)).map(u32::from) {
            match found.last_mut() {
                Some((_, last)) if *last + 1 == at => *last = at,
                _ => found.push((at, at)),
            }
        }
        found
    }

    #[test]
    fn the_list_holds_these_characters_and_no_others() {
        let listed = [
            (0x0, 0x1f),        // C0
            (0x7f, 0x9f),       // DEL and C1
            (0x61c, 0x61c),     // Arabic letter mark
            (0x200b, 0x200b),   // zero-width space
            (0x200e, 0x200f),   // left-to-right and right-to-left marks
            (0x2028, 0x202e),   // separators, embeddings, overrides
            (0x2060, 0x206f),   // word joiner, invisible operators, isolates, deprecated format characters
            (0xfeff, 0xfeff),   // byte order mark
            (0xfff9, 0xfffb),   // interlinear annotations
            (0xe0000, 0xe007f), // tags
        ];
        assert_eq!(ranges(acts), listed);
        assert_eq!(ranges(is_control), ranges(char::is_control));
        let ways = |c| [is_control(c), reorders(c), breaks_line(c), is_hidden(c)];
        for c in '\0'..=char::MAX {
            let listed = ways(c).into_iter().filter(|holds| *holds).count();
            assert!(listed <= 1, "{c:?} is on {listed} lists");
        }
    }

    #[test]
    fn a_count_has_the_number_of_its_noun() {
        let counts = [
            counted(0_u64, "row"),
            counted(1_usize, "row"),
            counted(2_u32, "more row"),
        ];
        assert_eq!(counts, ["0 rows", "1 row", "2 more rows"]);
    }

    #[test]
    fn text_of_any_script_and_joined_emoji_are_kept() {
        let kept = "naïve π ≈ 3.14 日本語 العربية עברית می\u{200c}خواهم 👩\u{200d}🔬 ❤\u{fe0f}";
        assert!(!kept.chars().any(acts));
        assert_eq!(kept.chars().map(or_space).collect::<String>(), kept);
        let replaced: String = "a\u{1b}[31m\u{202e}b\n".chars().map(or_space).collect();
        assert_eq!(replaced, "a [31m b ");
    }
}
