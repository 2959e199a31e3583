//! Destinations that one session gives up: a restriction narrows a policy, and never widens it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use cellblock_settings::translated_v4;

use super::host::HostPattern;
use crate::target::{HostError, TargetHost};

/// Length of the prefix of IPv4 addresses as IPv6 ones.
const MAPPED: u8 = 96;

/// Destinations of a policy that a session may not reach. The default denies none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressRestriction {
    /// Denied destinations.
    pub deny: Vec<Destination>,
    /// Exceptions: denied destinations that the session may reach.
    pub except: Vec<Destination>,
}

/// Hosts or addresses that a restriction is about: `api.example.com`, `*.example.com`, `192.0.2.1`
/// or `10.0.0.0/8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Hosts by their names.
    Hosts(HostPattern),
    /// Addresses, also those that a name resolves to.
    Addresses(AddressBlock),
}

/// A block of addresses in CIDR notation. Each of `0.0.0.0/0` and `::/0` contains every address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressBlock {
    /// The address with zeros after the prefix.
    first: IpAddr,
    /// Length of the prefix in bits.
    bits: u8,
}

/// The reason why a destination is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// The host is invalid.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The text before the slash is not an address.
    #[error("it does not begin with an IP address; write a block as in `10.0.0.0/8`")]
    Address,
    /// The prefix is not a number, or too long.
    #[error("its prefix is not a number of at most {most} bits; write a block as in `10.0.0.0/8`")]
    Prefix {
        /// Length of an address in bits.
        most: u8,
    },
}

impl EgressRestriction {
    /// Returns the restriction of a session to some hosts.
    pub fn to(hosts: impl IntoIterator<Item = HostPattern>) -> Self {
        let first = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self {
            deny: vec![Destination::Addresses(AddressBlock { first, bits: 0 })],
            except: hosts.into_iter().map(Destination::Hosts).collect(),
        }
    }

    /// Returns whether a session may send requests to a host. A name is decided on before it is
    /// resolved, because a query for it would be a way out.
    pub(crate) fn permits_host(&self, host: &TargetHost) -> bool {
        let names = |it: &Destination| it.covers(host) || (host.ip().is_none() && it.is_everything());
        self.except.iter().any(names) || !self.deny.iter().any(names)
    }

    /// Returns whether a session may connect to an address of a host.
    pub(crate) fn permits_address(&self, host: &TargetHost, address: IpAddr) -> bool {
        let literal = TargetHost::Ip(address);
        let excepts = |it: &Destination| it.covers(host) || it.covers(&literal);
        self.except.iter().any(excepts) || !self.deny.iter().any(|it| it.covers(&literal))
    }
}

impl Destination {
    /// Returns whether it contains every address.
    pub fn is_everything(&self) -> bool {
        matches!(self, Self::Addresses(AddressBlock { bits: 0, .. }))
    }

    fn covers(&self, host: &TargetHost) -> bool {
        match self {
            Self::Hosts(pattern) => pattern.covers(host),
            Self::Addresses(block) => host.ip().is_some_and(|address| block.contains(address)),
        }
    }
}

impl AddressBlock {
    /// Returns whether it contains an address, or the IPv4 address that it stands for.
    fn contains(self, address: IpAddr) -> bool {
        if self.bits == 0 {
            return true;
        }
        let is_in = |address: IpAddr| masked(address, self.bits) == Some(self.first);
        let translated = match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => translated_v4(address),
        };
        is_in(address) || translated.is_some_and(|address| is_in(address.into()))
    }
}

/// Returns the address with zeros after a prefix, which is at most as long as the address.
fn masked(address: IpAddr, bits: u8) -> Option<IpAddr> {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(u32::BITS.checked_sub(bits)?).unwrap_or(0);
            Some(Ipv4Addr::from_bits(address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(u128::BITS.checked_sub(bits)?).unwrap_or(0);
            Some(Ipv6Addr::from_bits(address.to_bits() & mask).into())
        }
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        if text.contains('/') || text.parse::<IpAddr>().is_ok() {
            return Ok(Self::Addresses(text.parse()?));
        }
        Ok(Self::Hosts(text.parse()?))
    }
}

