//! Network of a new sandbox: the rules that a client sends, and the part of the server's list that
//! they leave.

use cellblock_interpreter::egress::{Destination, EgressPolicy, EgressRestriction};
use cellblock_interpreter::limits::NetworkPolicy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::error::{Answer, Problem};
use crate::rules::{destinations, narrow};

/// E2B's rule for all traffic.
const ALL_TRAFFIC: &str = "0.0.0.0/0";

/// Network of a sandbox as a client requests it. Fields that nothing enforces are read so that they
/// are refused by name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NetworkConfig {
    allow_public_traffic: Option<bool>,
    allow_out: Option<Vec<String>>,
    deny_out: Option<Vec<String>>,
    dns_servers: Option<Vec<Value>>,
    egress_proxy: Option<Value>,
    https_ports: Option<Vec<Value>>,
    mask_request_host: Option<String>,
    rules: Option<Value>,
}

/// Rules of a sandbox, as answers repeat them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct NetworkRules {
    allow_public_traffic: bool,
    allow_out: Vec<String>,
    deny_out: Vec<String>,
}

impl NetworkRules {
    /// Returns whether requests to ports of the sandbox need no token.
    pub(super) const fn is_public(&self) -> bool {
        self.allow_public_traffic
    }

    /// Returns the network and the restriction that enforce the rules, of what the caller may have.
    pub(super) fn enforce(
        &self,
        offered: NetworkPolicy,
        egress: Option<&EgressPolicy>,
    ) -> Answer<(NetworkPolicy, EgressRestriction)> {
        let read =
            |field, rules: &[String]| destinations(rules.iter()).map_err(|reason| refused(field, &reason));
        let restriction = EgressRestriction {
            deny: read("network.denyOut", &self.deny_out)?,
            except: read("network.allowOut", &self.allow_out)?,
        };
        let hosts = |it: &&Destination| matches!(it, Destination::Hosts(_));
        if let Some(host) = restriction.deny.iter().find(hosts) {
            let reason = format!(
                "`{host}` is not an address; deny rules contain IP addresses and CIDR blocks, as in E2B. \
                 To deny names, deny \"{ALL_TRAFFIC}\", and name the allowed hosts in `network.allowOut`"
            );
            return Err(refused("network.denyOut", &reason));
        }
        narrow(restriction, offered, egress).map_err(|reason| refused("network.allowOut", &reason))
    }
}

impl NetworkConfig {
    /// Returns the rules, if all of them can be enforced.
    pub(super) fn rules(self, internet: Option<bool>) -> Answer<NetworkRules> {
        let is_given =
            |value: &Value| !(value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty));
        if let Some(servers) = self.dns_servers.filter(|it| !it.is_empty()) {
            let why = "names are resolved outside of the sandbox, which reaches no DNS server";
            return Err(Problem::unenforced("network.dnsServers", &servers, why));
        }
        if let Some(proxy) = self.egress_proxy.filter(is_given) {
            // It may contain a password.
            let address = proxy.get("address").cloned().unwrap_or(Value::Null);
            let why = "the way out is the server's own proxy";
            return Err(Problem::unenforced("network.egressProxy", &address, why));
        }
        if let Some(ports) = self.https_ports.filter(|it| !it.is_empty()) {
            let why = "ports of a sandbox are reached by HTTP without TLS";
            return Err(Problem::unenforced("network.httpsPorts", &ports, why));
        }
        if let Some(mask) = self.mask_request_host {
            let why = "requests reach programs with the host that the client sent";
            return Err(Problem::unenforced("network.maskRequestHost", &mask, why));
        }
        if let Some(rules) = self.rules.filter(is_given) {
            let hosts: Vec<_> = rules.as_object().into_iter().flat_map(|it| it.keys()).collect();
            let why =
                "the operator sets headers that the server adds to requests, with `egress: {secrets: […]}`";
            return Err(Problem::unenforced("network.rules", &hosts, why));
        }
        let mut deny_out = self.deny_out.unwrap_or_default();
        if internet == Some(false) {
            deny_out.push(ALL_TRAFFIC.to_owned());
        }
        Ok(NetworkRules {
            allow_public_traffic: self.allow_public_traffic.unwrap_or(true),
            allow_out: self.allow_out.unwrap_or_default(),
            deny_out,
        })
    }
}

