//! Policy for what code in a sandbox may reach, the secrets that the proxy adds, and how much may be
//! transferred.

mod domain_secret;
mod header_rule;
mod host;
mod restriction;
mod rule;
mod secret;

use http::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::target::TargetHost;
use host::Pattern;

pub use domain_secret::DomainSecret;
pub use header_rule::HeaderRule;
pub use host::HostPattern;
pub use restriction::{AddressBlock, Destination, DestinationError, EgressRestriction};
pub use rule::{AllowRule, RuleError};
pub use secret::{EgressSecret, SecretRule};

pub(crate) use rule::DEFAULT_PORTS;
pub(crate) use secret::SecretHeader;

/// The rules of a proxy. The default allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EgressPolicy {
    /// Hosts that code may send requests to.
    pub allow: Vec<AllowRule>,
    /// Headers with secret values, added to requests.
    pub secrets: Vec<SecretRule>,
    /// Limits of a session.
    pub quotas: EgressQuotas,
    /// Whether placeholders are also replaced in unencrypted requests to other machines.
    pub allow_http_domain_secrets: bool,
    /// Secrets of this session, which code names by placeholders. A configuration does not set them.
    #[serde(skip)]
    pub domain_secrets: Vec<DomainSecret>,
    /// Destinations that this session gives up. A configuration does not set it.
    #[serde(skip)]
    pub restriction: EgressRestriction,
    /// Headers that requests of this session get. Of the rules that cover a host, the one with the most
    /// specific pattern counts alone. A configuration does not set them.
    #[serde(skip)]
    pub headers: Vec<HeaderRule>,
    /// Whether the restriction and the headers can be replaced while the session runs. A configuration
    /// does not set it.
    #[serde(skip)]
    pub replaceable: bool,
}

/// Maximum amounts that a session may transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EgressQuotas {
    /// Maximum number of requests and tunnels; unlimited if absent.
    pub max_requests: Option<u64>,
    /// Maximum number of bytes sent and received, together; unlimited if absent.
    pub max_bytes: Option<u64>,
}

/// The reason why a policy is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A rule of `allow` is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The header of a secret is invalid.
    #[error("invalid egress secret `{header}` for `{host}`: {why}")]
    Secret {
        /// The secret's hosts.
        host: String,
        /// The secret's header, or its variable.
        header: String,
        /// The problem.
        why: &'static str,
    },
    /// No rule allows the hosts of a secret.
    #[error(
        "invalid egress secret `{header}` for `{host}`: no rule allows this host; add `{host}` to `allow`"
    )]
    NotAllowed {
        /// The secret's hosts.
        host: String,
        /// The secret's header, or its variable.
        header: String,
    },
}

