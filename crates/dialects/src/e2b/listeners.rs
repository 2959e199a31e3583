//! Addresses of the dialect's own: those of debug mode, and the one at which hosts of the domain
//! are expected.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};

use crate::{DialectListenError, DialectListener};

use super::error::Problem;
use super::place::{CODE, DebugPort, ENVD, OwnHost, named, of_host};
use super::state::E2b;

/// Port of the API in debug mode.
const API: u16 = 3000;

/// Listens at the addresses that the options name.
pub(super) fn listen(e2b: &E2b, routes: &Router) -> Result<Vec<DialectListener>, DialectListenError> {
    let mut listeners = Vec::new();
    let mut add = |address, routes, tls| {
        let listener = bind(address)?;
        listeners.push(DialectListener {
            listener,
            routes,
            tls,
        });
        Ok::<_, DialectListenError>(())
    };
    if e2b.options.debug {
        for port in [API, ENVD, CODE] {
            let routes = routes.clone().layer(Extension(DebugPort(port)));
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            add(address, routes.layer(from_fn(by_programs)), None)?;
        }
    }
    let (options, domain) = (&e2b.options, e2b.domain.as_ref());
    let own = domain.and_then(|domain| domain.address(options.tls));
    if let Some(address) = options.listen.or(own) {
        let routes = routes.clone().layer(from_fn_with_state(e2b.clone(), by_host));
        let certified = domain.filter(|_| options.tls.is_some());
        let tls = certified.map(|domain| domain.certificate(e2b, &e2b.host.authorities));
        add(address, routes, tls.transpose()?)?;
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> Result<tokio::net::TcpListener, DialectListenError> {
    let listening = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    let listener = listening.map_err(|source| DialectListenError::Address { address, source })?;
    tracing::info!(%address, "listening for clients of E2B");
    Ok(listener)
}

/// Lets no web page through: one could make its own name lead here, or send a request whose answer
/// it cannot read.
async fn by_programs(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
    let is_here = host.is_none_or(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host));
    if is_here && !headers.contains_key(ORIGIN) {
        return next.run(request).await;
    }
    let message = "addresses of debug mode are for programs of this machine, and for no web page";
    Problem::new(StatusCode::FORBIDDEN, message).into_response()
}

/// Lets only hosts of the domain through: `api.<domain>`, and those of sandboxes. Pages of other
/// origins reach programs alone, which decide themselves who may read their answers.
async fn by_host(State(e2b): State<E2b>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let authority = text(HOST).unwrap_or_default();
    let host = authority.split(':').next().unwrap_or_default();
    let label = e2b.domain.as_ref().and_then(|domain| domain.label(host));
    let sandbox = of_host(host);
    let is_known = label.is_some_and(|label| label == "api" || sandbox.is_some());
    if !is_known {
        let problem = Problem::not_found(format!(
            "host `{host}` is not one of `dialects: {{e2b: {{domain}}}}`: `api.<domain>`, or \
             `<port>-<id>.<domain>`"
        ));
        return problem.into_response();
    }
    if let Some((port, id)) = &sandbox
        && named(headers) != (Some(id.clone()), *port)
    {
        let message =
            "the headers `E2b-Sandbox-Id` and `E2b-Sandbox-Port` name another sandbox or port than the host";
        return Problem::invalid(message).into_response();
    }
    let is_program = sandbox.is_some_and(|(port, _)| port != ENVD && port != CODE);
    let is_own = |origin: &HeaderValue| {
        let page = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let is_same = page.is_some_and(|(_, page)| page.eq_ignore_ascii_case(authority));
        is_same
            || e2b
                .host
                .origins
                .iter()
                .any(|it| it.as_bytes() == origin.as_bytes())
    };
    if !is_program && !headers.get(ORIGIN).is_none_or(is_own) {
        let message =
            "pages of this origin may not call this server; list it under `http: {origins}` if they should";
        return Problem::new(StatusCode::FORBIDDEN, message).into_response();
    }
    if is_program {
        request.extensions_mut().insert(OwnHost);
    }
    next.run(request).await
}
