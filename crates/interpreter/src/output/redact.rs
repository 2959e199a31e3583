//! Removes secrets from text that a model or a log will read.
//!
//! The kernel does the same before it sends anything; this is for kernels that do not.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

const NAME: &str =
    r"[\w.-]*(?:token|api[_-]?key|access[_-]?key|secret|passw(?:or)?d|pwd|signature|credential)[\w-]*";
const MASK: &str = "[redacted]";

/// Patterns that are secrets in any context: in a URL, after `Bearer`, or by their form.
static ANYWHERE: LazyLock<[Regex; 4]> = LazyLock::new(|| {
    [
        format!(r#"(?i)(?<keep>[?&](?:{NAME}|key|sig|auth)=)[^&#\s'"<>)]+"#),
        r"(?i)(?<keep>\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^@/\s]+(?<after>@)".to_owned(),
        r"(?<keep>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}".to_owned(),
        r"(?<keep>)\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|A[KS]IA[A-Z0-9]{16}|xox[abpr]-[A-Za-z0-9-]{10,})"
            .to_owned(),
    ]
    .map(|pattern| Regex::new(&pattern).expect("the pattern is a constant, which a test compiles"))
});

/// Patterns that are secrets in a message, but may be an expression in a line of source.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = format!(r#"(?i)(?<keep>\b{NAME}["']?\s?[=:]\s?["']?)[^\s&'",;)]+"#);
    Regex::new(&pattern).expect("the pattern is a constant, which a test compiles")
});

/// Redacts a line of source: only patterns that are secrets in any context.
pub fn redact_source(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for pattern in &*ANYWHERE {
        if let Cow::Owned(redacted) = pattern.replace_all(&text, format!("${{keep}}{MASK}${{after}}")) {
            text = Cow::Owned(redacted);
        }
    }
    text.into_owned()
}

/// Redacts a message, in which a bare `password=hunter2` is also a secret.
pub fn redact(text: &str) -> String {
    PAIR.replace_all(&redact_source(text), format!("${{keep}}{MASK}"))
        .into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_are_removed_and_their_context_stays() {
        for (text, expected) in [
            (
                "GET https://x.org/a?token=abc&n=1 failed",
                "GET https://x.org/a?token=[redacted]&n=1 failed",
            ),
            ("postgres://me:hunter2@db/x", "postgres://me:[redacted]@db/x"),
            (
                "Authorization: Bearer abcdefgh123",
                "Authorization: Bearer [redacted]",
            ),
            (
                "wrong password=hunter2, try again",
                "wrong password=[redacted], try again",
            ),
            ("{'api_key': 'k-1'}", "{'api_key': '[redacted]'}"),
            (
                "key sk-abcdefghijklmnop1234 is out of credit",
                "key [redacted] is out of credit",
            ),
            ("KeyError: 'price'", "KeyError: 'price'"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn an_assignment_in_a_line_of_source_is_kept() {
        assert_eq!(
            redact_source("token = read_token(path)"),
            "token = read_token(path)"
        );
        assert_eq!(
            redact_source("get('https://x.org?key=abc')"),
            "get('https://x.org?key=[redacted]')"
        );
    }

    proptest! {
        #[test]
        fn no_secret_remains(
            before in "[ \\n;,]{0,5}",
            form in prop::sample::select(vec!["token={}", "Authorization: Bearer {}", "https://a:{}@host/"]),
            secret in "[a-zA-Z0-9]{12,20}",
            after in "[ \\n;,]{0,5}",
        ) {
            let text = format!("{before}{}{after}", form.replace("{}", &secret));
            prop_assert!(!redact(&text).contains(&secret), "{text:?}");
        }
    }
}
