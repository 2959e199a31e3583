//! Destination of the requests of a client connection.

use http::uri::Authority;
use http::{Method, Request, Version};
use hyper::body::Incoming;

use crate::headers::check_host;
use crate::refusal::EgressRefusal;
use crate::target::EgressTarget;

/// Kind of a client connection.
#[derive(Clone, Debug)]
pub(crate) enum Front {
    /// A connection to the proxy.
    Proxy,
    /// The inside of an intercepted connection to a target.
    Inside(EgressTarget),
}

impl Front {
    /// Reads where a request goes; its `Host` header must agree.
    pub(crate) fn target(&self, request: &Request<Incoming>) -> Result<EgressTarget, EgressRefusal> {
        let (uri, headers) = (request.uri(), request.headers());
        let authority = uri.authority().map(Authority::as_str);
        let read = |text: &str, port| {
            EgressTarget::parse(text, port).map_err(|why| EgressRefusal::invalid_host(text, why))
        };
        match self {
            Self::Inside(_) if uri.authority().is_some() => Err(EgressRefusal::malformed(
                "the target of a request inside an encrypted connection must be a path",
            )),
            Self::Inside(target) => {
                check_host(headers, target, 443, true)?;
                Ok(target.clone())
            }
            Self::Proxy if request.method() == Method::CONNECT => {
                let text = authority
                    .ok_or_else(|| EgressRefusal::malformed("CONNECT needs a target `host:port`"))?;
                let target = read(text, None)?;
                check_host(headers, &target, target.port, false)?;
                Ok(target)
            }
            Self::Proxy => match (uri.scheme_str(), authority) {
                (Some("http"), Some(text)) => {
                    let target = read(text, Some(80))?;
                    check_host(headers, &target, 80, request.version() == Version::HTTP_11)?;
                    Ok(target)
                }
                (Some(_), _) => Err(EgressRefusal::malformed(
                    "the scheme is not `http://`; `https://` needs CONNECT, and other schemes \
                     are not supported",
                )),
                (None, _) => Err(EgressRefusal::malformed(
                    "the target is not an absolute URL; send requests for `http://` URLs to this proxy, \
                     and CONNECT for `https://`",
                )),
            },
        }
    }

    /// Returns whether requests are forwarded over TLS.
    pub(crate) const fn encrypted(&self) -> bool {
        matches!(self, Self::Inside(_))
    }
}
