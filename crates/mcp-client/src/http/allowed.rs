//! The servers that a request may name: URL patterns, compared part by part, never as text.

use url::{Host as Named, Url};

use super::address::{AddressError, is_loopback, parse};

/// A pattern for the servers that an operator allows: a host, or all hosts below one, and a path
/// with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    scheme: String,
    host: AllowedHost,
    port: Option<u16>,
    /// Parts of the path, with which a URL's path must start.
    path: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AllowedHost {
    Exact(String),
    /// A host below this one, by one or several labels.
    Below(String),
}

/// The reason why a pattern is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The pattern is not even a valid URL.
    #[error("it is not a URL pattern such as `https://mcp.example.com/` or `https://*.example.com/mcp`")]
    Url(#[source] AddressError),
    /// A star is in the wrong position.
    #[error(
        "`*` is only valid as the first label of a host, followed by at least two others, as in \
         `https://*.example.com/mcp`"
    )]
    Star,
    /// The pattern contains a part that is not compared.
    #[error(
        "it must not have a `?`, nor `%2e`, `%2f`, `%5c` or `%25` in its path, nor end its host with a dot"
    )]
    Part,
    /// The pattern permits unencrypted connections.
    #[error(
        "`http://` sends everything unencrypted to another machine; use `https://`, or permit it with \
         `allow_http: true`"
    )]
    Plain,
}

impl UrlPattern {
    /// Parses a pattern: a URL, whose host may start with `*.`. A path allows itself and everything
    /// below it.
    pub fn new(text: &str, allow_http: bool) -> Result<Self, PatternError> {
        let (below, url) = match text.split_once("://*.") {
            Some((scheme, rest)) => (true, format!("{scheme}://{rest}")),
            None => (false, text.to_owned()),
        };
        if url.contains('*') {
            return Err(PatternError::Star);
        }
        let url = parse(&url).map_err(PatternError::Url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        if url.query().is_some() || host.ends_with('.') || !is_plain(&url) {
            return Err(PatternError::Part);
        }
        if below && (!matches!(url.host(), Some(Named::Domain(_))) || !host.contains('.')) {
            return Err(PatternError::Star);
        }
        if url.scheme() == "http" && !allow_http && (below || !is_loopback(&url)) {
            return Err(PatternError::Plain);
        }
        Ok(Self {
            scheme: url.scheme().to_owned(),
            host: if below {
                AllowedHost::Below(host)
            } else {
                AllowedHost::Exact(host)
            },
            port: url.port_or_known_default(),
            path: parts(&url),
        })
    }

    /// Returns whether the pattern allows a URL.
    pub fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let host = match &self.host {
            AllowedHost::Exact(allowed) => host == allowed,
            AllowedHost::Below(allowed) => {
                let below = host
                    .strip_suffix(allowed.as_str())
                    .and_then(|rest| rest.strip_suffix('.'));
                below.is_some_and(|labels| {
                    !labels.is_empty() && labels.split('.').all(|label| !label.is_empty())
                })
            }
        };
        host && url.scheme() == self.scheme
            && url.port_or_known_default() == self.port
            && url.username().is_empty()
            && url.password().is_none()
            && is_plain(url)
            && parts(url).starts_with(&self.path)
    }
}

/// Returns the parts of a path; an empty last part does not count.
fn parts(url: &Url) -> Vec<String> {
    let mut parts: Vec<_> = url
        .path_segments()
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect();
    while parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    parts
}

