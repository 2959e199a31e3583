//! A cursor over a short ASCII text that skips spaces between what it reads.

/// The remaining text.
pub(super) struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.trim() }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Consumes `token` if it comes next.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        self.rest.strip_prefix(token).is_some_and(|rest| {
            self.rest = rest.trim_start();
            true
        })
    }

    /// Consumes the characters that `belongs` accepts.
    pub(super) fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }
}
