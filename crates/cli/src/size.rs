//! Sizes as people write and read them: `512MiB`, `2GB`, `1.5GiB`, plain bytes.

use std::fmt;
use std::str::FromStr;

/// Units by their names in lower case; those with an `i` count in 1024, the others in 1000, as standards have it.
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

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) u64);

/// A text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; write a number and a unit such as `512MiB`, `2GB` or `1.5GiB`")]
pub(crate) struct ParseSizeError(String);

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

#[cfg(test)]
mod tests {
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
    fn what_is_not_a_size_is_refused_with_an_example() {
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
}
