//! Network rules of a sandbox: the part of the server's list that they leave, and headers that its
//! requests get. They can be replaced while it runs.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use cellblock_interpreter::egress::{Destination, EgressPolicy, EgressRestriction, HeaderRule};
use cellblock_interpreter::limits::NetworkPolicy;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::super::body::read;
use super::super::error::{Answer, Problem};
use super::super::place::Caller;
use super::super::state::E2b;
use super::manage::running;
use super::network_request::NetworkUpdate;
use crate::rules::{destinations, narrow, reach};

/// E2B's rule for all traffic.
pub(super) const ALL_TRAFFIC: &str = "0.0.0.0/0";
/// Text in the place of a header's value in answers.
const HIDDEN: &str = "***";

/// Rules of a sandbox, as answers repeat them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct NetworkRules {
    pub(super) allow_public_traffic: bool,
    pub(super) allow_out: Vec<String>,
    pub(super) deny_out: Vec<String>,
    #[serde(
        rename = "rules",
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "without_values"
    )]
    pub(super) headers: Vec<HeaderRule>,
}

/// Rules in the form in which they are enforced.
#[derive(Debug)]
pub(super) struct EnforcedRules {
    pub(super) network: NetworkPolicy,
    pub(super) restriction: EgressRestriction,
    pub(super) headers: Vec<HeaderRule>,
}

