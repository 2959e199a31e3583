//! Decisions: whether a policy allows a target, a method and an address.

use std::net::IpAddr;
use std::sync::Arc;

use cellblock_settings::is_public;
use http::HeaderMap;

use crate::placeholders::Placeholders;
use crate::policy::{
    AllowRule, Destination, EgressPolicy, EgressRestriction, HeaderRule, PolicyError, SecretHeader,
};
use crate::refusal::EgressRefusal;
use crate::session_headers::SessionHeaders;
use crate::target::{EgressTarget, TargetHost};

/// Number of rules that a refusal lists.
const MAX_LISTED: usize = 20;
/// Name of a tunnel in the place of a method. No rule lists it.
pub(crate) const TUNNEL: &str = "CONNECT";

/// The rules of a policy that was checked.
#[derive(Debug)]
pub(crate) struct Rules {
    policy: EgressPolicy,
    secrets: Vec<SecretHeader>,
    headers: SessionHeaders,
    pub(crate) placeholders: Arc<Placeholders>,
    /// The rules for a refusal.
    listed: String,
}

/// Way in which a connection to an allowed target is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Bytes are copied.
    Tunnel,
    /// TLS ends at the proxy, which checks each request.
    Intercept,
}

impl Rules {
    pub(crate) fn new(policy: EgressPolicy) -> Result<Self, PolicyError> {
        let placeholders = Arc::new(Placeholders::new(&policy)?);
        Self::with(policy, placeholders)
    }

    /// Returns the rules of the same session with another restriction and other headers. Code knows
    /// the placeholders, which stay.
    pub(crate) fn replaced(
        &self,
        restriction: EgressRestriction,
        headers: Vec<HeaderRule>,
    ) -> Result<Self, PolicyError> {
        let policy = EgressPolicy {
            restriction,
            headers,
            ..self.policy.clone()
        };
        Self::with(policy, Arc::clone(&self.placeholders))
    }

    fn with(policy: EgressPolicy, placeholders: Arc<Placeholders>) -> Result<Self, PolicyError> {
        Ok(Self {
            secrets: policy.secret_headers()?,
            headers: SessionHeaders::new(&policy)?,
            placeholders,
            listed: listed(&policy),
            policy,
        })
    }

    /// Returns whether some requests have to be decrypted, or may have to be after a replacement.
    pub(crate) fn intercept(&self) -> bool {
        self.policy.replaceable
            || !self.secrets.is_empty()
            || !self.headers.is_empty()
            || !self.placeholders.is_empty()
            || self.policy.allow.iter().any(|rule| rule.methods.is_some())
    }

    /// Decides on CONNECT.
    pub(crate) fn connect(&self, target: &EgressTarget) -> Result<Passage, EgressRefusal> {
        let rules = self.matching(target)?;
        let any_method = rules.iter().any(|rule| rule.methods.is_none());
        if any_method && !self.has_secret(target) {
            Ok(Passage::Tunnel)
        } else {
            Ok(Passage::Intercept)
        }
    }

    /// Decides on a request.
    pub(crate) fn request(&self, target: &EgressTarget, method: &str) -> Result<(), EgressRefusal> {
        let rules = self.matching(target)?;
        if !rules.iter().any(|rule| rule.allows_method(method)) {
            return Err(EgressRefusal::method(target, method, &self.listed));
        }
        if method == "TRACE" && self.has_secret(target) {
            return Err(EgressRefusal::trace(target));
        }
        Ok(())
    }

    /// Returns whether a connection may stay open that other rules of the session allowed.
    pub(crate) fn keeps(&self, target: &EgressTarget, address: IpAddr, is_tunnel: bool) -> bool {
        let is_allowed = if is_tunnel {
            matches!(self.connect(target), Ok(Passage::Tunnel))
        } else {
            self.matching(target).is_ok()
        };
        is_allowed && self.policy.restriction.permits_address(&target.host, address)
    }

