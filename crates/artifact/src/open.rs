//! Opening a store by its address.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::{ArtifactError, Store};

impl Store {
    /// Opens the store at an address: `memory:`, a folder (`/var/lib/x`, `file:///var/lib/x`), or,
    /// with the feature `s3`,
    /// `s3://bucket/prefix`.
    pub async fn open(address: &str) -> Result<Self, ArtifactError> {
        if address == "memory:" {
            return Ok(Self::new(Arc::new(InMemory::new())));
        }
        if address.starts_with("s3://") {
            return Self::open_s3(address).await;
        }
        let path = address.strip_prefix("file://").unwrap_or(address);
        if path.starts_with('/') && !path.contains("//") {
            return Self::local(PathBuf::from(path));
        }
        let why = "expected memory:, an absolute path, file:///path or s3://bucket/prefix";
        Err(ArtifactError::address(address, why))
    }

    #[cfg(feature = "s3")]
    async fn open_s3(address: &str) -> Result<Self, ArtifactError> {
        Self::s3(crate::S3::at(address)?).await
    }

    #[cfg(not(feature = "s3"))]
    #[expect(clippy::unused_async, reason = "it waits if the feature is enabled")]
    async fn open_s3(address: &str) -> Result<Self, ArtifactError> {
        Err(without_s3(address))
    }
}

/// Returns the objects below `s3://bucket/prefix`, with the credentials and the endpoint of the
/// environment, as [`Store::open`] does. Sends nothing; requests are repeated after temporary
/// failures for at most `patience`.
#[cfg(feature = "s3")]
pub fn objects(address: &str, patience: Duration) -> Result<Arc<dyn ObjectStore>, ArtifactError> {
    crate::S3::at(address)?.objects(patience)
}

/// Fails, because the feature `s3` is not enabled.
#[cfg(not(feature = "s3"))]
pub fn objects(address: &str, _patience: Duration) -> Result<Arc<dyn ObjectStore>, ArtifactError> {
    Err(without_s3(address))
}

/// Checks an address for [`objects`], without the environment.
pub fn check_objects(address: &str) -> Result<(), ArtifactError> {
    #[cfg(feature = "s3")]
    return crate::S3::at(address).map(drop);
    #[cfg(not(feature = "s3"))]
    Err(without_s3(address))
}

#[cfg(not(feature = "s3"))]
fn without_s3(address: &str) -> ArtifactError {
    ArtifactError::address(address, cellblock_settings::MissingFeature("s3").to_string())
}
