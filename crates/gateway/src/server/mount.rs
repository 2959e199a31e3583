//! Services of other crates behind all that stands before the gateway's own routes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use cellblock_agent::wire::ApiError;
use tower::Service;

use crate::replicas::{MountedAt, mounted};
use crate::state::Gateway;

/// Builds the response to a rejected request from its reason.
pub type Form = fn(&str) -> String;

/// A service of another crate. Requests come to it counted, with names and pages checked, and with
/// a [`Caller`](crate::Caller) in their extensions unless it reads keys itself. It bounds their
/// bodies itself.
#[derive(Clone, Debug)]
pub struct Mount {
    path: Arc<str>,
    route: Router<Gateway>,
    named: Option<fn(&Parts) -> Option<String>>,
    form: Option<Form>,
    read: Vec<HeaderName>,
    written: Vec<HeaderName>,
    own_keys: bool,
}

impl Mount {
    /// Answers at a path and all below it with routes that read keys themselves, by
    /// [`Gateway::identify`]. The path is none of the gateway's own.
    pub fn below(path: &str, routes: Router) -> Self {
        Self {
            path: path.into(),
            named: None,
            form: None,
            route: Router::new().nest_service(path, routes),
            read: Vec::new(),
            written: Vec::new(),
            own_keys: true,
        }
    }

    /// Answers at a path with a service, whatever the method. The path is none of the gateway's own.
    pub fn new<S>(path: &str, service: S) -> Self
    where
        S: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        Self {
            path: path.into(),
            named: None,
            form: None,
            route: Router::new().route_service(path, service),
            read: Vec::new(),
            written: Vec::new(),
            own_keys: false,
        }
    }

    /// Finds in requests that present no key the id of a session, which begins with the
    /// [mark](Gateway::mark) of the gateway that made it.
    #[must_use]
    pub fn naming(mut self, named: fn(&Parts) -> Option<String>) -> Self {
        self.named = Some(named);
        self
    }

    /// Tells its clients in this form, as JSON, why the gateway did not let a request through to it.
    #[must_use]
    pub fn refusing(mut self, form: Form) -> Self {
        self.form = Some(form);
        self
    }

    /// Lets pages of configured origins send these headers and read those, beside the gateway's
    /// own. Names are in lower case.
    #[must_use]
    pub fn headers(mut self, read: &[&'static str], written: &[&'static str]) -> Self {
        self.read = read.iter().copied().map(HeaderName::from_static).collect();
        self.written = written.iter().copied().map(HeaderName::from_static).collect();
        self
    }

    /// Its route, behind what sends requests to the gateway that has their sessions.
    pub(super) fn route(&self, gateway: &Gateway) -> Router<Gateway> {
        let at = MountedAt {
            gateway: gateway.clone(),
            path: Arc::clone(&self.path),
            named: self.named,
            own_keys: self.own_keys,
        };
        self.route.clone().layer(from_fn_with_state(at, mounted))
    }

    /// Whether it says itself who calls.
    pub(super) fn has_own_keys(&self) -> bool {
        self.own_keys
    }

    /// The headers of requests that it reads.
    pub(super) fn read(&self) -> &[HeaderName] {
        &self.read
    }

    /// The headers of answers that it writes.
    pub(super) fn written(&self) -> &[HeaderName] {
        &self.written
    }
}

/// Reason that a request was not let through, in addition to the answer in the API's form.
#[derive(Clone, Debug)]
pub(super) struct AuthRefusal(String);

/// The answer to a request that is not let through.
pub(super) fn refused(mut response: Response, error: &ApiError) -> Response {
    response
        .extensions_mut()
        .insert(AuthRefusal(error.message.clone()));
    response
}

/// Puts refusals into the form of the service that the request was for.
pub(super) async fn speak(State(mounts): State<Vec<Mount>>, request: Request, next: Next) -> Response {
    let mut mounts = mounts.iter();
    let form = mounts
        .find(|mount| *mount.path == *request.uri().path())
        .and_then(|mount| mount.form);
    let mut response = next.run(request).await;
    if let Some(form) = form
        && let Some(AuthRefusal(why)) = response.extensions_mut().remove()
    {
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::from(form(&why));
    }
    response
}
