//! The maximum rate of a connector's requests.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A maximum number of requests in a time, such as `120/min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub(crate) count: u32,
    unit: &'static str,
    pub(crate) per: Duration,
}

const UNITS: [(&str, u64); 3] = [("s", 1), ("min", 60), ("h", 3600)];

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let rate = parts.and_then(|(count, unit)| {
            let (unit, seconds) = UNITS.into_iter().find(|(name, _)| *name == unit.trim())?;
            let count = count.trim().parse().ok().filter(|count| *count > 0)?;
            let per = Duration::from_secs(seconds);
            Some(Self { count, unit, per })
        });
        rate.ok_or_else(|| {
            format!("`{text}` is not a rate; write a number and a unit such as `5/s`, `120/min` or `1000/h`")
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.unit)
    }
}

impl Serialize for Rate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A maximum number of requests per `s`, `min` or `h`.",
            "type": "string",
            "pattern": r"^ *[1-9]\d* */ *(s|min|h) *$",
        })
    }
}