/// Returns whether a path is unambiguous: servers differ in when they decode `%2f`, and in the
/// meaning of `..;`.
fn is_plain(url: &Url) -> bool {
    let mut parts = url.path_segments().into_iter().flatten();
    parts.all(|part| {
        let hides = part.split('%').skip(1).any(|rest| {
            let byte = rest
                .get(..2)
                .and_then(|digits| u8::from_str_radix(digits, 16).ok());
            byte.is_none_or(|byte| matches!(byte, b'/' | b'\\' | b'.' | b'%' | b';' | ..b' ' | 0x7f))
        });
        let name = part.split(';').next().unwrap_or_default();
        !hides && !matches!(name, "." | "..")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, url: &str) -> bool {
        let pattern = UrlPattern::new(pattern, true).unwrap();
        // Unreadable URLs are not connected to either.
        parse(url).is_ok_and(|url| pattern.allows(&url))
    }

    #[test]
    fn a_pattern_allows_its_path_and_everything_below() {
        for url in [
            "https://mcp.example.com/mcp",
            "https://mcp.example.com/mcp/",
            "https://mcp.example.com/mcp/a/b?x=1",
            "https://MCP.Example.COM:443/mcp",
            "HTTPS://mcp.example.com/x/../mcp",
            "https://mcp.example.com/mcp/a%20b",
        ] {
            assert!(allows("https://mcp.example.com/mcp/", url), "{url}");
        }
        assert!(allows(
            "https://mcp.example.com",
            "https://mcp.example.com/anything"
        ));
        assert!(allows("http://127.0.0.1:8000/", "http://127.0.0.1:8000/mcp"));
        assert!(allows("http://[::1]:8000/", "http://[0:0:0:0:0:0:0:1]:8000/mcp"));
    }

    #[test]
    fn other_urls_do_not_match() {
        for url in [
            "http://mcp.example.com/mcp",
            "https://mcp.example.com/",
            "https://mcp.example.com/mcpx",
            "https://mcp.example.com/MCP",
            "https://mcp.example.com:8443/mcp",
            "https://mcp.example.com./mcp",
            "https://mcp.example.com.evil.example/mcp",
            "https://evil.example/https://mcp.example.com/mcp",
            "https://mcp.example.com@evil.example/mcp",
            "https://evil.example#@mcp.example.com/mcp",
            "https://evil.example\\@mcp.example.com/mcp",
            "https://user@mcp.example.com/mcp",
            "https://user:pw@mcp.example.com/mcp",
            "https://mcp.example.com/mcp/../admin",
            "https://mcp.example.com/mcp/%2e%2e/admin",
            "https://mcp.example.com/mcp/.%2E/admin",
            "https://mcp.example.com/mcp/..%2fadmin",
            "https://mcp.example.com/mcp/..%5cadmin",
            "https://mcp.example.com/mcp/%252e%252e/admin",
            "https://mcp.example.com/mcp/..;/admin",
            "https://mcp.example.com/mcp/..%3b/admin",
            "https://mcp.example.com/mcp/%00",
            "https://mcp.example.com/mcp/%zz",
            "https://mcp.example.com/mcp\\..\\admin",
            "https://mcp.example.com//mcp",
            "https://mcp\u{3002}example\u{3002}com.evil.example/mcp",
            "https://xn--mcp-example.com/mcp",
            "https://mсp.example.com/mcp",
            "ftp://mcp.example.com/mcp",
            "//mcp.example.com/mcp",
            "https://mcp.exam\tple.com/mcp",
            "",
        ] {
            assert!(!allows("https://mcp.example.com/mcp", url), "{url}");
        }
        assert!(!allows("https://127.0.0.1/", "https://127.0.0.1.evil.example/"));
        assert!(!allows("https://example.com/", "https://mcp.example.com/"));
    }

    #[test]
    fn one_address_in_two_forms_is_one_address() {
        // Full-width letters and the ideographic full stop resolve to the plain name everywhere.
        assert!(allows("https://mcp.example.com/", "https://ｍcp。example.com/"));
        assert!(allows(
            "https://bücher.example/",
            "https://xn--bcher-kva.example/"
        ));
        assert!(allows("https://127.0.0.1/", "https://0x7f.1/"));
        assert!(allows("https://127.0.0.1/", "https://2130706433/"));
    }

    #[test]
    fn a_star_allows_every_host_below_a_domain() {
        let below = |url| allows("https://*.example.com/mcp", url);
        assert!(below("https://a.example.com/mcp"));
        assert!(below("https://a.b.example.com/mcp/x"));
        for url in [
            "https://example.com/mcp",
            "https://.example.com/mcp",
            "https://aexample.com/mcp",
            "https://a.example.com.evil.example/mcp",
            "https://a.example.com./mcp",
            "https://a..example.com/mcp",
            "https://evil.example/.example.com/mcp",
            "https://a.example.com@evil.example/mcp",
        ] {
            assert!(!below(url), "{url}");
        }
    }

    #[test]
    fn ambiguous_and_overly_broad_patterns_are_rejected() {
        for text in [
            "*",
            "https://*",
            "https://*.com/",
            "https://*.1.2.3/",
            "https://a.*.example.com/",
            "https://a*.example.com/",
            "https://a.example.com/*",
        ] {
            assert!(
                matches!(
                    UrlPattern::new(text, true),
                    Err(PatternError::Star | PatternError::Url(_))
                ),
                "{text}"
            );
        }
        for text in [
            "https://a.example/?x",
            "https://a.example./",
            "https://a.example/a%2fb",
        ] {
            let error = UrlPattern::new(text, true);
            assert!(matches!(error, Err(PatternError::Part)), "{text}");
        }
        for text in [
            "a.example",
            "mailto:a@b",
            "https://u@a.example/",
            "https://a.example/#f",
            "",
        ] {
            assert!(
                matches!(UrlPattern::new(text, true), Err(PatternError::Url(_))),
                "{text}"
            );
        }
        for text in [
            "http://a.example/",
            "http://*.localhost.example/",
            "http://10.1.1.1/",
        ] {
            assert!(
                matches!(UrlPattern::new(text, false), Err(PatternError::Plain)),
                "{text}"
            );
        }
        assert!(UrlPattern::new("http://localhost:1234/mcp", false).is_ok());
    }
}
