//! Networks that requests ask for, within those that the operator allows.

use std::fmt::{self, Write as _};

use cellblock_agent::wire::{ApiError, NetworkAllowlist};
use cellblock_interpreter::egress::{EgressPolicy, EgressRestriction};
use cellblock_interpreter::limits::NetworkPolicy;
use serde::Deserialize;
use serde_json::Value;

use super::Gateway;

/// A `network_policy` as it was sent. Its `Debug` does not show it, because it can have secrets.
#[derive(Clone, Deserialize)]
pub(crate) struct RawPolicy(Value);

impl fmt::Debug for RawPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawPolicy(***)")
    }
}

/// Hosts that code reaches, with secrets for them. It exists only in memory, as long as what it was made for.
#[derive(Clone, Debug)]
pub(crate) struct AllowedNetwork {
    /// The hosts as requested.
    pub(crate) domains: Vec<String>,
    /// The policy that enforces them: the operator's, with a restriction and secrets.
    pub(crate) egress: EgressPolicy,
}

/// Two are equal if code reaches the same hosts with the same secrets.
impl PartialEq for AllowedNetwork {
    fn eq(&self, other: &Self) -> bool {
        self.egress == other.egress
    }
}

impl AllowedNetwork {
    /// Parses a `network_policy` whose path in the request is `path`; `None` if there is none, or if it
    /// disables the network.
    ///
    /// # Errors
    ///
    /// A field is invalid, or the operator does not allow the network to this owner.
    pub(crate) async fn parse(
        gateway: &Gateway,
        owner: &str,
        policy: Option<&RawPolicy>,
        path: &str,
    ) -> Result<Option<Self>, ApiError> {
        let asked = policy.map(|policy| NetworkAllowlist::parse(&policy.0, path));
        let asked = asked.transpose()?.flatten();
        Self::permitted(gateway, owner, asked.as_ref(), path).await
    }

    /// Returns the network of an allowlist whose path in the request is `path`, if there is one.
    ///
    /// # Errors
    ///
    /// The operator does not allow it to this owner.
    pub(crate) async fn permitted(
        gateway: &Gateway,
        owner: &str,
        asked: Option<&NetworkAllowlist>,
        path: &str,
    ) -> Result<Option<Self>, ApiError> {
        let Some(asked) = asked else { return Ok(None) };
        let most = gateway.max_network(owner).await?;
        let offered = gateway.options.egress.as_ref();
        let Some(offered) = offered.filter(|_| most == NetworkPolicy::Egress) else {
            let path = format!("{path}.type");
            let message = format!(
                "`{path}` is `allowlist`, and this gateway allows `{most}` at most to this caller; use \
                 `disabled`, or let the operator set `limits.max_network`, `egress.allow`, the key's \
                 `--max-network` and the image's `policy.max_network`"
            );
            return Err(ApiError::invalid(path, "invalid_value", message));
        };
        Self::narrow(offered, asked, path).map(Some)
    }

    fn narrow(offered: &EgressPolicy, asked: &NetworkAllowlist, path: &str) -> Result<Self, ApiError> {
        for (index, host) in asked.allowed_domains.iter().enumerate() {
            if !offered.allows_some(host) {
                let path = format!("{path}.allowed_domains[{index}]");
                let message = format!(
                    "`{path}` is `{host}`, which is not on this server's list of hosts; remove it, or let \
                     the operator add it with `egress: {{allow: [\"{host}\"]}}`"
                );
                return Err(ApiError::invalid(path, "invalid_value", message));
            }
        }
        let domains = asked.allowed_domains.iter().map(ToString::to_string).collect();
        let mut hosts = asked.allowed_domains.clone();
        hosts.sort_by_key(ToString::to_string);
        hosts.dedup();
        let mut domain_secrets = asked.domain_secrets.clone();
        domain_secrets.sort_by_key(|secret| (secret.host.to_string(), secret.name.clone()));
        let egress = EgressPolicy {
            restriction: EgressRestriction::to(hosts),
            domain_secrets,
            ..offered.clone()
        };
        Ok(Self { domains, egress })
    }

    /// Returns a note about it for a model.
    pub(crate) fn note(&self) -> String {
        let domains = self.domains.join("`, `");
        let mut note = format!("Code reaches these hosts over HTTP and HTTPS, and no others: `{domains}`.");
        for secret in &self.egress.domain_secrets {
            // Writing to a string cannot fail.
            let _ = write!(
                note,
                " The environment variable `{}` has a placeholder, which becomes a secret in the headers of \
                 requests to `{}`.",
                secret.name, secret.host
            );
        }
        note
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &str = "hunter2";

    fn narrowed(domains: &[&str], value: Option<&str>) -> Result<AllowedNetwork, ApiError> {
        let offered = EgressPolicy::from_rules(["*.a.example", "b.example:8443", "127.0.0.1"]).unwrap();
        let secret = value.map(|value| json!({"domain": domains[0], "name": "API_KEY", "value": value}));
        let secrets: Vec<_> = secret.into_iter().collect();
        let policy = json!({"type": "allowlist", "allowed_domains": domains, "domain_secrets": secrets});
        let asked = NetworkAllowlist::parse(&policy, "p").unwrap().unwrap();
        AllowedNetwork::narrow(&offered, &asked, "p")
    }

    #[test]
    fn a_domain_must_be_a_host_of_the_operators_list() {
        for domain in ["x.a.example", "b.example", "127.0.0.1"] {
            assert_eq!(narrowed(&[domain], None).unwrap().domains, [domain]);
        }
        for domain in ["a.example", "c.example", "x.b.example", "127.0.0.2"] {
            let error = narrowed(&["b.example", domain], None).unwrap_err();
            assert_eq!(error.param.as_deref(), Some("p.allowed_domains[1]"));
            assert!(error.message.contains(domain), "{error}");
        }
    }

    #[test]
    fn networks_are_equal_with_the_same_hosts_and_secrets_in_any_order() {
        let (x, b) = ("x.a.example", "b.example");
        let network = |domains: &[&str], value| narrowed(domains, value).unwrap();
        assert_eq!(network(&[x, b], None), network(&[b, x, b], None));
        assert_eq!(network(&[x, b], Some(SECRET)), network(&[x, b], Some(SECRET)));
        assert_ne!(network(&[x], None), network(&[x, b], None));
        assert_ne!(network(&[x], None), network(&[x], Some(SECRET)));
        assert_ne!(network(&[x], Some("other")), network(&[x], Some(SECRET)));
    }

    #[test]
    fn the_note_names_hosts_and_variables_and_nothing_shows_a_secret() {
        let network = narrowed(&["x.a.example", "b.example"], Some(SECRET)).unwrap();
        let note = network.note();
        assert_eq!(
            note,
            "Code reaches these hosts over HTTP and HTTPS, and no others: `x.a.example`, `b.example`. The \
             environment variable `API_KEY` has a placeholder, which becomes a secret in the headers of \
             requests to `x.a.example`."
        );
        assert!(!format!("{network:?}").contains(SECRET));
        let raw: RawPolicy = serde_json::from_value(json!({"value": SECRET})).unwrap();
        assert!(!format!("{raw:?}").contains(SECRET));
    }
}
