//! Signed links to a port of a session, for browsers, which cannot send a key.

use std::time::Duration;

use axum::http::StatusCode;
use cellblock_agent::wire::ErrorKind;
use ring::hmac::Key;
use serde::{Deserialize, Serialize};

use crate::now;
use crate::problem::Problem;
use crate::signed::{self, SigningKey};
use crate::state::Gateway;

/// The key of links.
const SECRET: SigningKey = SigningKey("preview");

/// Permission of a link: requests to one port of one session, until it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviewLink {
    pub(crate) owner: String,
    pub(crate) session: String,
    pub(crate) port: u16,
    /// Seconds since 1970.
    pub(crate) until: u64,
    /// Whether the answer is for a host of the port's own. Such a link is never given away.
    #[serde(default)]
    pub(crate) own_host: bool,
}

impl PreviewLink {
    /// Returns a link for a time.
    pub(crate) fn new(owner: String, session: String, port: u16, time: Duration) -> Self {
        Self {
            owner,
            session,
            port,
            until: now().saturating_add(time.as_secs()),
            own_host: false,
        }
    }

    /// Signs it.
    pub(crate) async fn sign(&self, gateway: &Gateway) -> Result<String, Problem> {
        Ok(signed::sign(key(gateway).await?, self))
    }

    /// Reads a link that was signed here, has not expired, and whose key is still valid.
    pub(crate) async fn open(gateway: &Gateway, text: &str) -> Result<Self, Problem> {
        let link: Self = signed::verify(key(gateway).await?, text).ok_or_else(Self::unknown)?;
        if link.until <= now() {
            let message = "this link has expired; make another one";
            return Err(Problem::new(
                StatusCode::GONE,
                ErrorKind::NotFound,
                "link_expired",
                message,
            ));
        }
        // It is worth no more than the key that made it.
        if !gateway.admits(&link.owner).await? {
            return Err(Self::unknown());
        }
        Ok(link)
    }

    /// The answer to a link that leads nowhere.
    pub(super) fn unknown() -> Problem {
        let message = "this link was not made here, was changed, or its key is no longer valid";
        Problem::missing("link_not_found", message)
    }
}

/// The gateway's own, which is made once and kept in the records.
async fn key(gateway: &Gateway) -> Result<&Key, Problem> {
    Ok(SECRET.of(&gateway.records, &gateway.preview_key).await?)
}
