//! One request, with its turn, its retries and its redirects.

use std::error::Error;
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime};

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind};
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::{Client, Request, Response, redirect};
use serde_json::{Map, Value};
use url::Url;

use super::plan::HttpOperation;
use super::retry_after::retry_after;
use super::{HttpConnector, body};
use crate::address::{PrivateAddress, PublicOnly};
use crate::sent::{RequestParameter, SentAs};
use crate::template::plain;

/// Maximum number of redirects.
const REDIRECTS: usize = 5;
/// Pause before the first retry, which doubles with each.
const PAUSE: Duration = Duration::from_millis(500);
const AGENT: &str = concat!("cellblock/", env!("CARGO_PKG_VERSION"));

impl HttpConnector {
    /// Returns the request of a call.
    pub(super) fn request(
        &self,
        operation: &HttpOperation,
        arguments: &Map<String, Value>,
    ) -> Result<Request, ConnectorError> {
        let invalid = |text: String| self.failed(ConnectorErrorKind::InvalidParameter, &text);
        let path = operation.path.segments(arguments).map_err(invalid)?;
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for (name, template) in &operation.query {
            pairs.extend(template.text(arguments).map(|text| (name.as_str(), text)));
        }
        let (mut fields, mut body) = (Map::new(), None);
        for RequestParameter {
            parameter,
            name,
            form,
        } in &operation.sent
        {
            let Some(value) = arguments.get(parameter).filter(|value| !value.is_null()) else {
                continue;
            };
            match (form, value) {
                (SentAs::Field, value) => drop(fields.insert(name.clone(), value.clone())),
                (SentAs::Body, value) => body = Some(value.clone()),
                (SentAs::Query(None), Value::Array(items)) => {
                    pairs.extend(items.iter().filter_map(plain).map(|text| (name.as_str(), text)));
                }
                (SentAs::Query(Some(separator)), Value::Array(items)) => {
                    let items: Vec<_> = items.iter().filter_map(plain).collect();
                    pairs.push((name, items.join(&separator.to_string())));
                }
                (SentAs::Query(_), value) => pairs.extend(plain(value).map(|text| (name.as_str(), text))),
            }
        }
        if operation.has_body {
            body = body.or(Some(Value::Object(fields)));
        }
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        let mut request = Request::new(operation.method.clone(), url);
        *request.headers_mut() = self.headers(operation, arguments)?;
        if let Some(body) = body {
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.to_string().into());
        }
        Ok(request)
    }

    fn headers(
        &self,
        operation: &HttpOperation,
        arguments: &Map<String, Value>,
    ) -> Result<HeaderMap, ConnectorError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        for (name, template) in &operation.headers {
            let Some(text) = template.text(arguments) else {
                continue;
            };
            let mut value = HeaderValue::from_str(&text).map_err(|_| {
                let text = format!("the header `{name}` would have characters that are invalid in a header");
                self.failed(ConnectorErrorKind::InvalidParameter, &text)
            })?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }

    /// Sends a request until it is answered. Only requests that read are repeated.
    pub(super) async fn answered(
        &self,
        mut request: Request,
        reads: bool,
        until: Instant,
    ) -> Result<Response, ConnectorError> {
        let client = self.client()?;
        let (mut retries, mut redirects) = (0, 0);
        loop {
            self.turn(until).await?;
            let Some(copy) = request.try_clone() else {
                let kind = ConnectorErrorKind::Provider { status: None };
                return Err(self.failed(kind, "the request cannot be sent"));
            };
            let response = client
                .execute(copy)
                .await
                .map_err(|error| self.unreachable(&error))?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if status.is_redirection() {
                let repeats = reads && request.method() == Method::GET && redirects < REDIRECTS;
                *request.url_mut() = self.redirected(&request, &response, repeats)?;
                redirects += 1;
                continue;
            }
            let wait = retry_after(response.headers(), SystemTime::now());
            let repeats = reads && retries < self.retries.count && self.retries.on.contains(&status.as_u16());
            let pause = wait.unwrap_or(PAUSE * 2_u32.pow(retries.min(10)));
            if !repeats || Instant::now() + pause >= until {
                return Err(self.refused(response, wait).await);
            }
            tracing::debug!(connector = self.name, %status, ?pause, "a request is repeated");
            drop(response);
            tokio::time::sleep(pause).await;
            retries += 1;
        }
    }

    fn client(&self) -> Result<&Client, ConnectorError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // An error means that a cryptography provider is already installed, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Through a proxy, the address that is connected to would not be known.
        let mut builder = Client::builder()
            .user_agent(AGENT)
            .no_proxy()
            .redirect(redirect::Policy::none());
        if !self.allow_private {
            builder = builder.dns_resolver(std::sync::Arc::new(PublicOnly));
        }
        let client = builder.build().map_err(|error| self.unreachable(&error))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Checks that the host answers, whatever it answers. The request has no secrets.
    pub(super) async fn reached(&self) -> Result<(), ConnectorError> {
        let request = self.client()?.head(self.base.clone()).timeout(self.calls.timeout);
        let answered = request.send().await;
        answered.map(drop).map_err(|error| self.unreachable(&error))
    }

    /// Waits until the rate permits another request.
    async fn turn(&self, until: Instant) -> Result<(), ConnectorError> {
        let Some(turns) = &self.turns else { return Ok(()) };
        let now = Instant::now();
        match turns.take(now, until) {
            Ok(turn) => {
                tokio::time::sleep_until(turn.into()).await;
                Ok(())
            }
            Err(turn) => {
                let kind = ConnectorErrorKind::RateLimit {
                    retry_after: Some(turn - now),
                };
                let text = "the operator's limit `rate` permits no further request in the time of this \
                            call; make fewer calls";
                Err(self.failed(kind, text))
            }
        }
    }

    /// Returns where a redirect leads, if it is followed.
    fn redirected(
        &self,
        request: &Request,
        response: &Response,
        repeats: bool,
    ) -> Result<Url, ConnectorError> {
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let target = location.and_then(|it| request.url().join(it).ok());
        let status = response.status().as_u16();
        let text = match target {
            Some(target) if target.origin() != self.base.origin() => {
                let host = target.host_str().unwrap_or_default();
                format!(
                    "the server redirects to another address, `{host}`, which is not followed; if the API \
                     has moved, change `base_url`"
                )
            }
            Some(target) if repeats => return Ok(target),
            _ => format!("the server answered with the redirect {status}, which is not followed"),
        };
        Err(self.failed(ConnectorErrorKind::Provider { status: Some(status) }, &text))
    }

    /// Returns the error for an answer that is not a success.
    async fn refused(&self, response: Response, wait: Option<Duration>) -> ConnectorError {
        let status = response.status();
        let kind = match ConnectorErrorKind::of_status(status.as_u16(), wait) {
            // The function exists, so that what it should return does not.
            ConnectorErrorKind::Provider { status: Some(404) } => ConnectorErrorKind::EmptyData,
            kind => kind,
        };
        let detail = body::error(response, |text| self.redaction.text(text).into_owned()).await;
        let reason = status.canonical_reason().unwrap_or_default();
        let mut text = format!("the server answered {} {reason}", status.as_u16());
        // Writing to a string cannot fail.
        if let Some(wait) = wait {
            let _ = write!(text, "; try again after {} s", wait.as_secs());
        }
        if !detail.is_empty() {
            let _ = write!(text, ": {detail}");
        }
        self.failed(kind, &text)
    }

    /// Returns the error of a connection, without its URL, which can contain a secret.
    pub(super) fn unreachable(&self, error: &reqwest::Error) -> ConnectorError {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        let mut last = String::new();
        while let Some(error) = cause {
            if let Some(private) = error.downcast_ref::<PrivateAddress>() {
                let kind = ConnectorErrorKind::Provider { status: None };
                return self.failed(kind, &private.to_string());
            }
            last = error.to_string();
            cause = error.source();
        }
        let mut host = self.base.host_str().unwrap_or_default().to_owned();
        if let Some(port) = self.base.port() {
            let _ = write!(host, ":{port}");
        }
        let what = if error.is_connect() {
            "could not be connected to"
        } else {
            "broke the connection"
        };
        let kind = ConnectorErrorKind::Provider { status: None };
        self.failed(kind, &format!("`{host}` {what}: {last}"))
    }
}
