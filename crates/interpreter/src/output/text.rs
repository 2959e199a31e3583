//! Bounds on text.

/// Cuts text to so many characters; says whether something was cut.
pub(super) fn cut(mut text: String, chars: usize) -> (String, bool) {
    match text.char_indices().nth(chars) {
        Some((end, _)) => {
            text.truncate(end);
            (text, true)
        }
        None => (text, false),
    }
}

/// Cuts a name, of which a part is as good.
pub(crate) fn name(text: String, chars: usize) -> String {
    cut(text, chars).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("añb".into(), 2), ("añ".into(), true));
        assert_eq!(cut("añb".into(), 3), ("añb".into(), false));
        assert_eq!(cut(String::new(), 0), (String::new(), false));
    }
}
