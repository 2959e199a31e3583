//! Placeholders in the headers of requests, which become secrets outside of the sandbox.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue};
use rustls::crypto::ring;

use crate::policy::{DomainSecret, EgressPolicy, HostPattern, PolicyError};
use crate::refusal::EgressRefusal;
use crate::strict::MAX_HEAD;
use crate::target::EgressTarget;

/// Start of every placeholder, so that people recognize one.
const START: &str = "placeholder_";
/// Random bytes of a placeholder.
const RANDOM: usize = 20;
/// Minimum length of a secret that is hidden in responses: shorter ones occur by chance.
const MIN_HIDDEN: usize = 8;
/// Scheme of credentials that are encoded.
const BASIC: &[u8] = b"Basic ";

/// The placeholders of a session.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    secrets: Vec<PlaceholderSecret>,
    allow_http: bool,
}

#[derive(Debug)]
struct PlaceholderSecret {
    host: HostPattern,
    /// Name of the variable.
    name: String,
    placeholder: String,
    /// Marked as sensitive, so that its `Debug` does not show it.
    value: HeaderValue,
}

impl Placeholders {
    /// Makes a placeholder for each variable of a policy.
    pub(crate) fn new(policy: &EgressPolicy) -> Result<Self, PolicyError> {
        let values = policy.domain_values()?;
        let mut made = BTreeMap::new();
        let secret = |(secret, value): (&DomainSecret, HeaderValue)| PlaceholderSecret {
            host: secret.host.clone(),
            name: secret.name.clone(),
            placeholder: made.entry(secret.name.clone()).or_insert_with(random).clone(),
            value,
        };
        Ok(Self {
            secrets: policy.domain_secrets.iter().zip(values).map(secret).collect(),
            allow_http: policy.allow_http_domain_secrets,
        })
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Returns whether requests to a target can have placeholders that are replaced.
    pub(crate) fn are_for(&self, target: &EgressTarget) -> bool {
        self.of(target).next().is_some()
    }

    /// Returns the placeholders by the names of their variables.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let pair = |it: &PlaceholderSecret| (it.name.clone(), it.placeholder.clone());
        self.secrets.iter().map(pair).collect()
    }

    /// Replaces the placeholders for a target in the headers of a request. A request that may not carry
    /// secrets is refused if it has one: the host would not understand it.
    pub(crate) fn replace(
        &self,
        target: &EgressTarget,
        may_carry: bool,
        headers: &mut HeaderMap,
    ) -> Result<(), EgressRefusal> {
        let swaps: Vec<_> = self
            .of(target)
            .map(|it| (it.placeholder.as_bytes(), it.value.as_bytes()))
            .collect();
        if swaps.is_empty() {
            return Ok(());
        }
        let mut size = 0;
        for value in headers.values_mut() {
            let text = value.as_bytes();
            let Some(replaced) = swap(text, &swaps).or_else(|| swap_basic(text, &swaps)) else {
                continue;
            };
            if !(may_carry || self.allow_http) {
                return Err(EgressRefusal::unencrypted(target));
            }
            size += replaced.len();
            let new = HeaderValue::from_bytes(&replaced).ok();
            let Some(mut new) = new.filter(|_| size <= MAX_HEAD) else {
                return Err(EgressRefusal::malformed(&format!(
                    "headers with secrets have more than {MAX_HEAD} bytes"
                )));
            };
            new.set_sensitive(true);
            *value = new;
        }
        Ok(())
    }

    /// Replaces the secrets for a target in the headers of its response by their placeholders: servers
    /// repeat headers of requests, such as `Origin`.
    pub(crate) fn hide(&self, target: &EgressTarget, headers: &mut HeaderMap) {
        let values = self
            .of(target)
            .map(|it| (it.value.as_bytes(), it.placeholder.as_bytes()));
        hide_values(values, headers);
    }

    fn of(&self, target: &EgressTarget) -> impl Iterator<Item = &PlaceholderSecret> {
        self.secrets.iter().filter(|it| it.host.covers(&target.host))
    }
}

