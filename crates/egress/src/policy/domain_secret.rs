//! Secrets that code names by placeholders, so that it can put them where a host expects them.

use super::host::HostPattern;
use super::secret::EgressSecret;

/// A secret of a session for one host. Code has a placeholder in an environment variable; the proxy puts
/// the value in its place in the headers of requests to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSecret {
    /// The host, which a rule of `allow` must allow.
    pub host: HostPattern,
    /// Name of the environment variable. Secrets of several hosts can have the same name.
    pub name: String,
    /// The value.
    pub value: EgressSecret,
}