impl FromStr for AddressBlock {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let (address, prefix) = text
            .split_once('/')
            .map_or((text, None), |(it, bits)| (it, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| DestinationError::Address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = prefix.map_or(Some(most), |bits| bits.parse().ok());
        let first = bits.and_then(|bits| Some((masked(address, bits)?, bits)));
        let (first, bits) = first.ok_or(DestinationError::Prefix { most })?;
        let mapped = match first {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => address.to_ipv4_mapped().zip(bits.checked_sub(MAPPED)),
        };
        // Connections have the IPv4 address.
        Ok(mapped.map_or(Self { first, bits }, |(address, bits)| Self {
            first: address.into(),
            bits,
        }))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(pattern) => pattern.fmt(formatter),
            Self::Addresses(AddressBlock { first, bits }) => write!(formatter, "{first}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restriction(deny: &[&str], except: &[&str]) -> EgressRestriction {
        let read = |all: &[&str]| all.iter().map(|it| it.parse().unwrap()).collect();
        EgressRestriction {
            deny: read(deny),
            except: read(except),
        }
    }

    fn host(text: &str) -> TargetHost {
        TargetHost::parse(text).unwrap()
    }

    #[test]
    fn a_block_denies_its_addresses_however_they_are_written() {
        let denied = restriction(&["10.1.2.3/8", "192.0.2.7", "2001:db8::/32"], &[]);
        let permits = |address: &str| denied.permits_address(&host("a.example"), address.parse().unwrap());
        for address in [
            "10.255.0.1",
            "192.0.2.7",
            "2001:db8:1::1",
            "::ffff:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::1",
        ] {
            assert!(!permits(address), "{address}");
        }
        for address in ["11.0.0.1", "192.0.2.8", "2001:db9::1", "::ffff:11.0.0.1"] {
            assert!(permits(address), "{address}");
        }
        assert!(!denied.permits_host(&host("10.9.9.9")));
        assert!(denied.permits_host(&host("a.example")), "its addresses decide");
    }

    #[test]
    fn with_everything_denied_only_exceptions_are_reached() {
        for everything in ["0.0.0.0/0", "::/0"] {
            let denied = restriction(&[everything], &["*.a.example", "192.0.2.0/24"]);
            let address = |text: &str| text.parse().unwrap();
            assert!(denied.permits_host(&host("x.a.example")));
            assert!(denied.permits_address(&host("x.a.example"), address("203.0.113.1")));
            assert!(!denied.permits_host(&host("b.example")), "not even resolved");
            assert!(denied.permits_host(&host("192.0.2.9")));
            assert!(!denied.permits_host(&host("[2001:db8::1]")));
            assert!(!denied.permits_address(&host("198.51.100.1"), address("198.51.100.1")));
        }
    }

    #[test]
    fn an_exception_of_everything_contains_names() {
        let open = restriction(&["0.0.0.0/0"], &["0.0.0.0/0"]);
        assert!(open.permits_host(&host("a.example")));
        assert!(open.permits_address(&host("a.example"), "203.0.113.1".parse().unwrap()));
    }

    #[test]
    fn a_block_of_mapped_addresses_is_one_of_ipv4() {
        let denied = restriction(&["::ffff:10.0.0.0/104", "::ffff:192.0.2.7"], &[]);
        let permits = |address: &str| denied.permits_address(&host("a.example"), address.parse().unwrap());
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "192.0.2.7"] {
            assert!(!permits(address), "{address}");
        }
        assert!(permits("11.0.0.1"));
        assert_eq!(denied.deny.first().unwrap().to_string(), "10.0.0.0/8");
    }

    #[test]
    fn a_restriction_to_hosts_denies_all_others() {
        let only = EgressRestriction::to(["a.example", "192.0.2.9"].map(|it| it.parse().unwrap()));
        for (text, permitted) in [
            ("a.example", true),
            ("192.0.2.9", true),
            ("x.a.example", false),
            ("192.0.2.8", false),
            ("[2001:db8::1]", false),
        ] {
            assert_eq!(only.permits_host(&host(text)), permitted, "{text}");
        }
        assert!(only.permits_address(&host("a.example"), "203.0.113.1".parse().unwrap()));
    }

    #[test]
    fn what_is_neither_a_host_nor_a_block_is_an_error() {
        for (text, error) in [
            ("a.example/8", DestinationError::Address),
            ("10.0.0.0/33", DestinationError::Prefix { most: 32 }),
            ("::/129", DestinationError::Prefix { most: 128 }),
            ("10.0.0.0/x", DestinationError::Prefix { most: 32 }),
        ] {
            assert_eq!(text.parse::<Destination>(), Err(error), "{text}");
        }
        assert!("2130706433".parse::<Destination>().is_err());
    }
}
