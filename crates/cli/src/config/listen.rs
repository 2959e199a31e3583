//! Address of a server.

use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// Address at which a server listens: an address and a port, or a port on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) SocketAddr);

/// A text that is not a valid address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid address `{0}`: expected an address and a port, such as `127.0.0.1:8080`, or a port")]
pub(crate) struct ListenError(String);

impl Default for Listen {
    fn default() -> Self {
        Self(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let loopback = |port: &str| {
            port.parse()
                .ok()
                .map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        };
        let address = match text.strip_prefix("localhost:") {
            Some(port) => loopback(port),
            None => text.parse().ok().or_else(|| loopback(text)),
        };
        address.map(Self).ok_or_else(|| ListenError(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListenVisitor)
    }
}

struct ListenVisitor;

impl Visitor<'_> for ListenVisitor {
    type Value = Listen;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an address and a port, such as `127.0.0.1:8080`, or a port")
    }

    fn visit_u64<E: Error>(self, port: u64) -> Result<Listen, E> {
        let known = u16::try_from(port).map(|port| Listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        known.map_err(|_| E::invalid_value(Unexpected::Unsigned(port), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Listen, E> {
        text.parse()
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl JsonSchema for Listen {
    fn schema_name() -> Cow<'static, str> {
        "Listen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An address and a port, or a port on loopback.",
            "anyOf": [{"type": "integer", "minimum": 0, "maximum": 65535}, {"type": "string"}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_several_ways() {
        for (text, address) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:9", "127.0.0.1:9"),
            ("8080", "127.0.0.1:8080"),
        ] {
            assert_eq!(text.parse(), Ok(Listen(address.parse().unwrap())), "{text}");
        }
        assert_eq!(
            "here".parse::<Listen>().unwrap_err().to_string(),
            "invalid address `here`: expected an address and a port, such as `127.0.0.1:8080`, or a port"
        );
        for text in ["", "127.0.0.1", "65536", "localhost:", "example.com:80"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
