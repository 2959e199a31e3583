//! Cutting to a number of characters.

/// What a cut text ends with.
const CUT: &str = " ...";

/// Cuts text to so many characters, the mark of the cut included.
pub(super) fn cut(text: &str, chars: usize) -> String {
    if text.chars().nth(chars).is_none() {
        return text.to_owned();
    }
    let kept = chars.saturating_sub(CUT.len());
    let mark: String = CUT.chars().take(chars).collect();
    text.chars().take(kept).collect::<String>() + &mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_is_as_long_as_allowed_and_says_that_it_is_cut() {
        assert_eq!(cut("añbcdefgh", 9), "añbcdefgh");
        assert_eq!(cut("añbcdefgh", 8), "añbc ...");
        assert_eq!(cut("añbcdefgh", 2), " .");
        assert_eq!(cut("añ", 0), "");
    }
}
