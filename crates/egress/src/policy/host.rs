//! Hosts of a rule: one name, the names below a domain, or one IP address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::target::{HostError, TargetHost};

/// The hosts that a rule is about: `api.example.com`, `*.example.com` (every name below
/// `example.com`, but not `example.com` itself), or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostPattern(pub(crate) Pattern);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Exact(String),
    /// Every name that ends in a dot and this one.
    Below(String),
    Ip(IpAddr),
}

impl HostPattern {
    /// Returns whether the pattern covers a host.
    pub(crate) fn covers(&self, host: &TargetHost) -> bool {
        match (&self.0, host) {
            (Pattern::Exact(allowed), TargetHost::Name(name)) => allowed == name,
            (Pattern::Below(domain), TargetHost::Name(name)) => is_below(name, domain),
            (Pattern::Ip(allowed), TargetHost::Ip(address)) => allowed == address,
            _ => false,
        }
    }

    /// Returns a number that is larger the fewer hosts the pattern covers, of patterns that cover a
    /// common host.
    pub(crate) fn specificity(&self) -> usize {
        match &self.0 {
            Pattern::Below(domain) => domain.len(),
            Pattern::Exact(_) | Pattern::Ip(_) => usize::MAX,
        }
    }

    /// Returns whether some host is covered by both patterns.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Pattern::Exact(name), Pattern::Below(domain))
            | (Pattern::Below(domain), Pattern::Exact(name)) => is_below(name, domain),
            (Pattern::Below(one), Pattern::Below(two)) => {
                one == two || is_below(one, two) || is_below(two, one)
            }
            (one, two) => one == two,
        }
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain)
        .and_then(|rest| rest.strip_suffix('.'))
        .is_some_and(|labels| !labels.is_empty())
}

impl FromStr for HostPattern {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if let Some(domain) = text.strip_prefix("*.") {
            return match TargetHost::parse(domain)? {
                TargetHost::Name(domain) => Ok(Self(Pattern::Below(domain))),
                TargetHost::Ip(_) => Err(HostError::Name),
            };
        }
        // People write an IPv6 address without brackets where no port can follow.
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(Pattern::Ip(address)));
        }
        match TargetHost::parse(text)? {
            TargetHost::Name(name) => Ok(Self(Pattern::Exact(name))),
            TargetHost::Ip(address) => Ok(Self(Pattern::Ip(address))),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map_err(|error: HostError| format!("invalid host `{text}`: {error}"))
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Pattern::Exact(name) => formatter.write_str(name),
            Pattern::Below(domain) => write!(formatter, "*.{domain}"),
            Pattern::Ip(address) => write!(formatter, "{}", TargetHost::Ip(*address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, host: &str) -> bool {
        let pattern: HostPattern = pattern.parse().unwrap();
        pattern.covers(&TargetHost::parse(host).unwrap())
    }

    #[test]
    fn a_star_covers_every_name_below_a_domain_but_not_the_domain() {
        assert!(covers("*.example.com", "a.example.com"));
        assert!(covers("*.Example.com.", "a.b.EXAMPLE.com."));
        for host in [
            "example.com",
            "aexample.com",
            "a.example.com.evil.example",
            "example.org",
        ] {
            assert!(!covers("*.example.com", host), "{host}");
        }
    }

    #[test]
    fn an_address_covers_only_itself() {
        assert!(covers("127.0.0.1", "127.0.0.1"));
        assert!(covers("::1", "[0:0::1]"));
        assert!(!covers("127.0.0.1", "[::ffff:127.0.0.1]"));
        assert!(!covers("*.0.0.a", "10.0.0.1"));
    }

    #[test]
    fn stars_elsewhere_and_odd_addresses_are_errors() {
        for text in [
            "*",
            "a.*.example",
            "*example.com",
            "**.example.com",
            "*.127.0.0.1",
            "127.1",
            "*.1",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_overlap_when_a_host_is_covered_by_both() {
        let overlaps = |one: &str, two: &str| {
            let (one, two): (HostPattern, HostPattern) = (one.parse().unwrap(), two.parse().unwrap());
            assert_eq!(one.overlaps(&two), two.overlaps(&one));
            one.overlaps(&two)
        };
        assert!(overlaps("a.example.com", "*.example.com"));
        assert!(overlaps("*.a.example.com", "*.example.com"));
        assert!(overlaps("127.0.0.1", "127.0.0.1"));
        assert!(!overlaps("example.com", "*.example.com"));
        assert!(!overlaps("a.example", "b.example"));
    }
}
