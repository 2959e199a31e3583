//! Addresses of servers, with their headers.

use std::fmt;
use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::allowed::UrlPattern;

/// Headers that are always set here.
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
/// Maximum number of headers of a server, and their size in bytes.
const MOST_HEADERS: usize = 32;
const MOST_BYTES: usize = 16 << 10;
/// Maximum length of a URL in bytes.
const MOST_URL: usize = 2048;

/// A server's URL, with the headers of every request.
#[derive(Clone)]
pub struct Address {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Limit for redirects, if it is narrower than the whole server.
    pub(super) within: Option<Box<UrlPattern>>,
}

/// The reason why an address is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The URL is invalid.
    #[error("read the server's URL: {0}")]
    Url(&'static str),
    /// The connection would be unencrypted.
    #[error(
        "use the server's URL: `http://` sends everything unencrypted to another machine; use `https://`, \
         or permit it with `allow_http: true`"
    )]
    Plain,
    /// A header is invalid.
    #[error("read the server's headers: `{name}` {why}")]
    Header {
        /// Name of the header.
        name: String,
        /// The problem.
        why: &'static str,
    },
    /// There are too many headers.
    #[error(
        "read the server's headers: there are more than {MOST_HEADERS}, or more than {MOST_BYTES} bytes \
         of them"
    )]
    Headers,
}

impl AddressError {
    /// Returns whether the error concerns headers rather than the URL.
    pub const fn is_of_headers(&self) -> bool {
        matches!(self, Self::Header { .. } | Self::Headers)
    }
}

impl Address {
    /// Parses the address of a server at `https://`, or at `http://` on this machine; with
    /// `allow_http`, also on others.
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

    /// Limits redirects to a pattern.
    pub(crate) fn within(mut self, pattern: UrlPattern) -> Self {
        self.within = Some(Box::new(pattern));
        self
    }
}

/// Parses a server's URL to the one form that is compared and connected to.
pub(crate) fn parse(text: &str) -> Result<Url, AddressError> {
    let wrong = AddressError::Url;
    if text.len() > MOST_URL {
        return Err(wrong("it is longer than 2048 bytes"));
    }
    // The parser drops or changes these; people must see the URL that is connected to.
    if text.chars().any(|character| {
        cellblock_interpreter::text::acts(character) || character.is_whitespace() || character == '\\'
    }) {
        return Err(wrong("it contains blanks, control characters or `\\`"));
    }
    let url = Url::parse(text).map_err(|_| wrong("it is not a valid URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("it must start with `https://` or `http://` and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not contain a user or a password; use a header"));
    }
    if url.fragment().is_some() {
        return Err(wrong("it must not contain a `#`"));
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
        let parsed: HeaderName = name.parse().map_err(|_| wrong("is not a valid header name"))?;
        if OWN.contains(&parsed.as_str())
            || parsed.as_str().starts_with("mcp-")
            || parsed.as_str().starts_with("proxy-")
        {
            return Err(wrong("is set automatically; remove it"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| wrong("has a value with characters that are invalid in a header"))?;
        value.set_sensitive(true);
        if read.insert(parsed, value).is_some() {
            return Err(wrong("is duplicated"));
        }
    }
    Ok(read)
}

/// Returns whether a URL leads only to this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
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
        // A query can contain a secret.
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
    fn unencrypted_connections_to_other_machines_need_permission() {
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
    fn invalid_and_ambiguous_urls_are_errors() {
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
    fn headers_are_checked_and_never_shown() {
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
