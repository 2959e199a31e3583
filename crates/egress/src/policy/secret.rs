//! Secrets that the proxy adds to requests, so that code in the sandbox never has them.

use std::fmt;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::HostPattern;

/// A value that is never shown: its `Debug` and its `Display` are `***`.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "String")]
pub struct EgressSecret(Box<str>);

/// A header with a secret value, which the proxy sets in requests to some hosts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRule {
    /// Hosts whose requests get the header: a name, `*.domain`, or an IP address. A rule of `allow`
    /// must allow them.
    pub host: HostPattern,
    /// Name of the header. If code sets it, the proxy replaces its value.
    pub header: String,
    /// Value of the header, for example `Bearer …`.
    pub value: EgressSecret,
    /// Whether the secret is also added to unencrypted requests to other machines.
    #[serde(default)]
    pub allow_http: bool,
}

/// A rule that was checked.
#[derive(Clone, Debug)]
pub(crate) struct SecretHeader {
    pub(crate) host: HostPattern,
    pub(crate) name: HeaderName,
    /// Marked as sensitive, so that its `Debug` does not show it.
    pub(crate) value: HeaderValue,
    pub(crate) allow_http: bool,
}

/// Headers that the proxy or HTTP sets.
const OWN: [&str; 12] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

impl EgressSecret {
    /// Wraps a value.
    pub fn new(value: impl Into<Box<str>>) -> Self {
        Self(value.into())
    }

    /// Returns the size of the value in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Checks that the value can be part of a header; the error does not contain it.
    pub fn check(&self) -> Result<(), &'static str> {
        self.read().map(drop)
    }

    /// Returns the value of a header, marked as sensitive, so that its `Debug` does not show it.
    pub(crate) fn read(&self) -> Result<HeaderValue, &'static str> {
        let mut value = HeaderValue::from_str(&self.0).map_err(|_| {
            "its value contains characters that are invalid in a header; use visible ASCII characters \
             and blanks"
        })?;
        if value.is_empty() {
            return Err("its value is empty; set the secret");
        }
        value.set_sensitive(true);
        Ok(value)
    }
}

impl SecretRule {
    /// Checks the header; the error does not contain its value.
    pub(crate) fn read(&self) -> Result<SecretHeader, &'static str> {
        let name: HeaderName = self
            .header
            .parse()
            .map_err(|_| "it is not a valid header name; use letters, digits and `-`")?;
        if OWN.contains(&name.as_str()) {
            return Err("it is set automatically; use another header");
        }
        Ok(SecretHeader {
            host: self.host.clone(),
            name,
            value: self.value.read()?,
            allow_http: self.allow_http,
        })
    }
}

impl fmt::Debug for EgressSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl fmt::Display for EgressSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(header: &str, value: &str) -> SecretRule {
        SecretRule {
            host: "a.example".parse().unwrap(),
            header: header.to_owned(),
            value: EgressSecret::new(value),
            allow_http: false,
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let rule = rule("Authorization", "Bearer hunter2");
        let read = rule.read().unwrap();
        let shown = format!("{rule:?} {read:?} {}", rule.value);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(read.value.to_str().unwrap(), "Bearer hunter2");
    }

    #[test]
    fn invalid_headers_are_errors_without_the_value() {
        for (header, value) in [
            ("a b", "hunter2"),
            ("Host", "hunter2"),
            ("x", "hunter2\r\na: b"),
            ("x", ""),
        ] {
            let error = rule(header, value).read().unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
