//! Keys of the API: who may call, and as whom.
//!
//! A key is a secret of 256 random bits, or of 160 in the form of E2B, of which only the SHA-256 is
//! kept. A password needs a slow hash with a salt, because it can be guessed; nobody guesses so
//! many random bits, whatever one guess costs, and two keys are never the same. So a plain hash is
//! sound, and a key can be looked up by it: which hashes are near one another says nothing about
//! the secrets, so the look-up's time gives nothing away.

mod secret;

use cellblock_agent::wire::Ids;
use cellblock_interpreter::builder::BackendKind;
use cellblock_interpreter::limits::NetworkPolicy;

use crate::records::{Allowance, Records, RecordsError, keys as rows};

pub use crate::records::keys::{ApiKey, ConnectorGrant, KeyLookup};
pub use secret::{Secret, SecretForm};

/// The longest name.
const LONGEST_NAME: usize = 100;

/// Reason that keys cannot be made, listed or revoked.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A name that cannot be one.
    #[error(
        "make a key: its name must have 1 to {LONGEST_NAME} characters, without control \
         and invisible characters"
    )]
    Name,
    /// A name that is taken.
    #[error("make a key: there is a key `{name}` already; revoke it, or choose another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// The first key is to be made, and there is one already.
    #[error("make the first key: there is one already, so that only an administrator's key makes others")]
    NotFirst,
    /// A key that is not there.
    #[error(
        "revoke a key: there is no usable key with the id or name `{wanted}`; `cellblock key list` shows \
         those that there are"
    )]
    Missing {
        /// Name or id that was requested.
        wanted: String,
    },
    /// The records.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// Permissions of a new key.
#[derive(Clone, Debug, Default)]
pub struct KeyTerms {
    /// From when on it is refused, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// Its quotas, if they differ from those that are configured.
    pub allowance: Allowance,
    /// Connectors that its code may call.
    pub connectors: ConnectorGrant,
    /// Weakest backend behind which its code may run.
    pub minimum_backend: Option<BackendKind>,
    /// Widest network policy of its code, if it is narrower than the server's.
    pub max_network: Option<NetworkPolicy>,
    /// Whether it may make, list and revoke keys.
    pub admin: bool,
    /// Form of its secret.
    pub form: SecretForm,
}

/// The keys in a gateway's records.
#[derive(Clone, Debug)]
pub struct Keys {
    records: Records,
}

impl Keys {
    /// The keys of these records.
    pub const fn new(records: Records) -> Self {
        Self { records }
    }

    /// Makes a key. Its secret is given once, here.
    pub async fn create(&self, name: &str, terms: KeyTerms) -> Result<(ApiKey, Secret), KeysError> {
        let secret = Secret::random(terms.form);
        let key = self.insert(name, &secret, terms, false).await?;
        Ok((key, secret))
    }

    /// The same for the key with which a gateway that was open to everybody on its machine is closed.
    pub(crate) async fn create_first(
        &self,
        name: &str,
        terms: KeyTerms,
    ) -> Result<(ApiKey, Secret), KeysError> {
        let secret = Secret::random(terms.form);
        let key = self.insert(name, &secret, terms, true).await?;
        Ok((key, secret))
    }

    /// Accepts a secret that was made elsewhere. Returns `None` if it is accepted already, so that
    /// this can be repeated.
    pub async fn import(
        &self,
        name: &str,
        secret: &Secret,
        terms: KeyTerms,
    ) -> Result<Option<ApiKey>, KeysError> {
        if let KeyLookup::Key(..) = self.find(Some(secret.clone())).await? {
            return Ok(None);
        }
        self.insert(name, secret, terms, false).await.map(Some)
    }

