//! Answers of the proxy itself: what was refused or failed, why, and what the operator can do.

mod reason;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::ext::ReasonPhrase;

use crate::record::EgressDecision;

/// Header by which a client can tell an answer of the proxy from one of the server.
pub(crate) const MARK: HeaderName = HeaderName::from_static("x-cellblock-egress");
/// A request that the proxy does not forward, or could not.
#[derive(Clone, Debug)]
pub(crate) struct EgressRefusal {
    pub(crate) status: StatusCode,
    pub(crate) decision: EgressDecision,
    /// A word for logs and metrics.
    pub(crate) reason: &'static str,
    text: String,
}

impl EgressRefusal {
    /// Returns the text that clients see.
    pub(crate) fn text(&self) -> String {
        format!("egress: {}", self.text)
    }

    /// Returns the value of [`MARK`].
    pub(crate) const fn mark(&self) -> &'static str {
        match self.decision {
            EgressDecision::Failed => "failed",
            EgressDecision::Allowed | EgressDecision::Denied => "denied",
        }
    }

    /// Returns the reason phrase: clients show it when CONNECT is refused, and drop the body.
    pub(crate) fn phrase(&self) -> String {
        let text = self.text();
        let first = text.split(';').next().unwrap_or_default();
        first
            .chars()
            .filter(|c| c.is_ascii_graphic() || *c == ' ')
            .collect()
    }

    pub(crate) fn response(&self, close: bool) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(format!("{}\n", self.text()))));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(MARK, HeaderValue::from_static(self.mark()));
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        if close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Ok(phrase) = ReasonPhrase::try_from(self.phrase().into_bytes()) {
            response.extensions_mut().insert(phrase);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{EgressTarget, HostError};

    #[test]
    fn a_refusal_names_the_host_the_rules_and_the_fix() {
        let target = EgressTarget::parse("b.example:443", None).unwrap();
        let refusal = EgressRefusal::host(&target, "a.example, *.c.example");
        assert_eq!(
            refusal.text(),
            "egress: host `b.example` is not on the allow-list; allowed: a.example, *.c.example; to allow \
             it, the operator adds the rule `b.example` (`--allow b.example`)"
        );
        let response = refusal.response(true);
        assert_eq!(response.status(), 403);
        assert_eq!(response.headers()[MARK], "denied");
        let phrase = response.extensions().get::<ReasonPhrase>().unwrap();
        assert_eq!(
            phrase.as_bytes(),
            b"egress: host `b.example` is not on the allow-list"
        );
    }

    #[test]
    fn text_of_the_sandbox_is_shortened_and_made_visible() {
        let refusal =
            EgressRefusal::invalid_host(&format!("\x1b[2J\r\n`{}", "a".repeat(500)), HostError::Name);
        assert!(refusal.text().contains("`?[2J???aaa"), "{}", refusal.text());
        assert!(refusal.text().len() < 400);
    }
}
