//! Times and sizes as they are written in a configuration.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use crate::size::Size;

/// Units of time, the longest first.
const UNITS: [(&str, f64); 4] = [("h", 3600.0), ("m", 60.0), ("ms", 0.001), ("s", 1.0)];

/// A time: a number of seconds, or a number with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) Duration);

impl Time {
    pub(super) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}s", self.0.as_secs_f64())
    }
}

fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let unit = if unit.is_empty() { "s" } else { unit };
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a time, such as `60` (seconds), `1.5`, `90s`, `20m` or `500ms`,")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Time, E> {
        Ok(Time(Duration::from_secs(seconds)))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Time, E> {
        let time = Duration::try_from_secs_f64(seconds);
        time.map(Time)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Float(seconds), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        time(text)
            .map(Time)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.subsec_nanos() == 0 {
            serializer.serialize_u64(self.0.as_secs())
        } else {
            serializer.serialize_f64(self.0.as_secs_f64())
        }
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time: a number of seconds, or a number and `h`, `m`, `s` or `ms`.",
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)? *(h|m|s|ms)?$"}],
        })
    }
}

/// A number of bytes, or a number with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bytes(pub(crate) u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesVisitor)
    }
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a size, such as `512MiB`, `2GB` or a number of bytes,")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<Bytes, E> {
        Ok(Bytes(bytes))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        let size: Result<Size, _> = text.parse();
        size.map(|size| Bytes(size.0))
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

impl Serialize for Bytes {
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

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size: a number of bytes, or a number and `KiB`, `MiB`, `GiB`, `TiB` (of 1024) or `kB`, `MB`, `GB`, `TB` (of 1000).",
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)? *([kKmMgGtT][iI]?)?[bB]?$"}],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn times_are_numbers_of_any_kind_or_have_units() {
        for (written, milliseconds) in [
            (json!(60), 60_000),
            (json!(1.5), 1500),
            (json!("90s"), 90_000),
            (json!("20m"), 1_200_000),
            (json!("0.5h"), 1_800_000),
            (json!("250 ms"), 250),
            (json!("7"), 7000),
        ] {
            let time: Time = from_value(written.clone()).unwrap();
            assert_eq!(time.0.as_millis(), milliseconds, "{written}");
        }
        for written in [
            json!(-1),
            json!("soon"),
            json!("5 weeks"),
            json!(""),
            json!("-1s"),
            json!(true),
        ] {
            assert!(from_value::<Time>(written.clone()).is_err(), "{written}");
        }
    }

    #[test]
    fn a_time_and_a_size_are_written_as_they_are_read() {
        for written in [json!(60), json!(0.25)] {
            let time: Time = from_value(written.clone()).unwrap();
            assert_eq!(to_value(time).unwrap(), written);
        }
        for (written, shown) in [
            (json!(1000), json!(1000)),
            (json!("512MiB"), json!("512MiB")),
            (json!(1_u64 << 31), json!("2GiB")),
            (json!("1.5KiB"), json!(1536)),
        ] {
            let size: Bytes = from_value(written.clone()).unwrap();
            assert_eq!(to_value(size).unwrap(), shown);
        }
    }
}