/// Replaces values that are secret in the headers of a response by texts that are not. Each pair is a value
/// and its text.
pub(crate) fn hide_values<'a>(values: impl Iterator<Item = (&'a [u8], &'a [u8])>, headers: &mut HeaderMap) {
    let mut swaps: Vec<_> = values.filter(|(value, _)| value.len() >= MIN_HIDDEN).collect();
    if swaps.is_empty() {
        return;
    }
    // A secret can begin with another one.
    swaps.sort_by_key(|(value, _)| Reverse(value.len()));
    for (name, value) in headers {
        if *name == CONTENT_LENGTH {
            continue;
        }
        let text = value.as_bytes();
        let hidden = swap(text, &swaps).or_else(|| swap_basic(text, &swaps));
        if let Some(hidden) = hidden {
            // A placeholder is legal wherever a secret is.
            *value = HeaderValue::from_bytes(&hidden).unwrap_or_else(|_| HeaderValue::from_static(""));
        }
    }
}

/// Returns a text in which the first of each pair is replaced by the second; `None` if it has none.
fn swap(text: &[u8], swaps: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let (mut swapped, mut rest, mut has_any) = (Vec::new(), text, false);
    while let [first, after @ ..] = rest {
        if let Some((from, to)) = swaps.iter().find(|(from, _)| rest.starts_with(from)) {
            swapped.extend_from_slice(to);
            rest = &rest[from.len()..];
            has_any = true;
        } else {
            swapped.push(*first);
            rest = after;
        }
    }
    has_any.then_some(swapped)
}

/// Does the same inside of `Basic` credentials, which are encoded.
fn swap_basic(text: &[u8], swaps: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let (scheme, encoded) = text.split_at_checked(BASIC.len())?;
    let encoded = scheme.eq_ignore_ascii_case(BASIC).then_some(encoded)?;
    let swapped = swap(&STANDARD.decode(encoded.trim_ascii()).ok()?, swaps)?;
    Some([BASIC, STANDARD.encode(swapped).as_bytes()].concat())
}