    async fn insert(
        &self,
        name: &str,
        secret: &Secret,
        terms: KeyTerms,
        first: bool,
    ) -> Result<ApiKey, KeysError> {
        let length = name.chars().count();
        if length == 0 || length > LONGEST_NAME || name.chars().any(cellblock_interpreter::text::acts) {
            return Err(KeysError::Name);
        }
        let key = ApiKey {
            id: Ids::random().mint("key"),
            name: name.to_owned(),
            allowance: terms.allowance,
            connectors: terms.connectors,
            minimum_backend: terms.minimum_backend,
            max_network: terms.max_network,
            admin: terms.admin,
            created_at: super::now(),
            expires_at: terms.expires_at,
            revoked_at: None,
            last_used_at: None,
        };
        let (row, hash) = (key.clone(), secret.hash());
        let made = self
            .records
            .with(move |connection| {
                if first && rows::any(connection)? {
                    return Ok(None);
                }
                rows::insert(connection, &row, hash).map(Some)
            })
            .await?;
        let name = || name.to_owned();
        if !made.ok_or(KeysError::NotFirst)? {
            return Err(KeysError::Taken { name: name() });
        }
        tracing::info!(
            target: crate::SECURITY,
            event = "key_created",
            key = key.id,
            name = key.name,
            admin = key.admin
        );
        Ok(key)
    }

    /// All keys, the oldest first; those that were revoked are among them.
    pub async fn list(&self) -> Result<Vec<ApiKey>, KeysError> {
        Ok(self.records.with(|connection| rows::list(connection)).await?)
    }

    /// Revokes a key, by its id or name. From now on it is refused, by gateways that run, too.
    pub async fn revoke(&self, wanted: &str) -> Result<ApiKey, KeysError> {
        let now = super::now();
        let asked = wanted.to_owned();
        let revoked = self
            .records
            .with(move |connection| rows::revoke(connection, &asked, now))
            .await?;
        let key = revoked.ok_or_else(|| KeysError::Missing {
            wanted: wanted.to_owned(),
        })?;
        tracing::info!(target: crate::SECURITY, event = "key_revoked", key = key.id, name = key.name);
        Ok(key)
    }

    /// Returns the connectors that code of an owner may call.
    pub async fn connectors(&self, owner: &str) -> Result<ConnectorGrant, RecordsError> {
        let id = owner.to_owned();
        self.records
            .with(move |connection| rows::connectors(connection, &id))
            .await
    }

    /// Returns the widest network policy of an owner's code; `None` if the server's applies.
    pub async fn max_network(&self, owner: &str) -> Result<Option<NetworkPolicy>, RecordsError> {
        let id = owner.to_owned();
        self.records
            .with(move |connection| rows::max_network(connection, &id))
            .await
    }

    /// Whether a key, by its ID, is there and neither revoked nor expired.
    pub(crate) async fn is_usable(&self, id: &str) -> Result<bool, RecordsError> {
        let (id, now) = (id.to_owned(), super::now());
        self.records
            .with(move |connection| rows::is_usable(connection, &id, now))
            .await
    }

    /// Returns a key, by its ID, if it is neither revoked nor expired.
    pub(crate) async fn usable(&self, id: &str) -> Result<Option<ApiKey>, RecordsError> {
        let (id, now) = (id.to_owned(), super::now());
        let found = self
            .records
            .with(move |connection| rows::get(connection, &id))
            .await?;
        Ok(found.filter(|key| key.is_usable(now)))
    }

    /// Whether any key can be used.
    pub async fn any_usable(&self) -> Result<bool, RecordsError> {
        let now = super::now();
        let keys = self.records.with(|connection| rows::list(connection)).await?;
        Ok(keys.iter().any(|key| key.is_usable(now)))
    }

    /// Looks for the key of a secret.
    pub async fn find(&self, secret: Option<Secret>) -> Result<KeyLookup, RecordsError> {
        let now = super::now();
        let hash = secret.map(|secret| secret.hash());
        self.records
            .with(move |connection| rows::find(connection, hash, now))
            .await
    }
}

#[cfg(test)]
mod tests;