impl EgressPolicy {
    /// Reads the rules of a command line: each is `host` or `host:port`.
    pub fn from_rules<I>(rules: I) -> Result<Self, PolicyError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let allow: Result<_, RuleError> = rules.into_iter().map(|rule| rule.as_ref().parse()).collect();
        Ok(Self {
            allow: allow?,
            ..Self::default()
        })
    }

    /// Returns whether a rule allows some host of a pattern.
    pub fn allows_some(&self, hosts: &HostPattern) -> bool {
        self.allow.iter().any(|rule| rule.host.overlaps(hosts))
    }

    /// Returns whether a rule names a host itself, and this session has not given it up for good.
    pub fn names(&self, host: &str) -> bool {
        let Ok(pattern) = host.parse::<HostPattern>() else {
            return false;
        };
        let host = match &pattern.0 {
            Pattern::Exact(name) => TargetHost::Name(name.clone()),
            Pattern::Ip(address) => TargetHost::Ip(*address),
            Pattern::Below(_) => return false,
        };
        let may_reach = self.replaceable || self.restriction.permits_host(&host);
        may_reach && self.allow.iter().any(|rule| rule.host == pattern)
    }

    /// Checks the secrets: their headers are valid, and rules allow their hosts.
    pub fn check(&self) -> Result<(), PolicyError> {
        self.secret_headers()?;
        self.session_headers()?;
        self.domain_values().map(drop)
    }

    pub(crate) fn secret_headers(&self) -> Result<Vec<SecretHeader>, PolicyError> {
        let read = |secret: &SecretRule| self.read(&secret.host, &secret.header, secret.read());
        self.secrets.iter().map(read).collect()
    }

    /// Returns the headers of each rule of the session.
    pub(crate) fn session_headers(&self) -> Result<Vec<(HostPattern, Vec<SecretHeader>)>, PolicyError> {
        let read = |rule: &HeaderRule| {
            let headers = rule.secrets(self.allow_http_domain_secrets);
            let read = |secret: SecretRule| self.read(&rule.host, &secret.header, secret.read());
            Ok((rule.host.clone(), headers.map(read).collect::<Result<_, _>>()?))
        };
        self.headers.iter().map(read).collect()
    }

    /// Returns the values of the secrets of domains, in their order.
    pub(crate) fn domain_values(&self) -> Result<Vec<HeaderValue>, PolicyError> {
        let read = |secret: &DomainSecret| self.read(&secret.host, &secret.name, secret.value.read());
        self.domain_secrets.iter().map(read).collect()
    }

    fn read<T>(
        &self,
        host: &HostPattern,
        header: &str,
        read: Result<T, &'static str>,
    ) -> Result<T, PolicyError> {
        let is_allowed = self.allows_some(host);
        let (host, header) = (host.to_string(), header.to_owned());
        if !is_allowed {
            return Err(PolicyError::NotAllowed { host, header });
        }
        read.map_err(|why| PolicyError::Secret { host, header, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_a_session_gave_up_is_not_named() {
        let mut policy =
            EgressPolicy::from_rules(["localhost:8000", "127.0.0.1:8000", "*.a.example"]).unwrap();
        let names = |policy: &EgressPolicy| {
            ["localhost", "127.0.0.1", "::1", "x.a.example"].map(|host| policy.names(host))
        };
        assert_eq!(names(&policy), [true, true, false, false]);
        policy.restriction = EgressRestriction::to(["127.0.0.1".parse().unwrap()]);
        assert_eq!(names(&policy), [false, true, false, false]);
        policy.replaceable = true;
        assert_eq!(names(&policy), [true, true, false, false]);
    }

    #[test]
    fn a_configuration_is_read_and_unknown_fields_are_errors() {
        let policy: EgressPolicy = serde_json::from_value(serde_json::json!({
            "allow": ["*.example.com"],
            "secrets": [{ "host": "api.example.com", "header": "Authorization", "value": "Bearer hunter2" }],
            "quotas": { "max_requests": 5, "max_bytes": 1000 },
        }))
        .unwrap();
        assert_eq!(policy.check(), Ok(()));
        assert_eq!(policy.quotas.max_bytes, Some(1000));
        assert!(!format!("{policy:?}").contains("hunter2"));
        let unknown = serde_json::from_value::<EgressPolicy>(serde_json::json!({ "deny": [] }));
        assert!(unknown.unwrap_err().to_string().contains("unknown field `deny`"));
    }

    #[test]
    fn a_secret_needs_a_rule_that_allows_its_host() {
        let mut policy = EgressPolicy::from_rules(["a.example"]).unwrap();
        policy.secrets.push(SecretRule {
            host: "b.example".parse().unwrap(),
            header: "X-Key".to_owned(),
            value: EgressSecret::new("hunter2"),
            allow_http: false,
        });
        let error = policy.check().unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid egress secret `X-Key` for `b.example`: no rule allows this host; add \
             `b.example` to `allow`"
        );
    }

    #[test]
    fn an_invalid_rule_of_a_command_line_is_named() {
        let error = EgressPolicy::from_rules(["a.example", "2130706433"]).unwrap_err();
        assert!(error.to_string().contains("`2130706433`"), "{error}");
    }
}
