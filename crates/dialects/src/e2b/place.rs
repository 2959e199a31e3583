//! Sandbox and port that a request is for.

use axum::extract::FromRequestParts;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use cellblock_interpreter::hosting::Owner;

use super::control;
use super::error::{Answer, Problem};
use super::sandbox::{HeldSandbox, LifeState};
use super::state::E2b;
use super::templates;
use crate::presented::{header, peer};

/// Port of the daemon, by which E2B's clients tell it from the interpreter.
pub(super) const ENVD: u16 = 49983;
/// Port of the interpreter.
pub(super) const CODE: u16 = 49999;

/// Prefix of the ids of sandboxes.
pub(super) const ID: &str = "i";

/// Says that a request came to an address of debug mode, with its port.
#[derive(Clone, Copy, Debug)]
pub(super) struct DebugPort(pub(super) u16);

/// Says that a request came to a host of the domain, which serves nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnHost;

/// Caller of the control API.
#[derive(Debug)]
pub(super) struct Caller(pub(super) Owner);

/// A sandbox that a request names by its id, and opens with its token if it has one.
#[derive(Debug)]
pub(super) struct RequestSandbox(pub(super) HeldSandbox);

/// The same for requests that never carry the token: those about contexts, and those to ports.
#[derive(Debug)]
pub(super) struct PortTarget {
    pub(super) held: HeldSandbox,
    pub(super) port: u16,
}

impl FromRequestParts<E2b> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, e2b: &E2b) -> Answer<Self> {
        Ok(Self(owner(parts, e2b).await?))
    }
}

impl FromRequestParts<E2b> for PortTarget {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, e2b: &E2b) -> Answer<Self> {
        let (id, port) = named(&parts.headers);
        let debug = parts.extensions.get::<DebugPort>().copied();
        let held = if let Some(DebugPort(_)) = debug {
            control::shared(e2b, owner(parts, e2b).await?).await?
        } else {
            let id = id.ok_or_else(|| {
                Problem::invalid("the request names no sandbox; send its id in the header `E2b-Sandbox-Id`")
            })?;
            running(e2b, &id).await?
        };
        if let Some(traffic) = &held.kept.traffic {
            let given = header(&parts.headers, "e2b-traffic-access-token");
            if !given.is_some_and(|given| traffic.is(given)) {
                return Err(Problem::new(
                    StatusCode::FORBIDDEN,
                    "the sandbox has no public traffic; send its token in the header \
                     `E2B-Traffic-Access-Token`",
                ));
            }
        }
        Ok(Self {
            held,
            port: debug.map_or(port, |DebugPort(port)| port),
        })
    }
}

impl FromRequestParts<E2b> for RequestSandbox {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, e2b: &E2b) -> Answer<Self> {
        let held = unlocked(parts, e2b).await?;
        let given = header(&parts.headers, "x-access-token");
        match &held.kept.access {
            Some(access) if !given.is_some_and(|given| access.is(given)) => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "the sandbox is secured; send its access token in the header `X-Access-Token`",
            )),
            _ => Ok(Self(held)),
        }
    }
}

/// Returns the sandbox of a request whose token has still to be looked at.
pub(super) async fn unlocked(parts: &Parts, e2b: &E2b) -> Answer<HeldSandbox> {
    if parts.extensions.get::<DebugPort>().is_some() {
        return control::shared(e2b, owner(parts, e2b).await?).await;
    }
    let (id, _) = named(&parts.headers);
    let id = id.ok_or_else(|| {
        Problem::invalid("the request names no sandbox; send its id in the header `E2b-Sandbox-Id`")
    })?;
    running(e2b, &id).await
}

async fn owner(parts: &Parts, e2b: &E2b) -> Answer<Owner> {
    let peer = peer(&parts.extensions);
    let key = header(&parts.headers, "x-api-key");
    Ok(e2b.host.owner(key, parts.uri.path(), peer).await?)
}

/// Returns a sandbox that runs.
async fn running(e2b: &E2b, id: &str) -> Answer<HeldSandbox> {
    let held = e2b.by_id(id).ok_or_else(|| Problem::gone(id, ""))?;
    e2b.host.enter(held.kept.owner.name()).await?;
    let life = *held.kept.life.borrow();
    if life.is_paused() {
        // Arbitrary requests do not start a sandbox anew.
        if !life.resumes || life.state == LifeState::PausedFiles {
            return Err(Problem::gone(id, ": it is paused; connect to it to resume it"));
        }
        held.kept.live(life.timeout, false);
    }
    Ok(held)
}

/// Returns the id of a request's sandbox from where its server is named.
pub(crate) fn marked(parts: &Parts) -> Option<String> {
    if let Some(server) = templates::server_of(parts) {
        return Some(server);
    }
    let (id, _) = named(&parts.headers);
    Some(id?.strip_prefix(ID)?.to_owned())
}

/// Returns the sandbox and the port that headers name: E2B's own, or the host.
pub(super) fn named(headers: &HeaderMap) -> (Option<String>, u16) {
    let from_host = header(headers, HOST.as_str()).and_then(of_host);
    let port = header(headers, "e2b-sandbox-port").and_then(|port| port.parse().ok());
    let id = header(headers, "e2b-sandbox-id").map(str::to_owned);
    let port = port.or_else(|| from_host.as_ref().map(|(port, _)| *port));
    let id = id.or_else(|| from_host.map(|(_, id)| id));
    (id, port.unwrap_or(ENVD))
}

/// Reads `<port>-<id>.<domain>`.
pub(super) fn of_host(host: &str) -> Option<(u16, String)> {
    let (label, _) = host.split_once('.')?;
    let (port, id) = label.split_once('-')?;
    let port = port.parse().ok()?;
    let is_id = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    is_id.then(|| (port, id.to_owned()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let all = all.iter();
        all.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_request_names_its_sandbox_by_headers_or_by_its_host() {
        let by_header = headers(&[
            ("host", "127.0.0.1:8080"),
            ("e2b-sandbox-id", "i1"),
            ("e2b-sandbox-port", "49999"),
        ]);
        assert_eq!(named(&by_header), (Some("i1".to_owned()), 49999));
        let by_host = headers(&[("host", "3000-i1.cell.example:443")]);
        assert_eq!(named(&by_host), (Some("i1".to_owned()), 3000));
        for other in [
            "localhost:8080",
            "127.0.0.1",
            "api.cell.example",
            "x-i1.cell.example",
            "1-I_1.x",
        ] {
            let other = headers(&[("host", other)]);
            assert_eq!(named(&other), (None, ENVD), "{other:?}");
        }
    }
}
