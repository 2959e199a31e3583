//! Requests that are passed on to a program of a sandbox that listens on a port.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, HOST, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version};
use axum::response::Response;
use cellblock_interpreter::Error;
use cellblock_interpreter::egress::remove_hop_by_hop;
use cellblock_interpreter::hosting::Held;
use cellblock_interpreter::session::ports::SandboxStream;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::host::DialectHost;
use crate::session::DialectSession;

/// Why a request did not reach a program, or came back without an answer.
#[derive(Debug)]
pub(crate) enum Unforwarded {
    /// The port cannot be reached.
    Closed(Error),
    /// What answered does not speak HTTP, or broke off.
    Broken(String),
}

impl From<hyper::Error> for Unforwarded {
    fn from(error: hyper::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Passes a request on to a port, and its answer back. Other protocols that both agree on pass, too. The headers that are this server's own are
/// left out.
pub(crate) async fn forward<T: Send + Sync + 'static>(
    host: &DialectHost,
    held: Held<DialectSession<T>>,
    port: u16,
    request: Request,
    ours: &[&str],
) -> Result<Response, Unforwarded> {
    let stream = held.session.ports().connect(port).await;
    let stream = stream.map_err(Unforwarded::Closed)?;
    let (mut parts, body) = request.into_parts();
    let client = parts
        .extensions
        .remove::<OnUpgrade>()
        .filter(|_| parts.headers.contains_key(UPGRADE));
    parts.version = Version::HTTP_11;
    clean(&mut parts.headers);
    for name in ours {
        parts.headers.remove(*name);
    }
    let name = HeaderValue::try_from(format!("localhost:{port}"));
    parts
        .headers
        .insert(HOST, name.unwrap_or(HeaderValue::from_static("localhost")));
    let mut response = ask(host, stream, Request::from_parts(parts, body)).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let program = hyper::upgrade::on(&mut response);
        let ending = host.ending.clone();
        if let Some(client) = client {
            host.tasks.spawn(async move {
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

/// Sends a request to a program, and returns its answer.
pub(crate) async fn ask(
    host: &DialectHost,
    stream: SandboxStream,
    request: Request,
) -> hyper::Result<hyper::Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let ending = host.ending.clone();
    // It ends with the answer's body, or with the client.
    tokio::spawn(async move { ending.run_until_cancelled(connection.with_upgrades()).await });
    sender.send_request(request).await
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
