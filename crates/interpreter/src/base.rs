//! Starting point of sandboxes: an image of this machine, or, with the feature `remote`, one that another
//! Cellblock has.

use std::fmt::{self, Debug};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use cellblock_image::layer::{self, LayerError, LayerUse, RequirementOptions};
use cellblock_image::{AuditReport, ImageStore, Manifest, OpenImage, RunningBuild, Sink};
use cellblock_sandbox::backend::BoxFuture;
use cellblock_sandbox::backend::process::ProcessBackend;

use crate::connector::FetchAllowance;
use crate::error::Result;

/// An image, and the installer of additional packages.
pub(crate) trait Base: Debug + Send + Sync {
    /// Returns the description that the image has of itself.
    fn manifest(&self) -> &Manifest;

    /// Returns the images where it is, as far as they are known; the last that was built first.
    fn images(&self) -> Vec<Manifest> {
        vec![self.manifest().clone()]
    }

    /// Builds of images and of requirements that run where it is, the oldest first.
    fn running_builds(&self) -> Vec<RunningBuild> {
        Vec::new()
    }

    /// Returns the directory for files that sandboxes are shown.
    fn spool(&self) -> PathBuf;

    /// Modules of the image that could not be imported, with reasons.
    fn failed_modules(&self) -> Vec<String>;

    /// Returns the network clients that the image holds.
    fn audit(&self) -> BoxFuture<'_, Result<AuditReport>>;

    /// A layer with these requirements, installed where the image is.
    fn layer<'a>(
        &'a self,
        requirements: &'a [String],
        options: &'a RequirementOptions,
        allowance: Option<&'a dyn FetchAllowance>,
    ) -> BoxFuture<'a, Result<HeldLayer>>;

    /// The directory of a layer, if layers are on this machine.
    fn layer_directory(&self, _id: &str) -> Option<PathBuf> {
        None
    }

    /// Sets the host name of sandboxes that are made here afterward.
    fn name_host<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// A layer that a session uses. One of this machine stays on the disk as long as a clone of this exists.
#[derive(Clone, Debug)]
pub(crate) struct HeldLayer {
    id: Arc<str>,
    _used: Option<LayerUse>,
}

#[cfg(feature = "remote")]
impl HeldLayer {
    /// A layer that another machine has.
    pub(crate) fn elsewhere(id: String) -> Self {
        Self {
            id: id.into(),
            _used: None,
        }
    }
}

impl From<layer::Layer> for HeldLayer {
    fn from(layer: layer::Layer) -> Self {
        Self {
            id: layer.id.into(),
            _used: Some(layer.used),
        }
    }
}

/// Its ID.
impl Deref for HeldLayer {
    type Target = str;

    fn deref(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for HeldLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

impl PartialEq for HeldLayer {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Counts a layer that is about to be installed for the owner of a session.
pub(crate) async fn count_layer(allowance: Option<&dyn FetchAllowance>) -> Result<()> {
    if let Some(allowance) = allowance {
        let counted = allowance.install().await;
        counted.map_err(|reason| LayerError::Quota { reason })?;
    }
    Ok(())
}

/// An image of this machine.
#[derive(Debug)]
pub(crate) struct LocalBase {
    pub(crate) image: OpenImage,
    /// The backend whose template imports the image's libraries, if it is in this process.
    pub(crate) process: Option<ProcessBackend>,
}

impl Base for LocalBase {
    fn manifest(&self) -> &Manifest {
        self.image.manifest()
    }

    fn images(&self) -> Vec<Manifest> {
        let images = ImageStore::new(self.image.home().clone()).list();
        images.unwrap_or_else(|_| vec![self.manifest().clone()])
    }

    fn running_builds(&self) -> Vec<RunningBuild> {
        ImageStore::new(self.image.home().clone()).running_builds()
    }

    fn spool(&self) -> PathBuf {
        self.image.home().root().join("datasets")
    }

    fn failed_modules(&self) -> Vec<String> {
        let process = self.process.as_ref();
        process.map(ProcessBackend::failed_modules).unwrap_or_default()
    }

    fn audit(&self) -> BoxFuture<'_, Result<AuditReport>> {
        Box::pin(async { Ok(self.image.audit().await?) })
    }

    fn layer<'a>(
        &'a self,
        requirements: &'a [String],
        options: &'a RequirementOptions,
        allowance: Option<&'a dyn FetchAllowance>,
    ) -> BoxFuture<'a, Result<HeldLayer>> {
        Box::pin(async move {
            if let Some(layer) = layer::find_layer(&self.image, requirements).await? {
                return Ok(layer.into());
            }
            count_layer(allowance).await?;
            let most = options.max_bytes;
            let layer = layer::resolve_layer(&self.image, requirements, most, Sink::silent()).await?;
            Ok(layer.into())
        })
    }

    fn layer_directory(&self, id: &str) -> Option<PathBuf> {
        Some(self.image.home().layers().join(id))
    }

    fn name_host<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match &self.process {
                Some(process) => Ok(process.name_host(name).await?),
                None => Ok(()),
            }
        })
    }
}
