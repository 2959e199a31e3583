//! Network rules as clients send them, with a new sandbox and for one that runs.

use std::collections::BTreeMap;

use cellblock_interpreter::egress::{EgressSecret, HeaderRule, HostPattern};
use serde::Deserialize;
use serde_json::Value;

use super::super::error::{Answer, Problem, shortened};
use super::network::{ALL_TRAFFIC, NetworkRules, refused};
use super::request::MAX_TEXT;
use crate::rules::{MAX_RULES, unenforceable};

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
    rules: Option<BTreeMap<String, Vec<RequestedRule>>>,
}

/// Rules that replace those of a sandbox. A field that is left out is empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NetworkUpdate {
    allow_out: Option<Vec<String>>,
    deny_out: Option<Vec<String>>,
    dns_servers: Option<Vec<Value>>,
    egress_proxy: Option<Value>,
    rules: Option<BTreeMap<String, Vec<RequestedRule>>>,
    #[serde(rename = "allow_internet_access")]
    internet: Option<bool>,
}

/// A rule for requests to a host.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RequestedRule {
    transform: Option<RequestedTransform>,
}

/// Changes of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RequestedTransform {
    headers: Option<BTreeMap<String, EgressSecret>>,
}

impl NetworkUpdate {
    /// Returns the rules, if all of them can be enforced.
    pub(super) fn rules(self) -> Answer<NetworkRules> {
        let config = NetworkConfig {
            allow_out: self.allow_out,
            deny_out: self.deny_out,
            dns_servers: self.dns_servers,
            egress_proxy: self.egress_proxy,
            rules: self.rules,
            ..NetworkConfig::default()
        };
        config.rules(self.internet)
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
        let mut deny_out = self.deny_out.unwrap_or_default();
        if internet == Some(false) {
            deny_out.push(ALL_TRAFFIC.to_owned());
        }
        Ok(NetworkRules {
            allow_public_traffic: self.allow_public_traffic.unwrap_or(true),
            allow_out: self.allow_out.unwrap_or_default(),
            deny_out,
            headers: header_rules(self.rules.unwrap_or_default())?,
        })
    }
}

/// Reads the headers of each host. Of rules for the same host, a later one replaces headers of the
/// earlier ones.
fn header_rules(requested: BTreeMap<String, Vec<RequestedRule>>) -> Answer<Vec<HeaderRule>> {
    const FIELD: &str = "network.rules";
    let count = requested.len();
    if count > MAX_RULES {
        let reason = format!("{count} hosts are too many, the limit is {MAX_RULES}; use `*.` for subdomains");
        return Err(refused(FIELD, &reason));
    }
    let mut rules: Vec<HeaderRule> = Vec::new();
    let mut bytes = 0;
    for (name, requested) in requested {
        let host: HostPattern = name
            .parse()
            .map_err(|error| refused(FIELD, &unenforceable(&name, &error)))?;
        if rules.iter().any(|rule| rule.host == host) {
            let reason = format!(
                "`{}` is there twice; case does not distinguish names",
                shortened(&name)
            );
            return Err(refused(FIELD, &reason));
        }
        let transforms = requested.into_iter().filter_map(|rule| rule.transform);
        let headers = transforms.flat_map(|transform| transform.headers.unwrap_or_default());
        let headers: BTreeMap<_, _> = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        bytes += headers
            .iter()
            .map(|(name, value)| name.len() + value.size())
            .sum::<usize>();
        if bytes > MAX_TEXT {
            let reason =
                format!("its headers have more than {MAX_TEXT} bytes, which is the limit; shorten them");
            return Err(refused(FIELD, &reason));
        }
        rules.push(HeaderRule {
            host,
            headers: headers.into_iter().collect(),
        });
    }
    Ok(rules)
}
