//! What sandboxes start from: an image of this machine, or one that another Cellblock has.

use std::path::PathBuf;
use std::sync::Arc;

use cellblock_image::layer;
use cellblock_image::{Image, Manifest, Report, Sink};
use cellblock_sandbox::backend::process::ProcessBackend;
use cellblock_sandbox::backend::remote::RemoteBackend;

use crate::error::Result;

/// Where the image is, and who installs what is needed besides it.
#[derive(Debug)]
pub(crate) enum Base {
    /// Here.
    Here {
        image: Box<Image>,
        process: ProcessBackend,
    },
    /// At the other end of connections. What is to be shown in a sandbox there is kept in `spool` on this side.
    Remote {
        remote: Arc<RemoteBackend>,
        spool: PathBuf,
    },
}

impl Base {
    /// What the image says about itself.
    pub(crate) fn manifest(&self) -> &Manifest {
        match self {
            Self::Here { image, .. } => image.manifest(),
            Self::Remote { remote, .. } => remote.manifest(),
        }
    }

    /// Where files that sandboxes are shown are kept.
    pub(crate) fn spool(&self) -> PathBuf {
        match self {
            Self::Here { image, .. } => image.home().root().join("datasets"),
            Self::Remote { spool, .. } => spool.clone(),
        }
    }

    /// Modules of the image that could not be imported, with reasons.
    pub(crate) fn failed_modules(&self) -> Vec<String> {
        match self {
            Self::Here { process, .. } => process.failed_modules(),
            Self::Remote { remote, .. } => remote.failed_modules(),
        }
    }

    /// Which network clients the image holds.
    pub(crate) async fn audit(&self) -> Result<Report> {
        Ok(match self {
            Self::Here { image, .. } => image.audit().await?,
            Self::Remote { remote, .. } => remote.audit().await?,
        })
    }

    /// The id of a layer with these requirements, installed where the image is.
    pub(crate) async fn layer(&self, requirements: &[String]) -> Result<String> {
        Ok(match self {
            Self::Here { image, .. } => {
                layer::resolve_layer(image, requirements, Sink::silent())
                    .await?
                    .id
            }
            Self::Remote { remote, .. } => remote.layer(requirements).await?,
        })
    }
}
