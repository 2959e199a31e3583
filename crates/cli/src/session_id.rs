//! The name of a session.

use std::fmt;
use std::str::FromStr;

use cellblock_interpreter::mint;
use serde::{Deserialize, Serialize};

use crate::session_error::SessionError;

/// A session's id: 20 characters of `0-9` and `a-f`, and so also the name of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct SessionId(String);

impl SessionId {
    /// Number of characters, of four random bits each: enough that none is guessed or given twice.
    pub(crate) const LENGTH: usize = 20;

    /// One that was never given before.
    pub(crate) fn random() -> Self {
        let mut id = mint("");
        id.truncate(Self::LENGTH);
        Self(id)
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = SessionError;

    fn from_str(text: &str) -> Result<Self, SessionError> {
        let valid = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == Self::LENGTH && text.bytes().all(valid) {
            return Ok(Self(text.to_owned()));
        }
        Err(SessionError::NoId {
            text: text.to_owned(),
        })
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionError;

    fn try_from(text: String) -> Result<Self, SessionError> {
        text.parse()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_read_back() {
        let one = SessionId::random();
        assert_ne!(one, SessionId::random());
        assert_eq!(one.as_str().parse::<SessionId>().unwrap(), one);
    }

    #[test]
    fn invalid_ids_are_rejected_and_no_id_is_a_path() {
        let long = "0".repeat(21);
        for text in [
            "",
            ".",
            "..",
            "../../../../../etc/ab",
            "0123456789012345678/",
            "0123456789ABCDEF0123",
            "0123456789abcdef012\n",
            "０１",
            &long,
        ] {
            assert!(text.parse::<SessionId>().is_err(), "{text:?}");
        }
    }
}