fn refused(field: &str, reason: &str) -> Problem {
    Problem::invalid(format!("`{field}`: {reason}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn enforced(
        config: Value,
        internet: Option<bool>,
        egress: Option<&[&str]>,
    ) -> Answer<(NetworkPolicy, EgressRestriction)> {
        let config: NetworkConfig = serde_json::from_value(config).unwrap();
        let egress = egress.map(|rules| EgressPolicy::from_rules(rules).unwrap());
        let offered = if egress.is_some() {
            NetworkPolicy::Egress
        } else {
            NetworkPolicy::Loopback
        };
        config.rules(internet)?.enforce(offered, egress.as_ref())
    }

    #[test]
    fn rules_narrow_the_servers_list() {
        let hosts: &[&str] = &["*.a.example", "b.example"];
        let (network, none) = enforced(json!({}), None, Some(hosts)).unwrap();
        assert_eq!(
            (network, none),
            (NetworkPolicy::Egress, EgressRestriction::default())
        );
        for (config, internet) in [
            (json!({"denyOut": ["10.0.0.0/8", "0.0.0.0/0"]}), None),
            (json!({"denyOut": ["::/0"]}), None),
            (json!({}), Some(false)),
        ] {
            let (network, _) = enforced(config, internet, Some(hosts)).unwrap();
            assert_eq!(network, NetworkPolicy::Loopback);
        }
        let config = json!({"denyOut": ["192.0.2.1"], "allowOut": ["x.a.example", "198.51.100.0/24"]});
        let (network, restriction) = enforced(config, Some(false), Some(hosts)).unwrap();
        assert_eq!(network, NetworkPolicy::Egress);
        assert_eq!((restriction.deny.len(), restriction.except.len()), (2, 2));
    }

    #[test]
    fn rules_that_cannot_be_enforced_are_refused_by_name() {
        let hosts: &[&str] = &["a.example"];
        for (config, egress, expected) in [
            (
                json!({"denyOut": ["evil.example"]}),
                Some(hosts),
                "`evil.example` is not an address",
            ),
            (
                json!({"denyOut": ["10.0.0.0/40"]}),
                Some(hosts),
                "`10.0.0.0/40` cannot be enforced",
            ),
            (
                json!({"allowOut": ["b.example"]}),
                Some(hosts),
                "egress: {allow: [\"b.example\"]}",
            ),
            (json!({"allowOut": ["a.example"]}), None, "max_network: egress"),
            (
                json!({"dnsServers": ["1.1.1.1"]}),
                Some(hosts),
                "`network.dnsServers`: [\"1.1.1.1\"]",
            ),
            (
                json!({"httpsPorts": [8443]}),
                Some(hosts),
                "`network.httpsPorts`: [8443]",
            ),
            (
                json!({"maskRequestHost": "x"}),
                Some(hosts),
                "`network.maskRequestHost`: \"x\"",
            ),
            (
                json!({"rules": {"a.example": []}}),
                Some(hosts),
                "`network.rules`: [\"a.example\"]",
            ),
            (
                json!({"egressProxy": {"address": "p:1", "password": "hidden"}}),
                Some(hosts),
                "`network.egressProxy`: \"p:1\"",
            ),
        ] {
            let message = enforced(config, None, egress).unwrap_err().0.message;
            assert!(
                message.contains(expected) && !message.contains("hidden"),
                "{message}"
            );
        }
        let none = json!({"dnsServers": [], "httpsPorts": [], "rules": {}, "egressProxy": null});
        enforced(none, None, Some(hosts)).unwrap();
    }
}
