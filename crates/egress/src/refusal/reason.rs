//! The reasons of refusals, one constructor each.

use http::StatusCode;

use super::EgressRefusal;
use crate::policy::DEFAULT_PORTS;
use crate::record::EgressDecision;
use crate::target::{EgressTarget, HostError};

/// Maximum number of characters of a host that an answer repeats.
const MAX_SHOWN: usize = 100;

impl EgressRefusal {
    fn denied(status: StatusCode, reason: &'static str, text: String) -> Self {
        Self {
            status,
            decision: EgressDecision::Denied,
            reason,
            text,
        }
    }

    fn failed(status: StatusCode, reason: &'static str, text: String) -> Self {
        Self {
            status,
            decision: EgressDecision::Failed,
            reason,
            text,
        }
    }

    pub(crate) fn malformed(why: &str) -> Self {
        Self::denied(
            StatusCode::BAD_REQUEST,
            "malformed",
            format!("malformed request: {why}"),
        )
    }

    pub(crate) fn invalid_host(text: &str, why: HostError) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "invalid_host",
            format!("invalid host `{}`: {why}", shown(text)),
        )
    }

    pub(crate) fn host(target: &EgressTarget, allowed: &str) -> Self {
        let host = &target.host;
        // A rule without a port allows the default ports only.
        let rule = if DEFAULT_PORTS.contains(&target.port) {
            host.to_string()
        } else {
            target.to_string()
        };
        Self::denied(
            StatusCode::FORBIDDEN,
            "host",
            format!(
                "host `{host}` is not on the allow-list; allowed: {allowed}; to allow it, the operator \
                 adds the rule `{rule}` (`--allow {rule}`)"
            ),
        )
    }

    pub(crate) fn port(target: &EgressTarget, allowed: &str) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "port",
            format!(
                "port {} of host `{}` is not on the allow-list; allowed: {allowed}; to allow it, the \
                 operator adds the rule `{target}` (`--allow {target}`)",
                target.port, target.host
            ),
        )
    }

    pub(crate) fn method(target: &EgressTarget, method: &str, allowed: &str) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "method",
            format!(
                "method `{}` is not allowed for host `{}`; allowed: {allowed}; to allow it, the operator \
                 adds it to `methods` of the rule",
                shown(method),
                target.host
            ),
        )
    }

    pub(crate) fn trace(target: &EgressTarget) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "method",
            format!(
                "method `TRACE` is not allowed for host `{}`: its response would repeat the secret that \
                 the proxy adds; use another method",
                target.host
            ),
        )
    }

    pub(crate) fn unencrypted(target: &EgressTarget) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "unencrypted",
            format!(
                "requests to host `{}` carry a secret, which is not sent unencrypted; use `https://`",
                target.host
            ),
        )
    }

    /// The address is not part of the text: code must not learn the addresses of private networks.
    pub(crate) fn address(target: &EgressTarget) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "address",
            format!(
                "host `{}` has a private or reserved address, which is not connected to; to allow it, the \
                 operator adds a rule with that IP address and port",
                target.host
            ),
        )
    }

    pub(crate) fn restricted(target: &EgressTarget) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "restricted",
            format!(
                "host `{}` is denied by the network rules of this sandbox; to reach it, its owner changes \
                 the rules, or creates a sandbox whose rules do not deny it",
                target.host
            ),
        )
    }

    pub(crate) fn upgrade(protocol: &str) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "upgrade",
            format!(
                "`Upgrade: {}` is not supported; only `websocket` with the method `GET` is",
                shown(protocol)
            ),
        )
    }

    pub(crate) fn sni(target: &EgressTarget) -> Self {
        Self::denied(
            StatusCode::FORBIDDEN,
            "sni",
            format!(
                "the TLS server name differs from the host `{}` of CONNECT",
                target.host
            ),
        )
    }

    pub(crate) fn quota_requests(max: u64) -> Self {
        Self::denied(
            StatusCode::TOO_MANY_REQUESTS,
            "quota_requests",
            format!(
                "this session has sent {max} requests, which is its maximum; the operator \
                 can raise `max_requests`"
            ),
        )
    }

    pub(crate) fn quota_bytes(max: u64) -> Self {
        Self::denied(
            StatusCode::TOO_MANY_REQUESTS,
            "quota_bytes",
            format!(
                "this session has transferred {max} bytes, which is its maximum; the operator \
                 can raise `max_bytes`"
            ),
        )
    }

    pub(crate) fn connections(max: usize) -> Self {
        Self::denied(
            StatusCode::SERVICE_UNAVAILABLE,
            "connections",
            format!("{max} connections are open, which is the maximum; close some of them, or wait"),
        )
    }

    pub(crate) fn resolve(target: &EgressTarget, why: &str) -> Self {
        Self::failed(
            StatusCode::BAD_GATEWAY,
            "resolve",
            format!("cannot resolve host `{}`: {why}", target.host),
        )
    }

    pub(crate) fn connect(target: &EgressTarget, why: &str) -> Self {
        Self::failed(
            StatusCode::BAD_GATEWAY,
            "connect",
            format!("cannot connect to `{target}`: {why}"),
        )
    }

    pub(crate) fn tls(target: &EgressTarget, why: &str) -> Self {
        Self::failed(
            StatusCode::BAD_GATEWAY,
            "tls",
            format!("cannot verify or encrypt the connection to `{target}`: {why}"),
        )
    }

    pub(crate) fn upstream(target: &EgressTarget, why: &str) -> Self {
        Self::failed(
            StatusCode::BAD_GATEWAY,
            "upstream",
            format!("`{target}` did not answer the request: {why}"),
        )
    }

    pub(crate) fn timeout(target: &EgressTarget, action: &str, seconds: f64) -> Self {
        Self::failed(
            StatusCode::GATEWAY_TIMEOUT,
            "timeout",
            format!("{action} `{target}` took longer than {seconds} seconds"),
        )
    }
}

/// Shortens text of the sandbox, and replaces characters that could act on a terminal or a model.
fn shown(text: &str) -> String {
    let visible = |character: char| {
        if character.is_ascii_graphic() && character != '`' {
            character
        } else {
            '?'
        }
    };
    text.chars().take(MAX_SHOWN).map(visible).collect()
}
