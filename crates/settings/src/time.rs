//! Times with units: `60`, `1.5`, `90s`, `20m`, `500ms`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// Units of time, the longest first.
const UNITS: [(&str, f64); 4] = [("h", 3600.0), ("m", 60.0), ("ms", 0.001), ("s", 1.0)];

/// A time: a number of seconds, or a number with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(
    /// The time.
    pub Duration,
);

impl Time {
    /// Writes a duration as a time, for `#[serde(with = "Time")]`.
    pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        Serialize::serialize(&Self(*time), serializer)
    }

    /// Reads a duration that is written as a time.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        <Self as Deserialize>::deserialize(deserializer).map(|time| time.0)
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
        formatter.write_str("a time such as `60` (seconds), `1.5`, `90s`, `20m` or `500ms`")
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<Time, E> {
        Ok(Time(Duration::from_secs(seconds)))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Time, E> {
        let time = Duration::try_from_secs_f64(seconds);
        time.map(Time)
            .map_err(|_| E::invalid_value(Unexpected::Float(seconds), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        time(text)
            .map(Time)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
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
            "anyOf": [{"type": "number", "minimum": 0},
                {"type": "string", "pattern": r"^\d+(\.\d+)? *(h|m|s|ms)?$"}],
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
    fn a_time_is_written_as_it_is_read() {
        for written in [json!(60), json!(0.25)] {
            let time: Time = from_value(written.clone()).unwrap();
            assert_eq!(to_value(time).unwrap(), written);
        }
    }
}
