//! Metadata of files: clients send it in headers, and files keep it as extended attributes.

use std::collections::BTreeMap;

use axum::http::HeaderMap;

use super::super::error::{Answer, Problem};

/// Beginning of the headers' names.
const PREFIX: &str = "x-metadata-";
/// Maximum size of a name: that of Linux for an attribute without its namespace.
const MAX_NAME: usize = 246;
/// Maximum size of all names, values and namespaces of a file.
const MAX_SIZE: usize = 4096;
/// Size of the namespace `user.e2b.`.
const NAMESPACE: usize = 9;

/// Reads the metadata of a request's files.
pub(super) fn read(headers: &HeaderMap) -> Answer<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix(PREFIX) else {
            continue;
        };
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        let value = value.ok_or_else(|| {
            Problem::invalid(format!(
                "`{name}`: the value is not printable US-ASCII; encode it"
            ))
        })?;
        if key.is_empty() || key.len() > MAX_NAME {
            return Err(Problem::invalid(format!(
                "`{name}`: a name of metadata has {} bytes, the limit is 1 to {MAX_NAME}",
                key.len()
            )));
        }
        all.insert(key.to_owned(), value.to_owned());
    }
    let size: usize = all
        .iter()
        .map(|(key, value)| NAMESPACE + key.len() + value.len())
        .sum();
    if size > MAX_SIZE {
        return Err(Problem::invalid(format!(
            "`X-Metadata-…`: the metadata has {size} bytes, the limit is {MAX_SIZE}; send less"
        )));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(name: &str, value: &[u8]) -> HeaderMap {
        let name: HeaderName = format!("X-Metadata-{name}").parse().unwrap();
        HeaderMap::from_iter([(name, HeaderValue::from_bytes(value).unwrap())])
    }

    #[test]
    fn metadata_has_the_limits_of_extended_attributes() {
        let read = |name: &str, value: &[u8]| read(&headers(name, value));
        assert_eq!(read("Author", b"me").unwrap()["author"], "me");
        assert!(read(&"a".repeat(246), b"").is_ok());
        assert!(read("a", &[b'v'; 4086]).is_ok());
        let long = "a".repeat(247);
        for (name, value) in [
            ("", b"v".as_slice()),
            (&long, b""),
            ("a", &[b'v'; 4087]),
            ("a", b"\xff"),
        ] {
            assert!(read(name, value).is_err(), "{name}");
        }
        assert!(super::read(&HeaderMap::new()).unwrap().is_empty());
    }
}
