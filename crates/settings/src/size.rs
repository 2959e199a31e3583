//! Sizes as people write and read them: `512MiB`, `2GB`, `1.5GiB`, plain bytes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// Units by their names in lower case; those with an `i` count in 1024, the others in 1000, as
/// standards have it.
const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("b", 1),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// A number of bytes. It is displayed rounded, for people, and serialized exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(
    /// The bytes.
    pub u64,
);

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; write a number and a unit such as `512MiB`, `2GB` or `1.5GiB`")]
pub struct ParseSizeError(String);

impl FromStr for Size {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, ParseSizeError> {
        parse(text)
            .map(Self)
            .ok_or_else(|| ParseSizeError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 9 || fraction.contains('.') {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(factor)?;
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(factor) / scale;
    whole.checked_add(u64::try_from(part).ok()?)
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 1024 {
            return write!(f, "{} {}", self.0, if self.0 == 1 { "byte" } else { "bytes" });
        }
        let mut tenths = u128::from(self.0) * 10 / 1024;
        let mut unit = 0;
        while tenths >= 10 * 1024 && unit + 1 < NAMES.len() {
            tenths /= 1024;
            unit += 1;
        }
        match tenths % 10 {
            0 => write!(f, "{} {}", tenths / 10, NAMES[unit]),
            tenth => write!(f, "{}.{tenth} {}", tenths / 10, NAMES[unit]),
        }
    }
}

impl Size {
    /// Writes a number of bytes as a size, for `#[serde(with = "Size")]`.
    pub fn serialize<N: Copy + TryInto<u64>, S: Serializer>(
        bytes: &N,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes = (*bytes).try_into().unwrap_or(u64::MAX);
        Serialize::serialize(&Self(bytes), serializer)
    }

    /// Reads a number of bytes that is written as a size.
    pub fn deserialize<'de, N: TryFrom<u64>, D: Deserializer<'de>>(deserializer: D) -> Result<N, D::Error> {
        let Self(bytes) = Deserialize::deserialize(deserializer)?;
        N::try_from(bytes).map_err(|_| D::Error::invalid_value(Unexpected::Unsigned(bytes), &SizeVisitor))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a size such as `512MiB`, `2GB` or a number of bytes")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(bytes))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
        text.parse()
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl Serialize for Size {
    /// Exactly: a unit only where no byte is lost.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        for (unit, bytes) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
            if self.0 > 0 && self.0.is_multiple_of(bytes) {
                return serializer.collect_str(&format_args!("{}{unit}", self.0 / bytes));
            }
        }
        serializer.serialize_u64(self.0)
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size: a number of bytes, or a number and `KiB`, `MiB`, `GiB`, `TiB` (of \
                            1024) or `kB`, `MB`, `GB`, `TB` (of 1000).",
            "anyOf": [{"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\d+(\.\d+)? *([kKmMgGtT][iI]?)?[bB]?$"}],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("1048576", 1 << 20),
            ("512MiB", 512 << 20),
            ("512 mib", 512 << 20),
            ("2GB", 2_000_000_000),
            ("1.5GiB", 3 << 29),
            ("0.5KiB", 512),
            ("7B", 7),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn an_invalid_size_is_rejected_with_an_example() {
        for text in [
            "",
            "MiB",
            "-1",
            "1.",
            "1..5",
            "1.2.3GB",
            "12 parsecs",
            "1e9",
            "99999999999999999999",
            "20000000TiB",
        ] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!(
            "lots".parse::<Size>().unwrap_err().to_string(),
            "`lots` is not a size; write a number and a unit such as `512MiB`, `2GB` or `1.5GiB`"
        );
    }

    #[test]
    fn sizes_read_well() {
        for (bytes, text) in [
            (1, "1 byte"),
            (12, "12 bytes"),
            (1024, "1 KiB"),
            (512 << 20, "512 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    #[test]
    fn a_size_is_written_without_losing_a_byte() {
        for (written, shown) in [
            (json!(1000), json!(1000)),
            (json!("512MiB"), json!("512MiB")),
            (json!(1_u64 << 31), json!("2GiB")),
            (json!("1.5KiB"), json!(1536)),
        ] {
            let size: Size = from_value(written.clone()).unwrap();
            assert_eq!(to_value(size).unwrap(), shown);
        }
    }
}
