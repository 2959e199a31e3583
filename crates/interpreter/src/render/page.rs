//! Cutting to a number of characters.

/// Cuts text to so many characters. Its end then says how many characters are hidden, in as many
/// words as there is room for.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    if text.chars().nth(chars).is_none() {
        return text.to_owned();
    }
    let length = text.chars().count();
    // With the number of all characters each mark has its greatest length.
    let mark: fn(usize) -> String = if long(length).chars().count() <= chars / 3 {
        long
    } else if short(length).chars().count() <= chars / 2 {
        short
    } else {
        return text
            .chars()
            .take(chars.saturating_sub(1))
            .chain((chars > 0).then_some('…'))
            .collect();
    };
    let kept = chars - mark(length).chars().count();
    text.chars().take(kept).collect::<String>() + &mark(length - kept)
}

fn long(hidden: usize) -> String {
    format!(" ... ({hidden} more characters)")
}

fn short(hidden: usize) -> String {
    format!("…+{hidden}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_is_at_most_as_long_as_allowed_and_says_how_much_is_hidden() {
        assert_eq!(cut("añbcdefgh", 9), "añbcdefgh");
        assert_eq!(cut("añbcdefgh", 8), "añbcd…+4");
        assert_eq!(cut("añbcdefgh", 2), "a…");
        assert_eq!(cut("añ", 0), "");
        let text = "x".repeat(1000);
        let shown = cut(&text, 100);
        assert_eq!(shown, format!("{} ... (927 more characters)", "x".repeat(73)));
        for chars in 0..200 {
            assert!(cut(&text, chars).chars().count() <= chars, "{chars}");
        }
    }
}
