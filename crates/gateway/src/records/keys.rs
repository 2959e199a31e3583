//! Keys in the records.

use cellblock_interpreter::builder::BackendKind;
use cellblock_interpreter::limits::NetworkPolicy;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Allowance;
use super::database::{Database, DatabaseResult, DatabaseRow, params};

/// Connectors that code of a key may call. A key without a grant has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConnectorGrant(BTreeSet<String>);

impl ConnectorGrant {
    /// Stands for all connectors, also for those that are configured later.
    const ALL: &str = "*";

    /// Grants the connectors of these names; `*` grants all.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Whether the connector of this name is granted.
    pub fn allows(&self, name: &str) -> bool {
        self.0.contains(Self::ALL) || self.0.contains(name)
    }

    /// Returns the names that are granted, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id, which owns what it makes.
    pub id: String,
    /// Name that a person gave to it. No two keys that can be used have the same name.
    pub name: String,
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
    /// Time of its creation, in seconds since 1970.
    pub created_at: u64,
    /// From when on it is refused.
    pub expires_at: Option<u64>,
    /// Since when it is refused.
    pub revoked_at: Option<u64>,
    /// Time of its last use, accurate to some seconds.
    pub last_used_at: Option<u64>,
}

impl ApiKey {
    /// Whether it can be used at a time.
    pub fn is_usable(&self, now: u64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Result of looking up a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyLookup {
    /// There are no keys, and never were.
    Open,
    /// The key with this id, and the weakest backend behind which its code may run.
    Key(String, Option<BackendKind>),
    /// A key that has expired.
    Expired,
    /// A key that was revoked.
    Revoked,
    /// No key.
    Unknown,
}

const COLUMNS: &str = "id, name, allowance, created_at, expires_at, revoked_at, last_used_at, connectors, \
                       minimum_backend, max_network, admin";

/// Adds a key, unless one that was not revoked has its name.
pub(crate) fn insert(database: &Database, key: &ApiKey, hash: [u8; 32]) -> DatabaseResult<bool> {
    let sql = "INSERT INTO keys (id, name, hash, allowance, created_at, expires_at, connectors, \
               minimum_backend, max_network, admin) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON \
               CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING";
    let allowance = serde_json::to_string(&key.allowance).unwrap_or_default();
    let made = database.execute(
        sql,
        params![
            key.id,
            key.name,
            hash,
            allowance,
            signed(key.created_at),
            key.expires_at.map(signed),
            serde_json::to_string(&key.connectors).unwrap_or_default(),
            key.minimum_backend.map(BackendKind::name),
            key.max_network.map(NetworkPolicy::name),
            key.admin,
        ],
    )?;
    Ok(made == 1)
}

/// Whether there is a key, or ever was one.
pub(crate) fn any(database: &Database) -> DatabaseResult<bool> {
    database.exists("SELECT 1 FROM keys LIMIT 1", &[])
}

/// All keys, the oldest first.
pub(crate) fn list(database: &Database) -> DatabaseResult<Vec<ApiKey>> {
    let sql = format!("SELECT {COLUMNS} FROM keys ORDER BY created_at, rowid");
    database.query(&sql, &[], key)
}

/// A key by its id.
pub(crate) fn get(database: &Database, id: &str) -> DatabaseResult<Option<ApiKey>> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE id = ?1");
    database.first(&sql, params![id], key)
}

/// Revokes a usable key by its id or name.
pub(crate) fn revoke(database: &Database, wanted: &str, now: u64) -> DatabaseResult<Option<ApiKey>> {
    let sql = format!(
        "UPDATE keys SET revoked_at = ?2 WHERE revoked_at IS NULL AND (id = ?1 OR name = \
         ?1) RETURNING {COLUMNS}"
    );
    database.first(&sql, params![wanted, signed(now)], key)
}

/// Looks for a key by the hash of its secret.
pub(crate) fn find(database: &Database, hash: Option<[u8; 32]>, now: u64) -> DatabaseResult<KeyLookup> {
    let sql = "SELECT id, expires_at, revoked_at, minimum_backend FROM keys WHERE hash = ?1";
    let row = match hash {
        Some(hash) => {
            let row =
                |row: &DatabaseRow<'_>| Ok((row.get(0)?, time(row, 1)?, time(row, 2)?, minimum(row, 3)?));
            database.first(sql, params![hash], row)?
        }
        None => None,
    };
    if let Some((id, expires_at, revoked_at, minimum)) = row {
        return Ok(match (expires_at, revoked_at) {
            (_, Some(_)) => KeyLookup::Revoked,
            (Some(end), None) if end <= now => KeyLookup::Expired,
            _ => KeyLookup::Key(id, minimum),
        });
    }
    Ok(if any(database)? {
        KeyLookup::Unknown
    } else {
        KeyLookup::Open
    })
}

/// Whether a key is there and neither revoked nor expired.
pub(crate) fn is_usable(database: &Database, id: &str, now: u64) -> DatabaseResult<bool> {
    let sql =
        "SELECT 1 FROM keys WHERE id = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)";
    database.exists(sql, params![id, signed(now)])
}

/// Returns the quotas of a key, if it has any; `None` if there is no such key.
pub(crate) fn allowance(database: &Database, id: &str) -> DatabaseResult<Option<Allowance>> {
    let sql = "SELECT allowance FROM keys WHERE id = ?1";
    database.first(sql, params![id], |row| Ok(parse(&row.get::<String>(0)?)))
}

/// Returns the connectors of a key; none if there is no such key.
pub(crate) fn connectors(database: &Database, id: &str) -> DatabaseResult<ConnectorGrant> {
    let sql = "SELECT connectors FROM keys WHERE id = ?1";
    let found = database.first(sql, params![id], |row| Ok(grant(&row.get::<String>(0)?)));
    Ok(found?.unwrap_or_default())
}

/// Returns the widest network policy of a key; `None` if there is no such key, or it has none of its own.
pub(crate) fn max_network(database: &Database, id: &str) -> DatabaseResult<Option<NetworkPolicy>> {
    let sql = "SELECT max_network FROM keys WHERE id = ?1";
    let found = database.first(sql, params![id], |row| network(row, 0))?;
    Ok(found.flatten())
}

/// Remembers when a key was last used.
pub(crate) fn used(database: &Database, id: &str, at: u64) -> DatabaseResult<()> {
    let sql =
        "UPDATE keys SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)";
    database.execute(sql, params![id, signed(at)])?;
    Ok(())
}

fn key(row: &DatabaseRow<'_>) -> DatabaseResult<ApiKey> {
    Ok(ApiKey {
        id: row.get(0)?,
        name: row.get(1)?,
        allowance: parse(&row.get::<String>(2)?),
        created_at: time(row, 3)?.unwrap_or_default(),
        expires_at: time(row, 4)?,
        revoked_at: time(row, 5)?,
        last_used_at: time(row, 6)?,
        connectors: grant(&row.get::<String>(7)?),
        minimum_backend: minimum(row, 8)?,
        max_network: network(row, 9)?,
        admin: row.is(10)?,
    })
}

/// Reads the minimum backend; an unreadable value means the strongest one.
fn minimum(row: &DatabaseRow<'_>, index: usize) -> DatabaseResult<Option<BackendKind>> {
    let name: Option<String> = row.get(index)?;
    Ok(name.map(|name| name.parse().unwrap_or(BackendKind::Microvm)))
}

/// Reads the network policy; an unreadable value means no network.
fn network(row: &DatabaseRow<'_>, index: usize) -> DatabaseResult<Option<NetworkPolicy>> {
    let name: Option<String> = row.get(index)?;
    Ok(name.map(|name| name.parse().unwrap_or_default()))
}

/// Parses an allowance; an unreadable one allows no more than the configured quotas.
fn parse(allowance: &str) -> Allowance {
    serde_json::from_str(allowance).unwrap_or_default()
}

/// Parses a grant; an unreadable one grants nothing.
fn grant(connectors: &str) -> ConnectorGrant {
    serde_json::from_str(connectors).unwrap_or_default()
}

fn time(row: &DatabaseRow<'_>, column: usize) -> DatabaseResult<Option<u64>> {
    let seconds: Option<i64> = row.get(column)?;
    Ok(seconds.map(|seconds| u64::try_from(seconds).unwrap_or(0)))
}

fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
