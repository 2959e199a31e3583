//! Addresses of the dialect's own: those of debug mode, and the one at which hosts of the domain are expected.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{HOST, ORIGIN};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};

use crate::DialectListenError;

use super::error::Problem;
use super::place::{CODE, DebugPort, ENVD, named};
use super::state::E2b;

/// Port of the API in debug mode.
const API: u16 = 3000;

/// Listens, and serves in the host's tasks.
pub(super) fn start(e2b: &E2b, routes: &Router) -> Result<(), DialectListenError> {
    if e2b.options.debug {
        for port in [API, ENVD, CODE] {
            let routes = routes.clone().layer(Extension(DebugPort(port)));
            let routes = routes.layer(from_fn(by_programs));
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            e2b.host.tasks.spawn(serve(e2b.clone(), listen(address)?, routes));
        }
    }
    if let Some(address) = e2b.options.listen {
        let routes = routes.clone().layer(from_fn_with_state(e2b.clone(), by_host));
        e2b.host.tasks.spawn(serve(e2b.clone(), listen(address)?, routes));
    }
    Ok(())
}

fn listen(address: SocketAddr) -> Result<tokio::net::TcpListener, DialectListenError> {
    let listening = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    let listener = listening.map_err(|source| DialectListenError { address, source })?;
    tracing::info!(%address, "listening for clients of E2B");
    Ok(listener)
}

/// Lets no web page through: one could make its own name lead here, or send a request whose answer it cannot read.
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

/// Lets only hosts of the domain through: `api.<domain>`, and those of sandboxes.
async fn by_host(State(e2b): State<E2b>, request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let label = e2b
        .options
        .domain
        .as_deref()
        .and_then(|domain| host.strip_suffix(domain)?.strip_suffix('.'));
    let is_known = label.is_some_and(|label| label == "api" || named(request.headers()).0.is_some());
    if is_known {
        return next.run(request).await;
    }
    let problem = Problem::not_found(format!(
        "host `{host}` is not one of `dialects: {{e2b: {{domain}}}}`: `api.<domain>`, or `<port>-<id>.<domain>`"
    ));
    problem.into_response()
}

async fn serve(e2b: E2b, listener: tokio::net::TcpListener, routes: Router) {
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let stopping = e2b.host.stopping.clone();
    let served =
        axum::serve(listener, service).with_graceful_shutdown(async move { stopping.cancelled().await });
    let ended = e2b.host.ending.run_until_cancelled(served.into_future()).await;
    if let Some(Err(error)) = ended {
        tracing::error!(error = &error as &dyn std::error::Error, "serve clients of E2B");
    }
}
