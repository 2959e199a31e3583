//! The id of an artifact: the sha256 of its bytes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// The sha256 of an artifact's bytes, written as 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId([u8; 32]);

/// A text that is not a valid artifact id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid artifact id of {actual} characters: must be exactly 64 lowercase hexadecimal digits")]
pub struct ParseIdError {
    actual: usize,
}

impl ArtifactId {
    /// Returns the id of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// Wraps a sha256 that was computed incrementally elsewhere.
    pub const fn from_sha256(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    pub(crate) fn finish(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArtifactId({self})")
    }
}

impl FromStr for ArtifactId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let error = || ParseIdError {
            actual: text.chars().count(),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(error());
        }
        let mut id = [0; 32];
        for (byte, [high, low]) in id.iter_mut().zip(pairs) {
            *byte = digit(*high)
                .zip(digit(*low))
                .map(|(high, low)| high << 4 | low)
                .ok_or_else(error)?;
        }
        Ok(Self(id))
    }
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl Serialize for ArtifactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ArtifactId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for ArtifactId {
    fn schema_name() -> Cow<'static, str> {
        "ArtifactId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "The sha256 of the artifact's bytes.",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_id_of_no_bytes_is_their_sha256() {
        assert_eq!(ArtifactId::of(b"").to_string(), EMPTY);
    }

    #[test]
    fn other_texts_are_not_ids() {
        let upper = EMPTY.to_uppercase();
        let long = format!("{EMPTY}00");
        let wide = format!("{}é", &EMPTY[2..]);
        for text in [
            "",
            "e3",
            &EMPTY[1..],
            &upper,
            &long,
            &wide,
            &EMPTY.replace('b', "g"),
        ] {
            assert_eq!(
                text.parse::<ArtifactId>(),
                Err(ParseIdError {
                    actual: text.chars().count()
                }),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_name_round_trips_as_text_and_as_json(bytes: [u8; 32]) {
            let id = ArtifactId(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            let json = serde_json::to_string(&id).expect("an id is a string");
            prop_assert_eq!(serde_json::from_str::<ArtifactId>(&json).ok(), Some(id));
        }

        #[test]
        fn any_text_parses_or_is_rejected(text: String) {
            prop_assert!(text.parse::<ArtifactId>().is_err());
        }
    }
}
