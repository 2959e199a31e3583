//! Headers of one session, whose values its code never has.

use super::host::HostPattern;
use super::secret::{EgressSecret, SecretRule};

/// Headers that the proxy sets in requests of a session to some hosts. A rule does not allow its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRule {
    /// Hosts whose requests get the headers: a name, `*.domain`, or an IP address.
    pub host: HostPattern,
    /// Names and values of the headers; none of them exempts the host from less specific rules.
    pub headers: Vec<(String, EgressSecret)>,
}

impl HeaderRule {
    /// Returns each header as a secret of the rule's hosts.
    pub(crate) fn secrets(&self, allow_http: bool) -> impl Iterator<Item = SecretRule> {
        self.headers.iter().map(move |(header, value)| SecretRule {
            host: self.host.clone(),
            header: header.clone(),
            value: value.clone(),
            allow_http,
        })
    }
}
