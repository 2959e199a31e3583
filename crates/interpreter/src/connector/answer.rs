//! An answer of a connector, as it is kept and sent.

use std::io::Write as _;

use cellblock_protocol::Blob;
use serde_json::Value;

use super::log::now;
use super::sample::Rows;
use super::schema::DeclaredSchema;
use super::{ConnectorError, ConnectorErrorKind, Redaction};

/// A larger answer is kept in a file.
const MEMORY_BYTES: usize = 1 << 20;

/// An answer as JSON, without secrets.
#[derive(Debug)]
pub(super) struct StoredAnswer {
    pub(super) json: Blob,
    pub(super) fetched_at: String,
    pub(super) rows: Rows,
}

impl StoredAnswer {
    /// Removes the secrets from an answer and checks its type.
    pub(super) fn new(
        mut value: Value,
        returns: Option<&DeclaredSchema>,
        redaction: &Redaction,
    ) -> Result<Self, ConnectorError> {
        let fetched_at = now();
        if let Some(schema) = returns {
            schema.check(&value).map_err(|mistakes| {
                let message =
                    format!("the answer does not match the schema that the function declares: {mistakes}");
                ConnectorError::new(ConnectorErrorKind::Parse, message).redacted(redaction)
            })?;
        }
        redaction.value(&mut value);
        let rows = Rows::of(&value);
        let bytes = serde_json::to_vec(&value).unwrap_or_default();
        drop(value);
        let json = spilled(bytes).map_err(|error| {
            tracing::warn!(%error, "could not keep the answer of a connector");
            let message = "the host could not keep the answer; its operator's log has the reason";
            ConnectorError::new(ConnectorErrorKind::Provider { status: None }, message)
        })?;
        Ok(Self {
            json,
            fetched_at,
            rows,
        })
    }

    /// Returns a copy to send.
    pub(super) fn copy(&self) -> std::io::Result<Blob> {
        Ok(match &self.json {
            Blob::Memory(bytes) => Blob::Memory(bytes.clone()),
            Blob::File(file, length) => Blob::File(file.try_clone()?, *length),
        })
    }
}

fn spilled(bytes: Vec<u8>) -> std::io::Result<Blob> {
    if bytes.len() <= MEMORY_BYTES {
        return Ok(bytes.into());
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(&bytes)?;
    Ok(Blob::File(file, bytes.len() as u64))
}
