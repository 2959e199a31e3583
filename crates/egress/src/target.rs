//! Hosts and ports that a request names: read strictly, in the one form that is compared and connected to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a host name in bytes, and of one of its labels (RFC 1035).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A host: a name in lowercase without a trailing dot, or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TargetHost {
    Name(String),
    Ip(IpAddr),
}

/// The host and the port of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EgressTarget {
    pub(crate) host: TargetHost,
    pub(crate) port: u16,
}

/// The reason why a host or a port is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The name has characters other than ASCII.
    #[error("it contains characters that are not ASCII; write the name in its punycode form, `xn--…`")]
    NotAscii,
    /// The name is not one of DNS.
    #[error(
        "it is not a host name: labels of letters, digits, `-` and `_` with at most 63 characters each, \
         at most 253 together, separated by dots"
    )]
    Name,
    /// The name looks like an IPv4 address in a notation that programs read differently.
    #[error(
        "it ends in a number but is not an IPv4 address; write all four decimal numbers, as in `192.0.2.1`"
    )]
    Number,
    /// The brackets contain something other than an IPv6 address.
    #[error("the brackets do not contain an IPv6 address; write it as in `[2001:db8::1]`")]
    Brackets,
    /// The port is missing or out of range.
    #[error("it does not have a valid port; write a number from 1 to 65535 after the `:`")]
    Port,
}

impl TargetHost {
    /// Reads a host as it is written in a URL: an IPv6 address is in brackets.
    pub(crate) fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Brackets)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Brackets)?;
            return Ok(Self::Ip(address.into()));
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        // The standard library reads only the canonical notation.
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Ip(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            (1..=MAX_LABEL).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if name.len() > MAX_NAME || !name.split('.').all(is_label) {
            return Err(HostError::Name);
        }
        // Resolvers read `127.1`, `2130706433` and `0x7f.1` as addresses (`inet_aton`).
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit());
        let is_hex = last
            .strip_prefix("0x")
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if is_number || is_hex {
            return Err(HostError::Number);
        }
        Ok(Self::Name(name))
    }

    pub(crate) fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Ip(address) => Some(*address),
        }
    }
}

impl EgressTarget {
    /// Reads `host:port`; without a port, the default one is used, if there is one.
    pub(crate) fn parse(text: &str, default_port: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = split_port(text);
        let port = match port {
            Some(digits) => read_port(digits)?,
            None => default_port.ok_or(HostError::Port)?,
        };
        Ok(Self {
            host: TargetHost::parse(host)?,
            port,
        })
    }

    /// Returns the value of a `Host` header; the default port of the scheme is left out.
    pub(crate) fn host_header(&self, default_port: u16) -> String {
        if self.port == default_port {
            self.host.to_string()
        } else {
            self.to_string()
        }
    }
}

/// Splits `host:port`. The colons of an IPv6 address are in brackets.
pub(crate) fn split_port(text: &str) -> (&str, Option<&str>) {
    let start = text.rfind(']').map_or(0, |bracket| bracket + 1);
    match text[start..].find(':') {
        Some(colon) => (&text[..start + colon], Some(&text[start + colon + 1..])),
        None => (text, None),
    }
}

/// Reads a port; a sign, blanks and leading zeros are errors.
pub(crate) fn read_port(digits: &str) -> Result<u16, HostError> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse() {
        Ok(port) if plain => Ok(port),
        _ => Err(HostError::Port),
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Ip(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Ip(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

impl fmt::Display for EgressTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_and_trailing_dot() {
        let host = TargetHost::parse("API.Example.COM.").unwrap();
        assert_eq!(host, TargetHost::Name("api.example.com".to_owned()));
        assert_eq!(
            TargetHost::parse("xn--bcher-kva.example").unwrap().to_string(),
            "xn--bcher-kva.example"
        );
    }

    #[test]
    fn other_notations_of_ipv4_addresses_are_errors() {
        for text in [
            "127.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "127.0.0.01",
            "0177.0.0.1",
            "1.2.3.4.",
            "0x",
        ] {
            assert_eq!(TargetHost::parse(text), Err(HostError::Number), "{text}");
        }
        assert_eq!(
            TargetHost::parse("127.0.0.1").unwrap().ip().unwrap().to_string(),
            "127.0.0.1"
        );
    }

    #[test]
    fn invalid_hosts_are_errors() {
        for text in [
            "",
            ".",
            "a..b",
            ".a",
            "a b",
            "a/b",
            "a@b",
            "a%2eb",
            "*.a",
            "a\r\nb",
            "::1",
            &"a".repeat(64),
        ] {
            assert_eq!(TargetHost::parse(text), Err(HostError::Name), "{text}");
        }
        assert_eq!(TargetHost::parse("bücher.example"), Err(HostError::NotAscii));
        for text in ["[::1", "[fe80::1%eth0]", "[127.0.0.1]", "[]"] {
            assert_eq!(TargetHost::parse(text), Err(HostError::Brackets), "{text}");
        }
    }

    #[test]
    fn ports_are_plain_numbers() {
        let read = |text| EgressTarget::parse(text, Some(80)).map(|target| target.to_string());
        assert_eq!(read("a.example").unwrap(), "a.example:80");
        assert_eq!(read("[::1]:8000").unwrap(), "[::1]:8000");
        assert_eq!(read("[::1]").unwrap(), "[::1]:80");
        for text in [
            "a:", "a:0", "a:65536", "a:+80", "a: 80", "a:080", "a:80:80", "[::1]:",
        ] {
            assert_eq!(read(text), Err(HostError::Port), "{text}");
        }
        assert_eq!(EgressTarget::parse("a.example", None), Err(HostError::Port));
        assert_eq!(
            EgressTarget::parse("a.example:443", None)
                .unwrap()
                .host_header(443),
            "a.example"
        );
    }
}
