//! Programs in a sandbox that listen on a port: requests that name it are passed on.

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::header::{CONNECTION, HOST, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, Version};
use axum::response::Response;
use cellblock_interpreter::Error;
use cellblock_interpreter::egress::remove_hop_by_hop;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::error::{Answer, Problem};
use super::place::{self, CODE, DebugPort, ENVD, Open};
use super::state::E2b;

/// Headers that are for this server alone.
const OURS: [&str; 5] = [
    "x-api-key",
    "x-access-token",
    "e2b-sandbox-id",
    "e2b-sandbox-port",
    "e2b-traffic-access-token",
];
/// Passes a request on to the port that it names; one for the daemon or the interpreter is unknown.
pub(super) async fn forward(State(e2b): State<E2b>, request: Request) -> Answer<Response> {
    let (mut parts, body) = request.into_parts();
    let (id, port) = place::named(&parts.headers);
    let is_debug = parts.extensions.get::<DebugPort>().is_some();
    if is_debug || id.is_none() || port == ENVD || port == CODE {
        let message = format!(
            "{} {} is not a route of E2B's API that Cellblock serves",
            parts.method,
            parts.uri.path()
        );
        return Err(Problem::not_found(message));
    }
    let open = Open::from_request_parts(&mut parts, &e2b).await?;
    let stream = open
        .held
        .session
        .ports()
        .connect(port)
        .await
        .map_err(|error| closed(port, error))?;
    let client = parts
        .extensions
        .remove::<OnUpgrade>()
        .filter(|_| parts.headers.contains_key(UPGRADE));
    parts.uri = there(&parts.uri)?;
    parts.version = Version::HTTP_11;
    clean(&mut parts.headers);
    for name in OURS {
        parts.headers.remove(name);
    }
    parts.headers.insert(HOST, host(port));
    let failed = |error: hyper::Error| {
        let message = format!("the program on port {port} did not answer in HTTP: {error}");
        Problem::new(StatusCode::BAD_GATEWAY, message)
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let ending = e2b.host.ending.clone();
    // It ends with the answer's body, or with the client.
    tokio::spawn(async move { ending.run_until_cancelled(connection.with_upgrades()).await });
    let mut response = sender
        .send_request(Request::from_parts(parts, body))
        .await
        .map_err(failed)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let program = hyper::upgrade::on(&mut response);
        let ending = e2b.host.ending.clone();
        let held = open.held;
        if let Some(client) = client {
            e2b.host.tasks.spawn(async move {
                let _held = held;
                let joined = async {
                    let (client, program) = tokio::try_join!(client, program)?;
                    let (mut client, mut program) = (TokioIo::new(client), TokioIo::new(program));
                    // Either may end it at any time.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut program).await;
                    Ok::<_, hyper::Error>(())
                };
                ending.run_until_cancelled(joined).await
            });
        }
    } else {
        clean(response.headers_mut());
    }
    Ok(response.map(Body::new))
}

fn there(uri: &Uri) -> Answer<Uri> {
    let path = uri.path_and_query().map_or("/", |it| it.as_str());
    path.parse()
        .map_err(|_| Problem::invalid(format!("{path:?} is not a path")))
}

fn host(port: u16) -> HeaderValue {
    HeaderValue::try_from(format!("localhost:{port}")).unwrap_or(HeaderValue::from_static("localhost"))
}

/// Removes headers about the connection, except those that ask for another protocol.
fn clean(headers: &mut HeaderMap) {
    let protocol = headers.get(UPGRADE).cloned();
    remove_hop_by_hop(headers);
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    }
}

/// E2B's words for a port on which nobody listens: clients take others for an end of the sandbox.
fn closed(port: u16, error: Error) -> Problem {
    match error {
        Error::Port(reason) => Problem::new(
            StatusCode::BAD_GATEWAY,
            format!("The sandbox is running but port is not open: {port}: {reason}"),
        ),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn headers_about_the_connection_do_not_pass() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, x-secret"),
            ("x-secret", "1"),
            ("accept", "*/*"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        clean(&mut headers);
        assert_eq!(headers.len(), 1);
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        clean(&mut headers);
        assert_eq!(
            headers.get(CONNECTION),
            Some(&HeaderValue::from_static("upgrade"))
        );
    }
}