    /// Decides on the address to connect to, which the session must not have given up. An address
    /// that is not one of the internet must be named by a rule, with its port and the method.
    pub(crate) fn address(
        &self,
        target: &EgressTarget,
        address: IpAddr,
        method: &str,
    ) -> Result<(), EgressRefusal> {
        if !self.policy.restriction.permits_address(&target.host, address) {
            return Err(EgressRefusal::restricted(target));
        }
        let literal = TargetHost::Ip(address);
        let names = |rule: &AllowRule| rule.allows(&literal, target.port) && rule.allows_method(method);
        if is_public(address) || self.policy.allow.iter().any(names) {
            Ok(())
        } else {
            Err(EgressRefusal::address(target))
        }
    }

    /// Replaces the placeholders of a request, and sets its secret headers; the operator's replace those
    /// of the session. Unencrypted requests carry secrets only on this machine, or if the policy permits
    /// it.
    pub(crate) fn add_secrets(
        &self,
        target: &EgressTarget,
        encrypted: bool,
        headers: &mut HeaderMap,
    ) -> Result<(), EgressRefusal> {
        let local = target.host.ip().is_some_and(|address| address.is_loopback());
        self.placeholders.replace(target, encrypted || local, headers)?;
        self.headers.set(target, encrypted || local, headers)?;
        for secret in self.secrets(target) {
            if !(encrypted || local || secret.allow_http) {
                return Err(EgressRefusal::unencrypted(target));
            }
            headers.insert(secret.name.clone(), secret.value.clone());
        }
        Ok(())
    }

    /// Removes secrets for a target from the headers of its response.
    pub(crate) fn hide(&self, target: &EgressTarget, headers: &mut HeaderMap) {
        self.placeholders.hide(target, headers);
        self.headers.hide(target, headers);
    }

    /// Returns whether requests to a target can carry a secret.
    fn has_secret(&self, target: &EgressTarget) -> bool {
        self.secrets(target).next().is_some()
            || !self.headers.of(target).is_empty()
            || self.placeholders.are_for(target)
    }

    fn secrets(&self, target: &EgressTarget) -> impl Iterator<Item = &SecretHeader> {
        self.secrets
            .iter()
            .filter(|secret| secret.host.covers(&target.host))
    }

    /// Returns the rules that allow a target; there is at least one.
    fn matching(&self, target: &EgressTarget) -> Result<Vec<&AllowRule>, EgressRefusal> {
        // A session that is narrowed does not learn what else the operator allows.
        if !self.policy.restriction.permits_host(&target.host) {
            return Err(EgressRefusal::restricted(target));
        }
        let rules: Vec<_> = self
            .policy
            .allow
            .iter()
            .filter(|rule| rule.allows(&target.host, target.port))
            .collect();
        if !rules.is_empty() {
            Ok(rules)
        } else if self
            .policy
            .allow
            .iter()
            .any(|rule| rule.host.covers(&target.host))
        {
            Err(EgressRefusal::port(target, &self.listed))
        } else {
            Err(EgressRefusal::host(target, &self.listed))
        }
    }
}

/// Returns the rules for a refusal; of a session that gave up all but some hosts, only these.
fn listed(policy: &EgressPolicy) -> String {
    let is_narrowed = policy.restriction.deny.iter().any(Destination::is_everything);
    let mut listed: Vec<_> = if is_narrowed {
        narrowed(policy)
    } else {
        policy.allow.iter().map(AllowRule::to_string).collect()
    };
    let count = listed.len();
    listed.truncate(MAX_LISTED);
    match count {
        0 => listed.push("nothing".to_owned()),
        count if count > MAX_LISTED => listed.push(format!("and {} more", count - MAX_LISTED)),
        _ => {}
    }
    listed.join(", ")
}

