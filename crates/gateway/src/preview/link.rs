//! Signed links to a port of a session, for browsers, which cannot send a key.

use std::time::Duration;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cellblock_agent::wire::ErrorKind;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::now;
use crate::problem::Problem;
use crate::random;
use crate::records::responses;
use crate::state::{Caller, Gateway};

/// Name of the key in the records.
const SECRET: &str = "preview";

/// What a link allows: requests to one port of one session, until it expires.
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
        Ok(self.signed(key(gateway).await?))
    }

    /// Reads a link that was signed here, has not expired, and whose key is still valid.
    pub(crate) async fn open(gateway: &Gateway, text: &str) -> Result<Self, Problem> {
        let link = Self::verified(key(gateway).await?, text).ok_or_else(Self::unknown)?;
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
        if !Caller::is_local(&link.owner) && !gateway.keys.is_usable(&link.owner).await? {
            return Err(Self::unknown());
        }
        Ok(link)
    }

    /// The answer to a link that leads nowhere.
    pub(super) fn unknown() -> Problem {
        let message = "this link was not made here, was changed, or its key is no longer valid";
        Problem::missing("link_not_found", message)
    }

    fn signed(&self, key: &Key) -> String {
        let text = json!(self).to_string();
        let signature = sign(key, text.as_bytes());
        URL_SAFE_NO_PAD.encode([signature.as_ref(), text.as_bytes()].concat())
    }

    fn verified(key: &Key, text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signature, text) = bytes.split_at_checked(HMAC_SHA256.digest_algorithm().output_len())?;
        verify(key, text, signature).ok()?;
        serde_json::from_slice(text).ok()
    }
}

/// The gateway's own, which is made once and kept in the records.
async fn key(gateway: &Gateway) -> Result<&Key, Problem> {
    let key = gateway.preview_key.get_or_try_init(|| async {
        let new = random::<32>();
        let read = gateway
            .records
            .with(move |database| responses::secret(database, SECRET, &new));
        Ok(Key::new(HMAC_SHA256, &read.await?))
    });
    key.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_was_changed_or_signed_with_another_key_is_none() {
        let key = |byte| Key::new(HMAC_SHA256, &[byte; 32]);
        let link = PreviewLink::new(
            "ann".to_owned(),
            "sess_1".to_owned(),
            8000,
            Duration::from_mins(1),
        );
        let text = link.signed(&key(1));
        assert_eq!(PreviewLink::verified(&key(1), &text), Some(link));
        assert_eq!(PreviewLink::verified(&key(2), &text), None);
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert_eq!(
                PreviewLink::verified(&key(1), &URL_SAFE_NO_PAD.encode(&changed)),
                None
            );
            assert_eq!(
                PreviewLink::verified(&key(1), &URL_SAFE_NO_PAD.encode(&bytes[..place])),
                None
            );
        }
    }
}
