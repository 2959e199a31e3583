//! Removes secrets by value from everything that comes back.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// Minimum length of a secret that is removed, in bytes. Removing shorter ones would destroy data by chance.
pub const MIN_SECRET_BYTES: usize = 6;
/// Minimum length of a part of a secret in Base64.
const MIN_BASE64: usize = 7;
/// Maximum length in bytes of a secret that is also found if characters of it are encoded.
const LONGEST_TOLERANT: usize = 4096;
const REDACTED: &str = "[redacted]";
/// Maximum size of the compiled pattern in bytes.
const PATTERN_BYTES: usize = 32 << 20;

/// Secrets in the forms in which far sides repeat them: as they are, escaped in JSON, URL-encoded,
/// and in Base64 at any offset.
///
/// A secret of fewer than 6 bytes, or one in pieces or in another encoding, is not found.
#[derive(Clone, Default)]
pub struct Redaction {
    pattern: Option<Regex>,
    /// Whether a number could be a secret.
    numbers: bool,
}

impl Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

impl Redaction {
    /// Removes these secrets.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut patterns = BTreeSet::new();
        let mut numbers = false;
        for secret in secrets {
            let secret = secret.as_ref().trim();
            if secret.len() < MIN_SECRET_BYTES {
                continue;
            }
            numbers |= secret.bytes().any(|byte| byte.is_ascii_digit())
                && secret.bytes().all(|byte| b"0123456789.-+eE".contains(&byte));
            let length = secret.len();
            // The larger, the slower: a long one is found as it is.
            let text = if length <= LONGEST_TOLERANT {
                secret.chars().map(character).collect()
            } else {
                regex::escape(secret)
            };
            patterns.insert((length, text));
            patterns.extend(base64(secret).into_iter().map(|form| (0, regex::escape(&form))));
        }
        // Longer secrets first, because a shorter one would leave the rest of a longer one.
        let patterns: Vec<_> = patterns.into_iter().rev().map(|(_, text)| text).collect();
        let pattern = (!patterns.is_empty()).then(|| {
            RegexBuilder::new(&patterns.join("|"))
                .size_limit(PATTERN_BYTES)
                .build()
                .unwrap_or_else(|_| everything())
        });
        Self { pattern, numbers }
    }

    /// Returns a text without the secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.pattern {
            Some(pattern) => pattern.replace_all(text, REDACTED),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns whether there are no secrets to remove.
    pub const fn is_empty(&self) -> bool {
        self.pattern.is_none()
    }

    /// Returns whether a text has a secret.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.pattern
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(text))
    }

    /// Removes the secrets from every string, key and number of a value.
    pub fn value(&self, value: &mut Value) {
        let Some(pattern) = &self.pattern else { return };
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = pattern.replace_all(text, REDACTED) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => self.fields(fields),
            Value::Number(number) if self.numbers && pattern.is_match(&number.to_string()) => {
                *value = REDACTED.into();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes the secrets from fields and their names.
    pub fn fields(&self, fields: &mut Map<String, Value>) {
        let Some(pattern) = &self.pattern else { return };
        fields.values_mut().for_each(|field| self.value(field));
        if fields.keys().any(|name| pattern.is_match(name)) {
            let all = std::mem::take(fields);
            let clean = |(name, value): (String, Value)| (self.text(&name).into_owned(), value);
            fields.extend(all.into_iter().map(clean));
        }
    }
}

/// Matches all text: nothing comes back rather than a secret.
fn everything() -> Regex {
    Regex::new("(?s).+").expect("a valid pattern")
}

/// Returns a pattern of a character as it is, URL-encoded, or escaped in JSON.
fn character(character: char) -> String {
    let mut pattern = format!("(?:{}|", regex::escape(&character.to_string()));
    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
        // Writing to a string cannot fail.
        let _ = write!(pattern, "%(?i:{byte:02x})");
    }
    for unit in &*character.encode_utf16(&mut [0; 2]) {
        let before = if (0xdc00..0xe000).contains(unit) { "" } else { "|" };
        let _ = write!(pattern, "{before}\\\\u(?i:{unit:04x})");
    }
    match character {
        ' ' => pattern.push_str(r"|\+"),
        '"' | '\\' | '/' => {
            let _ = write!(pattern, r"|\\{}", regex::escape(&character.to_string()));
        }
        '\n' => pattern.push_str(r"|\\n"),
        _ => {}
    }
    pattern + ")"
}

/// Returns the parts of the secret's Base64 that do not depend on what is beside it.
fn base64(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for offset in 0..3 {
        // The characters at both ends also depend on the bytes beside the secret.
        let mut padded = vec![0; offset];
        padded.extend(secret.as_bytes());
        let whole = padded.len() / 3 * 4 + [0, 1, 2][padded.len() % 3];
        let start = [0, 2, 3][offset];
        for form in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let part = &form[start..whole.min(form.len())];
            if part.len() >= MIN_BASE64 {
                forms.push(part.to_owned());
            }
        }
    }
    forms
}
