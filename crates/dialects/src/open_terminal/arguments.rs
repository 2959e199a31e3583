//! Arguments of requests, as a client that speaks Python writes them.

use axum::body::Bytes;
use axum::extract::Query;
use axum::http::Uri;
use cellblock_interpreter::json_error;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};

use super::problem::Problem;

/// Reads a body of JSON.
pub(super) fn json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::invalid(format!("the body is invalid: {}", json_error::describe(&error))))
}

/// Reads the query.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let read = Query::try_from_uri(uri);
    read.map(|Query(read)| read).map_err(|error| {
        let error = json_error::describe(&error.body_text());
        Problem::invalid(format!("the query is invalid: {error}"))
    })
}

/// Returns every value that the query has under a name.
pub(super) fn values(uri: &Uri, name: &str) -> Vec<String> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let named = pairs.filter(|(key, _)| key == name);
    named.map(|(_, value)| value.into_owned()).collect()
}

/// Checks a number's range.
pub(super) fn between<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: T,
    least: T,
    most: T,
) -> Result<T, Problem> {
    if least <= value && value <= most {
        return Ok(value);
    }
    Err(Problem::invalid(format!(
        "invalid `{name}` {value}: it must be between {least} and {most}"
    )))
}

/// Reads a flag of a query; Python writes `True`.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(D::Error::custom(format!("`{text}` is neither true nor false"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Flags {
        #[serde(default, deserialize_with = "flag")]
        force: bool,
    }

    #[test]
    fn a_flag_is_read_as_python_and_javascript_write_it() {
        for (text, force) in [("True", true), ("true", true), ("1", true), ("False", false)] {
            let uri = format!("/x?force={text}").parse().unwrap();
            assert_eq!(query::<Flags>(&uri).unwrap(), Flags { force });
        }
        let problem = query::<Flags>(&"/x?force=maybe".parse().unwrap()).unwrap_err();
        assert!(
            problem.0.message.contains("`maybe` is neither true nor false"),
            "{problem:?}"
        );
    }

    #[test]
    fn a_wrong_body_is_described_without_types_of_rust() {
        let problem = json::<Flags>(&Bytes::from_static(b"5")).unwrap_err();
        let described = "the body is invalid: invalid type: integer `5`, expected an object at line 1";
        assert!(problem.0.message.starts_with(described), "{problem:?}");
    }

    #[test]
    fn a_list_is_a_name_that_is_repeated() {
        let uri = "/x?include=*.py&a=1&include=%2A.rs".parse().unwrap();
        assert_eq!(values(&uri, "include"), ["*.py", "*.rs"]);
    }
}
