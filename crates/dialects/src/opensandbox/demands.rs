//! Demands of a request on a sandbox's network and resources: each is enforced, or refused by name.

use std::collections::BTreeMap;

use cellblock_interpreter::egress::{Destination, EgressPolicy, EgressRestriction};
use cellblock_interpreter::limits::{Limits, NetworkPolicy};
use serde::Deserialize;

use super::error::Problem;
use crate::rules::{destinations, narrow};

/// Resources that the client's library demands unless its caller names others.
const USUAL: [(&str, &str); 2] = [("cpu", "1"), ("memory", "2Gi")];
/// Rule for every address.
const EVERYTHING: &str = "0.0.0.0/0";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RequestedNetwork {
    default_action: Option<Action>,
    egress: Vec<NetworkRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkRule {
    action: Action,
    target: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Deny,
}

impl RequestedNetwork {
    /// Returns the network and the restriction that enforce the policy, of what the caller may have.
    pub(super) fn enforce(
        &self,
        offered: NetworkPolicy,
        egress: Option<&EgressPolicy>,
    ) -> Result<(NetworkPolicy, EgressRestriction), Problem> {
        let invalid = |reason: String| Problem::invalid(format!("`networkPolicy.egress`: {reason}"));
        let default = self.default_action.unwrap_or(Action::Deny);
        if let Some(rule) = self.egress.iter().find(|rule| rule.action == default) {
            let (target, action) = (
                &rule.target,
                if default == Action::Deny { "deny" } else { "allow" },
            );
            return Err(Problem::unsupported(format!(
                "`networkPolicy.egress`: a rule that has the action `{action}` of `defaultAction` is not \
                 supported; leave the rule for `{target}` out"
            )));
        }
        let targets = destinations(self.egress.iter().map(|rule| &rule.target)).map_err(invalid)?;
        let everything: Vec<Destination> = EVERYTHING.parse::<Destination>().into_iter().collect();
        let restriction = match default {
            Action::Allow => EgressRestriction {
                deny: targets,
                except: Vec::new(),
            },
            Action::Deny => EgressRestriction {
                deny: everything,
                except: targets,
            },
        };
        let network = narrow(&restriction, offered, egress).map_err(invalid)?;
        Ok((network, restriction))
    }
}

/// Returns the limits that enforce demanded ones. They are never more than the server's.
pub(super) fn limits(demanded: &BTreeMap<String, String>, own: &Limits) -> Result<Option<Limits>, Problem> {
    if demanded.is_empty() {
        return Ok(None);
    }
    let is_usual = demanded.len() == USUAL.len()
        && USUAL
            .iter()
            .all(|(name, value)| demanded.get(*name).is_some_and(|it| it == value));
    if is_usual {
        return Ok(None);
    }
    let mut limits = own.clone();
    for (name, value) in demanded {
        let wrong = || {
            Problem::invalid(format!(
                "`resourceLimits.{name}`: `{value}` is not a quantity; write it as in `500m` processors \
                 or `512Mi` of memory"
            ))
        };
        match name.as_str() {
            "cpu" => {
                let millis = quantity(value, 1000.0).ok_or_else(wrong)?.max(1);
                limits.cpu_millis = Some(limits.cpu_millis.map_or(millis, |own| own.min(millis)));
            }
            "memory" => {
                limits.memory_bytes = limits.memory_bytes.min(quantity(value, 1.0).ok_or_else(wrong)?);
            }
            _ => {
                return Err(Problem::unsupported(format!(
                    "`resourceLimits.{name}` is not supported: `cpu` and `memory` are enforced; leave it out"
                )));
            }
        }
    }
    match limits.below_minimum() {
        Some((_, why)) => Err(Problem::invalid(format!(
            "`resourceLimits.memory` is too small: {why}"
        ))),
        None => Ok(Some(limits)),
    }
}

/// Reads a quantity of Kubernetes, in parts of a unit.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number is checked first"
)]
fn quantity(text: &str, parts: f64) -> Option<u64> {
    const SUFFIXES: [(&str, f64); 9] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("m", 1e-3),
    ];
    let suffix = SUFFIXES.iter().find(|(suffix, _)| text.ends_with(suffix));
    let (number, factor) = suffix.map_or((text, 1.0), |(suffix, factor)| {
        (&text[..text.len() - suffix.len()], *factor)
    });
    let number: f64 = number.parse().ok()?;
    let amount = number * factor * parts;
    // Beyond 2^53 a number is no longer exact, and larger than any machine.
    (amount.is_finite() && amount > 0.0 && amount < 9e15).then(|| amount.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demanded(pairs: &[(&str, &str)]) -> Result<Option<Limits>, Problem> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        limits(&pairs.collect(), &Limits::default())
    }

    #[test]
    fn demanded_limits_hold_and_the_servers_too() {
        assert_eq!(demanded(&[("cpu", "1"), ("memory", "2Gi")]).unwrap(), None);
        let small = demanded(&[("cpu", "500m"), ("memory", "512Mi")])
            .unwrap()
            .unwrap();
        assert_eq!((small.cpu_millis, small.memory_bytes), (Some(500), 512 << 20));
        let large = demanded(&[("memory", "64Gi")]).unwrap().unwrap();
        assert_eq!(large, Limits::default());
        for (pairs, expected) in [
            ([("gpu", "1")], "`resourceLimits.gpu` is not supported"),
            ([("memory", "lots")], "`lots` is not a quantity"),
            ([("cpu", "-1")], "`-1` is not a quantity"),
            ([("memory", "1Mi")], "too small"),
        ] {
            let message = demanded(&pairs).unwrap_err().message;
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_policy_becomes_a_restriction() {
        let hosts = EgressPolicy::from_rules(["*.a.example"]).unwrap();
        let enforce = |policy: serde_json::Value| {
            let policy: RequestedNetwork = serde_json::from_value(policy).unwrap();
            policy.enforce(NetworkPolicy::Egress, Some(&hosts))
        };
        let rule = |action: &str, target: &str| serde_json::json!([{"action": action, "target": target}]);
        let allow =
            enforce(serde_json::json!({"defaultAction": "deny", "egress": rule("allow", "x.a.example")}));
        let (network, restriction) = allow.unwrap();
        assert_eq!((network, restriction.except.len()), (NetworkPolicy::Egress, 1));
        let deny =
            enforce(serde_json::json!({"defaultAction": "allow", "egress": rule("deny", "x.a.example")}));
        assert_eq!(deny.unwrap().1.deny.len(), 1);
        assert_eq!(enforce(serde_json::json!({})).unwrap().0, NetworkPolicy::Loopback);
        for policy in [
            serde_json::json!({"egress": rule("allow", "b.example")}),
            serde_json::json!({"egress": rule("deny", "x.a.example")}),
            serde_json::json!({"egress": rule("allow", "not a host")}),
        ] {
            assert!(
                enforce(policy)
                    .unwrap_err()
                    .message
                    .contains("networkPolicy.egress")
            );
        }
    }
}