/// Returns the exceptions of a restriction with the ports and methods of their rules.
fn narrowed(policy: &EgressPolicy) -> Vec<String> {
    let mut listed = Vec::new();
    for except in &policy.restriction.except {
        let Destination::Hosts(hosts) = except else {
            listed.push(except.to_string());
            continue;
        };
        for rule in policy.allow.iter().filter(|rule| rule.host.overlaps(hosts)) {
            let own = AllowRule {
                host: hosts.clone(),
                ..rule.clone()
            };
            listed.push(own.to_string());
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(value: serde_json::Value) -> Rules {
        Rules::new(serde_json::from_value(value).unwrap()).unwrap()
    }

    fn target(text: &str) -> EgressTarget {
        EgressTarget::parse(text, None).unwrap()
    }

    #[test]
    fn only_hosts_with_methods_or_secrets_are_intercepted() {
        let rules = rules(serde_json::json!({
            "allow": ["a.example", { "host": "b.example", "methods": ["GET"] }, "c.example",
                { "host": "a.example", "methods": ["GET"] }],
            "secrets": [{ "host": "c.example", "header": "x-key", "value": "v" }],
        }));
        assert_eq!(rules.connect(&target("a.example:443")).unwrap(), Passage::Tunnel);
        assert_eq!(
            rules.connect(&target("b.example:443")).unwrap(),
            Passage::Intercept
        );
        assert_eq!(
            rules.connect(&target("c.example:443")).unwrap(),
            Passage::Intercept
        );
        assert_eq!(
            rules.connect(&target("d.example:443")).unwrap_err().reason,
            "host"
        );
        assert_eq!(rules.connect(&target("a.example:22")).unwrap_err().reason, "port");
        assert_eq!(
            rules
                .request(&target("b.example:443"), "POST")
                .unwrap_err()
                .reason,
            "method"
        );
        assert_eq!(
            rules
                .request(&target("c.example:443"), "TRACE")
                .unwrap_err()
                .reason,
            "method"
        );
    }

    #[test]
    fn a_narrowed_session_is_told_only_of_its_own_hosts() {
        let mut policy = EgressPolicy::from_rules(["*.a.example:8443", "b.example"]).unwrap();
        policy.restriction = EgressRestriction::to(["x.a.example".parse().unwrap()]);
        let rules = Rules::new(policy).unwrap();
        let refused = |text| rules.connect(&target(text)).unwrap_err();
        for host in ["b.example:443", "c.example:443"] {
            let refusal = refused(host);
            assert_eq!(refusal.reason, "restricted");
            assert!(!refusal.text().contains("allowed:"), "{}", refusal.text());
        }
        let refusal = refused("x.a.example:443");
        assert_eq!(refusal.reason, "port");
        assert!(
            refusal.text().contains("allowed: x.a.example:8443; "),
            "{}",
            refusal.text()
        );
    }

    #[test]
    fn a_private_address_needs_a_rule_with_its_port_and_method() {
        let rules = rules(serde_json::json!({
            "allow": ["a.example:80", { "host": "127.0.0.1:80", "methods": ["GET"] }],
        }));
        let named = |address: &str, port: u16, method| {
            let target = EgressTarget {
                port,
                ..target("a.example:80")
            };
            rules.address(&target, address.parse().unwrap(), method).is_ok()
        };
        assert!(named("1.1.1.1", 80, "POST"));
        assert!(named("127.0.0.1", 80, "GET"));
        assert!(!named("127.0.0.1", 80, "POST"));
        assert!(!named("127.0.0.1", 80, TUNNEL));
        assert!(!named("127.0.0.1", 81, "GET"));
        assert!(!named("::ffff:127.0.0.1", 80, "GET"));
        assert!(!named("10.0.0.1", 80, "GET"));
    }

    #[test]
    fn a_secret_is_not_sent_unencrypted_to_other_machines() {
        let rules = rules(serde_json::json!({
            "allow": ["a.example", "b.example", "127.0.0.1"],
            "secrets": [
                { "host": "a.example", "header": "x-key", "value": "v" },
                { "host": "b.example", "header": "x-key", "value": "v", "allow_http": true },
                { "host": "127.0.0.1", "header": "x-key", "value": "v" },
            ],
        }));
        let add = |text, encrypted| {
            let mut headers = HeaderMap::new();
            let added = rules.add_secrets(&target(text), encrypted, &mut headers);
            added.map(|()| headers.len()).map_err(|refusal| refusal.reason)
        };
        assert_eq!(add("a.example:443", true), Ok(1));
        assert_eq!(add("a.example:80", false), Err("unencrypted"));
        assert_eq!(add("b.example:80", false), Ok(1));
        assert_eq!(add("127.0.0.1:80", false), Ok(1));
        assert_eq!(add("c.example:443", true), Ok(0));
    }
}
