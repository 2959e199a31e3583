//! An artifact's bytes, piece by piece.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sha2::{Digest, Sha256};

use crate::{ArtifactError, ArtifactId};

/// Reads an artifact in pieces and, after the last one, checks that the bytes match the id.
pub struct Reader {
    id: ArtifactId,
    pieces: BoxStream<'static, object_store::Result<Bytes>>,
    hash: Option<Sha256>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn new(id: ArtifactId, pieces: BoxStream<'static, object_store::Result<Bytes>>) -> Self {
        Self {
            id,
            pieces,
            hash: Some(Sha256::new()),
        }
    }

    /// Returns the next piece; `None` at the end. Do not rely on the bytes before the end, where
    /// the check that none was damaged happens.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ArtifactError> {
        if let Some(piece) = self.pieces.next().await {
            let piece = piece.map_err(ArtifactError::store("read an artifact"))?;
            if let Some(hash) = &mut self.hash {
                hash.update(&piece);
            }
            return Ok(Some(piece));
        }
        match self.hash.take().map(ArtifactId::finish) {
            Some(actual) if actual != self.id => Err(ArtifactError::Damaged { id: self.id, actual }),
            _ => Ok(None),
        }
    }
}
