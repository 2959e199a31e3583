//! Removes secrets by value from everything that comes back.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// Minimum length of a secret in bytes. Removing shorter ones would destroy data by chance.
const MIN_BYTES: usize = 6;
/// Minimum length of a part of a secret in Base64.
const MIN_BASE64: usize = 7;
const REDACTED: &str = "[redacted]";
/// Maximum size of the compiled pattern in bytes.
const PATTERN_BYTES: usize = 32 << 20;

/// Secrets in the forms in which far sides repeat them: as they are, escaped in JSON, URL-encoded, and in Base64 at any offset.
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
        let mut forms = BTreeSet::new();
        let mut numbers = false;
        for secret in secrets {
            let secret = secret.as_ref().trim();
            if secret.len() < MIN_BYTES {
                continue;
            }
            numbers |= secret.bytes().any(|byte| byte.is_ascii_digit())
                && secret.bytes().all(|byte| b"0123456789.-+eE".contains(&byte));
            forms.extend(forms_of(secret));
        }
        // Longer forms first, because a shorter one would leave the rest of a longer one.
        let mut forms: Vec<_> = forms.into_iter().collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let escaped: Vec<_> = forms.iter().map(|form| regex::escape(form)).collect();
        let pattern = (!escaped.is_empty()).then(|| {
            RegexBuilder::new(&escaped.join("|"))
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

fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    let json = Value::from(secret).to_string();
    forms.push(json[1..json.len() - 1].to_owned());
    let url = encoded(secret, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
    });
    let component = encoded(secret, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~!*'()".contains(&byte)
    });
    let query = encoded(secret, |byte| {
        byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte)
    });
    for form in [url, component, query] {
        forms.push(form.replace("%20", "+"));
        forms.push(lowercase_escapes(&form));
        forms.push(form);
    }
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

fn encoded(secret: &str, plain: impl Fn(u8) -> bool) -> String {
    let mut text = String::new();
    for byte in secret.bytes() {
        if plain(byte) {
            text.push(byte.into());
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn lowercase_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        text += "%";
        text += &digits.to_lowercase();
        text += rest;
    }
    text
}
