//! Headers of one session, which the proxy sets in requests to their hosts.

use http::HeaderMap;

use crate::placeholders::hide_values;
use crate::policy::{EgressPolicy, HostPattern, PolicyError, SecretHeader};
use crate::refusal::EgressRefusal;
use crate::target::EgressTarget;

/// Text in the place of a value that a server repeats.
const HIDDEN: &[u8] = b"***";

/// The headers of a session's rules.
#[derive(Debug, Default)]
pub(crate) struct SessionHeaders(Vec<(HostPattern, Vec<SecretHeader>)>);

impl SessionHeaders {
    pub(crate) fn new(policy: &EgressPolicy) -> Result<Self, PolicyError> {
        let mut rules = policy.session_headers()?;
        rules.sort_by_key(|(host, _)| std::cmp::Reverse(host.specificity()));
        Ok(Self(rules))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the headers of the most specific rule for a target.
    pub(crate) fn of(&self, target: &EgressTarget) -> &[SecretHeader] {
        let found = self.0.iter().find(|(host, _)| host.covers(&target.host));
        found.map_or(&[], |(_, headers)| headers)
    }

    /// Sets the headers in a request. One that may not carry secrets is refused.
    pub(crate) fn set(
        &self,
        target: &EgressTarget,
        may_carry: bool,
        headers: &mut HeaderMap,
    ) -> Result<(), EgressRefusal> {
        for own in self.of(target) {
            if !(may_carry || own.allow_http) {
                return Err(EgressRefusal::unencrypted(target));
            }
            headers.insert(own.name.clone(), own.value.clone());
        }
        Ok(())
    }

    /// Removes the values from the headers of a response, which repeats some of the request.
    pub(crate) fn hide(&self, target: &EgressTarget, headers: &mut HeaderMap) {
        let values = self.of(target).iter().map(|own| (own.value.as_bytes(), HIDDEN));
        hide_values(values, headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{EgressSecret, HeaderRule};

    fn headers(rules: &[(&str, &[(&str, &str)])]) -> Result<SessionHeaders, PolicyError> {
        let rule = |(host, headers): &(&str, &[(&str, &str)])| HeaderRule {
            host: host.parse().unwrap(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), EgressSecret::new(*value)))
                .collect(),
        };
        SessionHeaders::new(&EgressPolicy {
            headers: rules.iter().map(rule).collect(),
            ..EgressPolicy::from_rules(["*.a.example", "127.0.0.1"]).unwrap()
        })
    }

    fn target(text: &str) -> EgressTarget {
        EgressTarget::parse(text, None).unwrap()
    }

    #[test]
    fn the_most_specific_rule_counts_alone() {
        let rules = headers(&[
            ("*.a.example", &[("x-key", "wide"), ("x-other", "wide")]),
            ("*.b.a.example", &[("x-key", "narrow")]),
            ("none.a.example", &[]),
        ])
        .unwrap();
        for (host, expected) in [
            ("x.a.example:443", "wide wide"),
            ("x.b.a.example:443", "narrow"),
            ("none.a.example:443", ""),
            ("c.example:443", ""),
        ] {
            let mut set = HeaderMap::from_iter([("x-key".parse().unwrap(), "mine".parse().unwrap())]);
            let is_own = expected.is_empty();
            rules.set(&target(host), true, &mut set).unwrap();
            let values: Vec<_> = set.values().map(|value| value.to_str().unwrap()).collect();
            assert_eq!(values.join(" "), if is_own { "mine" } else { expected }, "{host}");
        }
    }

    #[test]
    fn a_value_is_neither_sent_unencrypted_nor_shown() {
        let rules = headers(&[("x.a.example", &[("authorization", "Bearer hunter2")])]).unwrap();
        let plain = rules.set(&target("x.a.example:80"), false, &mut HeaderMap::new());
        assert_eq!(plain.unwrap_err().reason, "unencrypted");
        let mut repeated =
            HeaderMap::from_iter([("x".parse().unwrap(), "=Bearer hunter2;".parse().unwrap())]);
        rules.hide(&target("x.a.example:443"), &mut repeated);
        assert_eq!(repeated["x"], "=***;");
        assert!(!format!("{rules:?}").contains("hunter2"));
    }

    #[test]
    fn a_header_that_cannot_be_set_is_an_error_without_its_value() {
        for (host, name, value) in [
            ("x.a.example", "host", "hunter2"),
            ("x.a.example", "a b", "hunter2"),
            ("x.a.example", "x-key", "hunter2\r\nx: y"),
            ("b.example", "x-key", "hunter2"),
        ] {
            let error = headers(&[(host, &[(name, value)])]).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains("hunter2"), "{error}");
        }
    }
}
