//! Where a server is, and what is proved there.

use std::fmt;
use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::allowed::UrlPattern;

/// Headers that a request has anyway.
const OWN: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];
/// Headers of one server, and their bytes.
const MOST_HEADERS: usize = 32;
const MOST_BYTES: usize = 16 << 10;
/// Bytes of a URL.
const MOST_URL: usize = 2048;

/// A server's URL, with the headers of every request.
#[derive(Clone)]
pub struct Address {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Where a redirect may lead to, where that is less than the whole server.
    pub(super) within: Option<Box<UrlPattern>>,
}

/// Why there is no server at an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is none.
    #[error("read the server's URL: {0}")]
    Url(&'static str),
    /// Anybody could read along.
    #[error(
        "use the server's URL: over `http://` to another machine anybody on the way reads what is sent; use `https://`, or allow it by \
         `allow_http: true`"
    )]
    Plain,
    /// A header is none.
    #[error("read the server's headers: `{name}` {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There are too many.
    #[error(
        "read the server's headers: there are more than {MOST_HEADERS}, or more than {MOST_BYTES} bytes of them"
    )]
    Headers,
}

impl AddressError {
    /// Whether it is about headers, and not about the URL.
    pub const fn is_of_headers(&self) -> bool {
        matches!(self, Self::Header { .. } | Self::Headers)
    }
}

impl Address {
    /// A server at `https://`, or at `http://` on this machine; with `allow_http` on another one too.
    pub fn new(url: &str, headers: &[(String, String)], allow_http: bool) -> Result<Self, AddressError> {
        let url = parse(url)?;
        if url.scheme() == "http" && !allow_http && !is_loopback(&url) {
            return Err(AddressError::Plain);
        }
        Ok(Self {
            url,
            headers: read(headers)?,
            within: None,
        })
    }

    /// The same, of which a redirect does not lead out.
    pub(crate) fn within(mut self, pattern: UrlPattern) -> Self {
        self.within = Some(Box::new(pattern));
        self
    }
}

/// A URL of a server, in the one form that is compared and connected to.
pub(crate) fn parse(text: &str) -> Result<Url, AddressError> {
    let wrong = AddressError::Url;
    if text.len() > MOST_URL {
        return Err(wrong("it is longer than 2048 bytes"));
    }
    // The parser drops or turns these; what a person reads should be what is connected to.
    if text
        .chars()
        .any(|character| character.is_control() || character.is_whitespace() || character == '\\')
    {
        return Err(wrong("it holds blanks, control characters or `\\`"));
    }
    let url = Url::parse(text).map_err(|_| wrong("it is none"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("it has to begin with `https://` or `http://` and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not hold a user or a password; send a header"));
    }
    if url.fragment().is_some() {
        return Err(wrong("it must not have a `#`"));
    }
    Ok(url)
}

fn read(headers: &[(String, String)]) -> Result<HeaderMap, AddressError> {
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if headers.len() > MOST_HEADERS || bytes > MOST_BYTES {
        return Err(AddressError::Headers);
    }
    let mut read = HeaderMap::new();
    for (name, value) in headers {
        let wrong = |why| AddressError::Header {
            name: crate::words::told(name, 100),
            why,
        };
        let parsed: HeaderName = name.parse().map_err(|_| wrong("is no name of a header"))?;
        if OWN.contains(&parsed.as_str())
            || parsed.as_str().starts_with("mcp-")
            || parsed.as_str().starts_with("proxy-")
        {
            return Err(wrong("is set here; remove it"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| wrong("has a value with characters that no header may have"))?;
        value.set_sensitive(true);
        if read.insert(parsed, value).is_some() {
            return Err(wrong("is there twice"));
        }
    }
    Ok(read)
}

/// Whether a URL leads nowhere but to this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some(host) if host == "localhost" || host.ends_with(".localhost") => true,
        Some(host) => {
            let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
            address.is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.keys().collect();
        // A query can hold a secret.
        let (origin, path) = (self.url.origin().ascii_serialization(), self.url.path());
        formatter
            .debug_struct("Address")
            .field("url", &format_args!("{origin}{path}"))
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn another_machine_is_reached_in_the_clear_only_where_that_is_said() {
        for url in [
            "https://a.example/mcp",
            "http://127.0.0.1:1/mcp",
            "http://[::1]/",
            "http://localhost/mcp",
        ] {
            assert!(Address::new(url, &[], false).is_ok(), "{url}");
        }
        for url in [
            "http://a.example/mcp",
            "http://10.0.0.1/",
            "http://localhost.a.example/",
        ] {
            assert!(
                matches!(Address::new(url, &[], false), Err(AddressError::Plain)),
                "{url}"
            );
            assert!(Address::new(url, &[], true).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_is_no_plain_url_is_an_error() {
        for url in [
            "a.example/mcp",
            "ftp://a.example/",
            "file:///etc/passwd",
            "https://user@a.example/",
            "https://:pw@a.example/",
            "https://a.example/#x",
            "https://a.exa\tmple/",
            "https:\\\\a.example/",
            " https://a.example/",
            "https:///",
            "",
        ] {
            assert!(
                matches!(Address::new(url, &[], true), Err(AddressError::Url(_))),
                "{url}"
            );
        }
    }

    #[test]
    fn headers_are_those_that_may_be_set_and_are_never_shown() {
        let address = Address::new(
            "https://a.example/mcp?key=hunter2",
            &header("Authorization", "Bearer hunter2"),
            false,
        )
        .unwrap();
        assert!(!format!("{address:?}").contains("hunter2"), "{address:?}");
        for (name, value) in [
            ("Host", "a"),
            ("Mcp-Session-Id", "a"),
            ("a b", "c"),
            ("x", "a\nb"),
            ("content-length", "5"),
        ] {
            let error = Address::new("https://a.example/", &header(name, value), false).unwrap_err();
            assert!(matches!(error, AddressError::Header { .. }), "{name}");
        }
        let twice = [header("x-a", "1"), header("X-A", "2")].concat();
        assert!(Address::new("https://a.example/", &twice, false).is_err());
        let many: Vec<_> = (0..33)
            .map(|place| (format!("x-{place}"), String::new()))
            .collect();
        assert!(matches!(
            Address::new("https://a.example/", &many, false),
            Err(AddressError::Headers)
        ));
    }
}
