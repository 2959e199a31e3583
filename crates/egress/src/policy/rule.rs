//! Rules of the allow-list: a host, ports and methods.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::host::HostPattern;
use crate::target::{HostError, TargetHost, read_port, split_port};

/// Ports of a rule that names none: those of `http://` and `https://`.
pub(crate) const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Hosts that code may send requests to. As text, `host` or `host:port`; in a configuration, that
/// text or a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(with = "RuleForm")]
pub struct AllowRule {
    /// Hosts that the rule allows: a name, `*.domain`, or an IP address. Only an IP address allows
    /// connections to a private address.
    pub host: HostPattern,
    /// Ports that the rule allows.
    pub ports: Vec<u16>,
    /// Methods that the rule allows; all if absent. HTTPS requests to such a host are decrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
}

/// The reason why a rule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The host or the port is invalid.
    #[error("invalid egress rule `{rule}`: {why}")]
    Host {
        /// The rule's text.
        rule: String,
        /// The problem.
        why: HostError,
    },
    /// The host names a port, and the rule has others.
    #[error("invalid egress rule `{rule}`: both `host` and `ports` name a port; remove one of them")]
    TwoPorts {
        /// The rule's host.
        rule: String,
    },
    /// The rule allows nothing.
    #[error("invalid egress rule `{rule}`: `{field}` is empty; remove it to use the default")]
    Empty {
        /// The rule's host.
        rule: String,
        /// The empty list.
        field: &'static str,
    },
    /// A port is out of range.
    #[error("invalid egress rule `{rule}`: port 0 is not valid; use a number from 1 to 65535")]
    PortZero {
        /// The rule's host.
        rule: String,
    },
    /// A method is invalid.
    #[error(
        "invalid egress rule `{rule}`: `{method}` is not a method; write it in capitals, as in `GET`, \
         without `CONNECT`"
    )]
    Method {
        /// The rule's host.
        rule: String,
        /// The method.
        method: String,
    },
}

/// Contents of a configuration.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "the short form is read by `RuleVisitor`, and described here"
)]
enum RuleForm {
    /// `host` or `host:port`.
    Short(String),
    /// A rule with ports and methods.
    Full(FullRule),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FullRule {
    /// Hosts that the rule allows: a name, `*.domain`, or an IP address, optionally with a port.
    host: String,
    /// Ports that the rule allows, by default 80 and 443.
    ports: Option<Vec<u16>>,
    /// Methods that the rule allows, in capitals; all by default.
    methods: Option<Vec<String>>,
}

impl AllowRule {
    /// Returns whether the rule allows connections to a port of a host.
    pub(crate) fn allows(&self, host: &TargetHost, port: u16) -> bool {
        self.ports.contains(&port) && self.host.covers(host)
    }

    /// Returns whether the rule allows a method.
    pub(crate) fn allows_method(&self, method: &str) -> bool {
        match &self.methods {
            Some(methods) => methods.iter().any(|allowed| allowed == method),
            None => true,
        }
    }

    fn read(form: FullRule) -> Result<Self, RuleError> {
        let rule = || form.host.clone();
        let mut parsed: Self = form.host.parse()?;
        if let Some(ports) = form.ports {
            if ports.is_empty() {
                return Err(RuleError::Empty {
                    rule: rule(),
                    field: "ports",
                });
            }
            if ports.contains(&0) {
                return Err(RuleError::PortZero { rule: rule() });
            }
            if parsed.ports != DEFAULT_PORTS {
                return Err(RuleError::TwoPorts { rule: rule() });
            }
            parsed.ports = ports;
        }
        if let Some(methods) = form.methods {
            if methods.is_empty() {
                return Err(RuleError::Empty {
                    rule: rule(),
                    field: "methods",
                });
            }
            let valid = |method: &&String| {
                !method.is_empty()
                    && method.len() <= 32
                    && method
                        .bytes()
                        .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
                    && method.as_str() != "CONNECT"
            };
            if let Some(method) = methods.iter().find(|method| !valid(method)) {
                return Err(RuleError::Method {
                    rule: rule(),
                    method: method.clone(),
                });
            }
            parsed.methods = Some(methods);
        }
        Ok(parsed)
    }
}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = |why| RuleError::Host {
            rule: text.to_owned(),
            why,
        };
        // An IPv6 address without brackets has colons, but not a port.
        let bare = text.parse::<std::net::IpAddr>().is_ok();
        let (host, port) = if bare { (text, None) } else { split_port(text) };
        let ports = match port {
            Some(digits) => vec![read_port(digits).map_err(wrong)?],
            None => DEFAULT_PORTS.to_vec(),
        };
        Ok(Self {
            host: host.parse().map_err(wrong)?,
            ports,
            methods: None,
        })
    }
}

impl<'de> Deserialize<'de> for AllowRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RuleVisitor)
    }
}

/// Reads both forms. An untagged enum would hide what is wrong with a rule.
struct RuleVisitor;

impl<'de> de::Visitor<'de> for RuleVisitor {
    type Value = AllowRule;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a host such as `api.example.com`, or a mapping with `host`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<AllowRule, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<AllowRule, A::Error> {
        let form = FullRule::deserialize(de::value::MapAccessDeserializer::new(map))?;
        AllowRule::read(form).map_err(de::Error::custom)
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(methods) = &self.methods {
            write!(formatter, "{} ", methods.join(","))?;
        }
        write!(formatter, "{}", self.host)?;
        if self.ports != DEFAULT_PORTS {
            let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
            write!(formatter, ":{}", ports.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
