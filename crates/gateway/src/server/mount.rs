//! Services of other crates behind all that stands before the gateway's own routes.

use std::convert::Infallible;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderName;
use axum::response::IntoResponse;
use tower::Service;

use super::Gateway;

/// A service at one path. Requests come to it counted, with names and pages checked, and with a [`Caller`](super::Caller) in their extensions.
/// It bounds their bodies itself.
#[derive(Clone, Debug)]
pub struct Mount {
    route: Router<Gateway>,
    read: Vec<HeaderName>,
    written: Vec<HeaderName>,
}

impl Mount {
    /// Answers at a path with a service, whatever the method. The path is none of the gateway's own.
    pub fn new<S>(path: &str, service: S) -> Self
    where
        S: Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Response: IntoResponse,
        S::Future: Send + 'static,
    {
        Self {
            route: Router::new().route_service(path, service),
            read: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Lets pages of configured origins send these headers and read those, beside the gateway's own. Names are in lower case.
    #[must_use]
    pub fn headers(mut self, read: &[&'static str], written: &[&'static str]) -> Self {
        self.read = read.iter().copied().map(HeaderName::from_static).collect();
        self.written = written.iter().copied().map(HeaderName::from_static).collect();
        self
    }

    pub(super) fn route(&self) -> Router<Gateway> {
        self.route.clone()
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