/// Replaces the rules of a sandbox that runs, at once.
pub(super) async fn update(
    State(e2b): State<E2b>,
    Caller(owner): Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer<StatusCode> {
    let request: NetworkUpdate = read(&body)?;
    let wanted = request.rules()?;
    let held = running(&e2b, &owner, &id)?;
    let offered = e2b.host.network(&owner).await?;
    let own = held.session.network();
    // Held meanwhile, so that the rules that hold are the ones that answers repeat.
    let mut rules = held.kept.rules.lock();
    let wanted = NetworkRules {
        allow_public_traffic: rules.allow_public_traffic,
        ..wanted
    };
    let opens = !wanted.is_closed() || !wanted.headers.is_empty();
    if own != NetworkPolicy::Egress && offered == NetworkPolicy::Egress && opens {
        let message = format!(
            "change the network of a sandbox: {id:?} was created without a way out, which it cannot get \
             later; create it with rules that allow a host, and deny all traffic with an update"
        );
        return Err(Problem::new(StatusCode::CONFLICT, message));
    }
    let enforced = wanted.enforce(own, e2b.host.egress.as_ref())?;
    if own == NetworkPolicy::Egress {
        held.session
            .replace_egress(enforced.restriction, enforced.headers)?;
    }
    *rules = wanted;
    Ok(StatusCode::NO_CONTENT)
}

impl NetworkRules {
    /// Returns whether requests to ports of the sandbox need no token.
    pub(super) const fn is_public(&self) -> bool {
        self.allow_public_traffic
    }

    /// Returns whether the rules leave no host.
    pub(super) fn is_closed(&self) -> bool {
        let is_everything = |rule: &String| rule.parse().is_ok_and(|it: Destination| it.is_everything());
        self.allow_out.is_empty() && self.deny_out.iter().any(is_everything)
    }

    /// Returns what enforces the rules, of what the caller may have.
    pub(super) fn enforce(
        &self,
        offered: NetworkPolicy,
        egress: Option<&EgressPolicy>,
    ) -> Answer<EnforcedRules> {
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
        let network =
            narrow(&restriction, offered, egress).map_err(|reason| refused("network.allowOut", &reason))?;
        for rule in &self.headers {
            let host = Destination::Hosts(rule.host.clone());
            reach(&host, offered, egress).map_err(|reason| refused("network.rules", &reason))?;
        }
        let headers = self.headers.clone();
        if let Some(egress) = egress.filter(|_| !headers.is_empty()) {
            let policy = EgressPolicy {
                headers: headers.clone(),
                ..egress.clone()
            };
            policy
                .check()
                .map_err(|error| refused("network.rules", &error.to_string()))?;
        }
        Ok(EnforcedRules {
            network,
            restriction,
            headers,
        })
    }
}

/// Shows the names of headers, in E2B's form of rules. Their values are secrets.
fn without_values<S: Serializer>(rules: &[HeaderRule], serializer: S) -> Result<S::Ok, S::Error> {
    let shown = |rule: &HeaderRule| {
        let headers = rule.headers.iter().map(|(name, _)| (name.clone(), HIDDEN.into()));
        let headers: serde_json::Map<String, Value> = headers.collect();
        (
            rule.host.to_string(),
            json!([{"transform": {"headers": headers}}]),
        )
    };
    serializer.collect_map(rules.iter().map(shown))
}

pub(super) fn refused(field: &str, reason: &str) -> Problem {
    Problem::invalid(format!("`{field}`: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e2b::control::network_request::NetworkConfig;

    fn enforced(config: Value, internet: Option<bool>, egress: Option<&[&str]>) -> Answer<EnforcedRules> {
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
        let open = enforced(json!({}), None, Some(hosts)).unwrap();
        assert_eq!(
            (open.network, open.restriction),
            (NetworkPolicy::Egress, EgressRestriction::default())
        );
        for (config, internet) in [
            (json!({"denyOut": ["10.0.0.0/8", "0.0.0.0/0"]}), None),
            (json!({"denyOut": ["::/0"]}), None),
            (json!({}), Some(false)),
        ] {
            let closed = enforced(config, internet, Some(hosts)).unwrap();
            assert_eq!(closed.network, NetworkPolicy::Loopback);
        }
        let config = json!({"denyOut": ["192.0.2.1"], "allowOut": ["x.a.example", "198.51.100.0/24"]});
        let EnforcedRules {
            network, restriction, ..
        } = enforced(config, Some(false), Some(hosts)).unwrap();
        assert_eq!(network, NetworkPolicy::Egress);
        assert_eq!((restriction.deny.len(), restriction.except.len()), (2, 2));
    }

    #[test]
    fn headers_of_the_rules_of_a_host_are_merged_and_their_values_are_hidden() {
        let hosts: &[&str] = &["*.a.example"];
        let rule = |headers: Value| json!({"transform": {"headers": headers}});
        let rules = json!({
            "*.A.example": [rule(json!({"X-Key": "hidden-1", "x-other": "hidden-2"})),
                rule(json!({"x-key": "hidden-3"}))],
            "none.a.example": [{}],
        });
        let config: NetworkConfig = serde_json::from_value(json!({"rules": rules})).unwrap();
        let rules = config.rules(None).unwrap();
        let egress = EgressPolicy::from_rules(hosts).unwrap();
        let enforced = rules.enforce(NetworkPolicy::Egress, Some(&egress)).unwrap();
        let counts: Vec<_> = enforced.headers.iter().map(|rule| rule.headers.len()).collect();
        assert_eq!(counts, [2, 0]);
        let shown = json!(rules);
        let expected = json!([{"transform": {"headers": {"x-key": "***", "x-other": "***"}}}]);
        assert_eq!(shown["rules"]["*.a.example"], expected);
        assert!(!format!("{shown} {rules:?} {enforced:?}").contains("hidden"));
        let many: Vec<_> = (0..10_000).map(|number| format!("h{number}.a.example")).collect();
        let hosts_of_rules: serde_json::Map<_, _> =
            many.iter().map(|host| (host.clone(), json!([]))).collect();
        for (config, expected) in [
            (
                json!({"rules": {"a.x.a.example": [rule(json!({"host": "hidden"}))]}}),
                "`host`",
            ),
            (
                json!({"rules": {"x.a.example": [rule(json!({"x": "hidden\n"}))]}}),
                "`x`",
            ),
            (
                json!({"rules": {"x.a.example": [rule(json!({"x": "h".repeat(70_000)}))]}}),
                "65536",
            ),
            (
                json!({"rules": {"10.0.0.0/8": []}}),
                "`10.0.0.0/8` cannot be enforced",
            ),
            (json!({"rules": {"x.a.example": [], "X.a.example": []}}), "twice"),
            (
                json!({"rules": hosts_of_rules}),
                "10000 hosts are too many, the limit is 256",
            ),
            (
                json!({"allowOut": many}),
                "10000 rules are too many, the limit is 256",
            ),
        ] {
            let message = self::enforced(config, None, Some(hosts)).unwrap_err().0.message;
            assert!(
                message.contains(expected) && !message.contains("hidden"),
                "{message}"
            );
        }
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
                json!({"rules": {"b.example": []}}),
                Some(hosts),
                "`network.rules`: `b.example` is not on this server's list",
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
