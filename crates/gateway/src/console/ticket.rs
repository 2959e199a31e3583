//! Content of the cookie: a signed ticket that names a key, for a limited time. It never holds the key.

use std::time::Duration;

use ring::hmac::Key;
use serde::{Deserialize, Serialize};

use crate::now;
use crate::problem::Problem;
use crate::random;
use crate::signed::{self, SigningKey};
use crate::state::Gateway;

/// Lifetime of a sign-in.
pub(super) const LIFE: Duration = Duration::from_hours(8);
/// Name of the signing key in the records. Links to ports have another one, so that neither opens
/// what the other does.
const SECRET: SigningKey = SigningKey("console");

/// Somebody who has signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConsoleTicket {
    /// Its own name.
    id: String,
    /// The id of the key.
    pub(super) owner: String,
    /// Expiry, in seconds since 1970.
    pub(super) until: u64,
}

impl ConsoleTicket {
    pub(super) fn new(owner: String) -> Self {
        Self {
            id: format!("{:032x}", u128::from_be_bytes(random())),
            owner,
            until: now().saturating_add(LIFE.as_secs()),
        }
    }

    /// Signs it.
    pub(super) async fn sign(&self, gateway: &Gateway) -> Result<String, Problem> {
        Ok(signed::sign(key(gateway).await?, self))
    }

    /// Reads a ticket that was signed here, has not expired, and was not ended.
    pub(super) async fn open(gateway: &Gateway, text: &str) -> Result<Option<Self>, Problem> {
        let ticket: Option<Self> = signed::verify(key(gateway).await?, text);
        Ok(ticket.filter(|ticket| ticket.until > now() && !gateway.console.has_ended(&ticket.id)))
    }

    /// Ends it before its time.
    pub(super) fn end(self, gateway: &Gateway) {
        gateway.console.end(self.id, self.until);
    }
}

async fn key(gateway: &Gateway) -> Result<&Key, Problem> {
    Ok(SECRET.of(&gateway.records, &gateway.console.key).await?)
}
