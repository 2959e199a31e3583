//! Addresses that code and keys may be sent to.

use reqwest::Url;

use super::error::ExecuteServerError;

/// Reads the base address of a server. Without encryption it must be of this machine, unless that is allowed.
pub(super) fn base(address: &str, allow_plain: bool) -> Result<Url, ExecuteServerError> {
    let wrong =
        |reason: String| ExecuteServerError::Request(format!("the address of the execution server {reason}"));
    let mut url = Url::parse(address).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong(
            "has to begin with `http://` or `https://` and a host".to_owned(),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "must not hold a password; give the key by itself".to_owned(),
        ));
    }
    if url.scheme() == "http" && !allow_plain && !is_here(&url) {
        return Err(wrong(
            "would let code and data travel unencrypted to another machine; use `https://`, or allow it"
                .to_owned(),
        ));
    }
    url.set_query(None);
    url.set_fragment(None);
    let path = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn is_here(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}