fn random() -> String {
    let mut bytes = [0; RANDOM];
    let filled = ring::default_provider().secure_random.fill(&mut bytes);
    #[expect(
        clippy::expect_used,
        reason = "a kernel without random bytes runs no TLS either"
    )]
    filled.expect("the kernel gives random bytes");
    bytes.iter().fold(START.to_owned(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::EgressSecret;

    fn placeholders(secrets: &[(&str, &str, &str)]) -> Placeholders {
        let mut policy = EgressPolicy::from_rules(["a.example", "b.example", "127.0.0.1"]).unwrap();
        policy.domain_secrets = secrets
            .iter()
            .map(|(host, name, value)| DomainSecret {
                host: host.parse().unwrap(),
                name: (*name).to_owned(),
                value: EgressSecret::new(*value),
            })
            .collect();
        Placeholders::new(&policy).unwrap()
    }

    /// Replaces in a header `x`.
    fn replaced(placeholders: &Placeholders, target: &str, value: &str) -> Result<String, &'static str> {
        let mut headers = HeaderMap::from_iter([("x".parse().unwrap(), value.parse().unwrap())]);
        let target = EgressTarget::parse(target, None).unwrap();
        let done = placeholders.replace(&target, target.port == 443, &mut headers);
        done.map_err(|refusal| refusal.reason)?;
        Ok(headers["x"].to_str().unwrap().to_owned())
    }

    #[test]
    fn a_placeholder_becomes_the_secret_of_the_host_and_is_left_alone_for_others() {
        let all = placeholders(&[
            ("a.example", "KEY", "hunter2"),
            ("b.example", "KEY", "hunter3"),
            ("a.example", "ID", "ann"),
        ]);
        let variables = all.variables();
        let (key, id) = (&variables["KEY"], &variables["ID"]);
        assert_ne!(key, id);
        let twice = format!("{id}:{key},{key}");
        let at = |target| replaced(&all, target, &twice).unwrap();
        assert_eq!(at("a.example:443"), "ann:hunter2,hunter2");
        assert_eq!(at("b.example:443"), format!("{id}:hunter3,hunter3"));
        assert_eq!(at("127.0.0.1:443"), twice);
        assert_eq!(at("127.0.0.1:80"), twice);
        let part = &key[..key.len() - 1];
        assert_eq!(replaced(&all, "a.example:443", part).unwrap(), part);
        assert!(!format!("{all:?}").contains("hunter"));
    }

    #[test]
    fn credentials_are_decoded_and_encoded_again() {
        let all = placeholders(&[("a.example", "KEY", "hunter2")]);
        let of = |password: &str| STANDARD.encode(format!("ann:{password}"));
        let sent = format!("basic {}", of(&all.variables()["KEY"]));
        let expected = format!("Basic {}", of("hunter2"));
        assert_eq!(replaced(&all, "a.example:443", &sent).unwrap(), expected);
        assert_eq!(replaced(&all, "b.example:443", &sent).unwrap(), sent);
        for other in ["Basic ====", "Basic", "Bearer aGk="] {
            assert_eq!(replaced(&all, "a.example:443", other).unwrap(), other);
        }
    }

    #[test]
    fn a_response_that_repeats_a_secret_has_its_placeholder() {
        let all = placeholders(&[
            ("a.example", "KEY", "hunter2-hunter2"),
            ("a.example", "LONG", "hunter2-hunter2-hunter2"),
            ("a.example", "LENGTH", "12345678"),
            ("a.example", "SHORT", "ann"),
        ]);
        let variables = all.variables();
        let hidden = |target: &str, name: &str, value: &str| {
            let mut headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            all.hide(&EgressTarget::parse(target, None).unwrap(), &mut headers);
            headers[name].to_str().unwrap().to_owned()
        };
        let (key, long) = (&variables["KEY"], &variables["LONG"]);
        let sent = "https://hunter2-hunter2/hunter2-hunter2-hunter2";
        assert_eq!(
            hidden("a.example:443", "x", sent),
            format!("https://{key}/{long}")
        );
        assert_eq!(hidden("b.example:443", "x", sent), sent);
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let repeated = hidden("a.example:443", "x", &basic("ann:hunter2-hunter2"));
        assert_eq!(repeated, basic(&format!("ann:{key}")));
        assert_eq!(hidden("a.example:443", "x", "12345678"), variables["LENGTH"]);
        assert_eq!(hidden("a.example:443", "content-length", "12345678"), "12345678");
        assert_eq!(hidden("a.example:443", "x", "ann"), "ann");
    }

    #[test]
    fn an_unencrypted_request_with_a_placeholder_is_refused_unless_the_policy_permits_it() {
        let mut all = placeholders(&[("a.example", "KEY", "hunter2")]);
        let key = all.variables()["KEY"].clone();
        assert_eq!(replaced(&all, "a.example:80", &key), Err("unencrypted"));
        assert_eq!(replaced(&all, "a.example:80", "other"), Ok("other".to_owned()));
        all.allow_http = true;
        assert_eq!(replaced(&all, "a.example:80", &key), Ok("hunter2".to_owned()));
    }

    #[test]
    fn headers_do_not_grow_without_a_limit() {
        let all = placeholders(&[("a.example", "KEY", &"x".repeat(MAX_HEAD / 2))]);
        let key = &all.variables()["KEY"];
        assert!(replaced(&all, "a.example:443", &key.repeat(2)).is_ok());
        assert_eq!(replaced(&all, "a.example:443", &key.repeat(3)), Err("malformed"));
    }

    #[test]
    fn a_secret_that_no_header_can_have_is_an_error_without_it() {
        let mut policy = EgressPolicy::from_rules(["a.example"]).unwrap();
        for (host, value) in [
            ("a.example", "hunter2\n"),
            ("a.example", ""),
            ("b.example", "hunter2"),
        ] {
            policy.domain_secrets = vec![DomainSecret {
                host: host.parse().unwrap(),
                name: "KEY".to_owned(),
                value: EgressSecret::new(value),
            }];
            let error = policy.check().unwrap_err().to_string();
            assert!(error.contains("`KEY`") && !error.contains("hunter2"), "{error}");
        }
    }
}
