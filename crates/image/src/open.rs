//! An image in use.

use std::fs;
use std::path::{Path, PathBuf};

use super::audit::{AuditReport, audit};
use super::digest;
use super::error::{ImageError, Result};
use super::home::Home;
use super::lock::Lock;
use super::manifest::{Manifest, short};

/// An image that cannot be removed while this value, or a clone of it, exists.
#[derive(Clone, Debug)]
pub struct OpenImage {
    home: Home,
    root: PathBuf,
    manifest: Manifest,
    _lock: Lock,
}

impl OpenImage {
    /// Opens the image with this id. Cheap: checks a handful of files and hashes none.
    pub(super) fn open(home: &Home, id: &str) -> Result<Self> {
        let root = home.images().join(id);
        let damaged = |problem: String| ImageError::Damaged {
            id: short(id).to_owned(),
            problem,
        };
        let lock = Lock::shared(&root.join("lock"));
        let bytes = fs::read(root.join("manifest.json"));
        let (lock, bytes) = match (lock, bytes) {
            (Ok(lock), Ok(bytes)) => (lock, bytes),
            (Err(_), _) => return Err(damaged("its lock is missing".to_owned())),
            (_, Err(error)) => return Err(damaged(format!("its manifest cannot be read: {error}"))),
        };
        let manifest = Manifest::parse(&bytes).map_err(damaged)?;
        if manifest.id != id {
            return Err(damaged(format!(
                "its manifest is that of {}",
                manifest.short_id()
            )));
        }
        let tree = root.join(manifest.tree());
        let stdlib = tree.join(&manifest.stdlib);
        let mut needed = vec![stdlib.join("os.py")];
        if manifest.root.is_none() {
            // In a root filesystem, links lead to other places than they do here.
            needed.extend([tree.join(&manifest.interpreter), stdlib.join("site-packages")]);
        }
        if let Some(missing) = needed.iter().find(|it| !it.exists()) {
            let missing = missing.strip_prefix(&root).unwrap_or(missing);
            return Err(damaged(format!("`{}` is missing", missing.display())));
        }
        Ok(Self {
            home: home.clone(),
            root,
            manifest,
            _lock: lock,
        })
    }

    /// Returns the content address.
    pub fn id(&self) -> &str {
        &self.manifest.id
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the host directory of the image's files: what a sandbox sees as
    /// [`PYTHON_IN_SANDBOX`](super::PYTHON_IN_SANDBOX), or as its root if the image is a root filesystem.
    pub fn tree(&self) -> PathBuf {
        self.root.join(self.manifest.tree())
    }

    /// Returns whether the image is a whole root filesystem.
    pub fn is_root(&self) -> bool {
        self.manifest.root.is_some()
    }

    /// Returns the image's directory, which contains its manifest, its lock, and its tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the home that contains it.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the directory in which a backend keeps the kernel's bytecode for this image, which
    /// goes when the image is removed.
    pub fn bytecode(&self) -> PathBuf {
        self.home.bytecode(&self.manifest.id)
    }

    /// Returns the directory in which a backend keeps this image's frozen template, which goes when
    /// the image is removed.
    pub fn frozen(&self) -> PathBuf {
        self.home.frozen(&self.manifest.id)
    }

    /// Returns the directories of its search path that contain modules.
    pub(crate) fn sites(&self) -> Vec<PathBuf> {
        let tree = self.tree();
        let stdlib = tree.join(&self.manifest.stdlib);
        match &self.manifest.root {
            None => vec![stdlib.join("site-packages"), stdlib],
            Some(root) => root
                .sites
                .iter()
                .map(|it| tree.join(it))
                .chain([stdlib])
                .collect(),
        }
    }

    /// Reads the whole image again and compares it with its address.
    pub async fn verify(&self) -> Result<()> {
        let image = self.clone();
        tokio::task::spawn_blocking(move || {
            let actual = image.manifest.address(&digest::of(&image.tree())?.id);
            if actual == image.manifest.id {
                return Ok(());
            }
            Err(ImageError::Damaged {
                id: image.manifest.short_id().to_owned(),
                problem: format!("its content now has the address {}", short(&actual)),
            })
        })
        .await?
    }

    /// Searches it again for network clients.
    pub async fn audit(&self) -> Result<AuditReport> {
        let image = self.clone();
        tokio::task::spawn_blocking(move || {
            let sites = image.sites();
            let sites: Vec<_> = sites.iter().map(PathBuf::as_path).collect();
            audit(&image.tree(), &sites, &image.manifest.policy)
        })
        .await?
    }
}
