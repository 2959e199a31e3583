//! Requests that are forwarded to a program of a sandbox that listens on a port.

use axum::body::Body;
use axum::extract::Request;
use axum::http::Uri;
use axum::response::Response;
use cellblock_interpreter::Error;
use cellblock_interpreter::egress::inbound::{ForwardError, ForwardScope, ProgramPort, forward, program_uri};
use cellblock_interpreter::hosting::ResidentGuard;

use crate::host::DialectHost;
use crate::session::DialectSession;

/// A request did not reach a program, or got no answer.
#[derive(Debug)]
pub(crate) enum ForwardFailure {
    /// The path is not one.
    Path(String),
    /// The port cannot be reached.
    Closed(Error),
    /// The program does not speak HTTP, or broke off.
    Broken(ForwardError),
}

/// Forwards a request for a path below a prefix to a program, and returns its answer.
pub(crate) async fn to_program<T: Send + Sync + 'static>(
    host: &DialectHost,
    held: ResidentGuard<DialectSession<T>>,
    program: &ProgramPort,
    prefix: &str,
    mut request: Request,
) -> Result<Response, ForwardFailure> {
    *request.uri_mut() = program_uri(request.uri(), prefix).map_err(ForwardFailure::Path)?;
    let stream = held.session.ports().connect(program.port).await;
    let stream = stream.map_err(ForwardFailure::Closed)?;
    let scope = ForwardScope {
        tasks: host.tasks.clone(),
        ending: host.ending.clone(),
    };
    let answer = forward(program, stream, request, &scope, held).await;
    Ok(answer.map_err(ForwardFailure::Broken)?.map(Body::new))
}

/// Returns the path of the dialect for clients: what comes before the path that its routes see.
pub(crate) fn mounted_at<'a>(original: &'a str, uri: &Uri) -> &'a str {
    original.strip_suffix(uri.path()).unwrap_or_default()
}
