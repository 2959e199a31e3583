//! The address at which other gateways reach one.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Address at which other gateways reach one: a URL of a host and a port, such as `http://10.0.0.3:8080`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AdvertisedUrl {
    text: String,
    host: String,
}

/// A text that is not a valid address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid address `{0}`: expected a URL with a host and a port, such as `http://10.0.0.3:8080`")]
pub struct AdvertisedUrlError(String);

impl AdvertisedUrl {
    /// Returns its host, as requests name it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl FromStr for AdvertisedUrl {
    type Err = AdvertisedUrlError;

    fn from_str(text: &str) -> Result<Self, AdvertisedUrlError> {
        let invalid = || AdvertisedUrlError(text.to_owned());
        let url = Url::parse(text).map_err(|_| invalid())?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let anonymous = url.username().is_empty() && url.password().is_none();
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(invalid)?;
        if !matches!(url.scheme(), "http" | "https") || !bare || !anonymous {
            return Err(invalid());
        }
        Ok(Self {
            host: host.to_owned(),
            text: text.trim_end_matches('/').to_owned(),
        })
    }
}

impl TryFrom<String> for AdvertisedUrl {
    type Error = AdvertisedUrlError;

    fn try_from(text: String) -> Result<Self, AdvertisedUrlError> {
        text.parse()
    }
}

impl From<AdvertisedUrl> for String {
    fn from(url: AdvertisedUrl) -> Self {
        url.text
    }
}

impl fmt::Display for AdvertisedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl JsonSchema for AdvertisedUrl {
    fn schema_name() -> Cow<'static, str> {
        "AdvertisedUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "A URL of a host and a port.", "type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_of_a_host_and_a_port_alone() {
        for (text, host) in [
            ("http://10.0.0.3:8080", "10.0.0.3"),
            ("https://[fd00::3]:8443/", "[fd00::3]"),
            ("http://gateway-1.gateways", "gateway-1.gateways"),
        ] {
            let url: AdvertisedUrl = text.parse().unwrap();
            assert_eq!(url.host(), host);
            assert_eq!(url.to_string(), text.trim_end_matches('/'));
        }
        for text in [
            "10.0.0.3:8080",
            "ftp://10.0.0.3",
            "http://ann:secret@10.0.0.3",
            "http://10.0.0.3/v1",
            "http://10.0.0.3?key=1",
            "",
        ] {
            assert!(text.parse::<AdvertisedUrl>().is_err(), "{text}");
        }
    }
}
