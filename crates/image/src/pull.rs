//! Pulling a ready image from a mirror.
//!
//! ```text
//! mirror ── images.json, or the manifest of a registry ──> name, machine, layout, id, sha256
//!   │                                                              │ checked before and after
//!   └── archive ──> cache/pulls/SHA256.partial ──> ImageStore::import ──┘
//!                   (an interrupted download goes on from here)
//! ```

#[cfg(test)]
mod tests;

use crate::archive::ArchiveExpectation;
use crate::error::invalid;
use crate::lock::Lock;
use crate::mirror::Mirror;
use crate::running::BuildNotice;
use crate::{ImageError, ImageSpec, ImageStore, Manifest, OpenImage, Result, Sink, build};

impl ImageStore {
    /// Pulls an image with locked packages from the mirror, if there is one, and builds it otherwise.
    pub(crate) fn pull_or_build(
        &self,
        spec: &ImageSpec,
        key: &str,
        force: bool,
        lock: &Lock,
        sink: &Sink,
    ) -> Result<String> {
        if let Some(mirror) = self.configured_mirror().filter(|_| !force && spec.lock.is_some()) {
            match self.pull_blocking(&spec.name, Some(spec), mirror, None, sink) {
                Ok(image) => return Ok(image.id().to_owned()),
                Err(ImageError::Cancelled) => return Err(ImageError::Cancelled),
                Err(error) => sink.line(format!("{error}; building the image instead")),
            }
        }
        build::build(self.home(), spec, key, force, lock, sink)
    }

    /// Pulls an image from a mirror and returns it; one that is here already is returned at once.
    ///
    /// The archive must have the SHA-256 that the caller names, if any, and the one that the mirror
    /// names; its files must have the address of its manifest. What has arrived of an interrupted
    /// download is kept in `cache/pulls`, and the next pull goes on from it.
    pub async fn pull(
        &self,
        name: &str,
        mirror: &Mirror,
        sha256: Option<&str>,
        sink: Sink,
    ) -> Result<OpenImage> {
        let (store, name, mirror) = (self.clone(), name.to_owned(), mirror.clone());
        let sha256 = sha256.map(str::to_ascii_lowercase);
        let work = move || {
            // An image that is shipped has exactly the packages that are locked here, wherever it comes from.
            let spec = ImageSpec::shipped(&name)?;
            let (_announced, sink) = BuildNotice::start(store.home(), format!("image {name}"), &sink);
            store.pull_blocking(&name, spec.as_ref(), &mirror, sha256.as_deref(), &sink)
        };
        tokio::task::spawn_blocking(work).await?
    }

    pub(crate) fn pull_blocking(
        &self,
        name: &str,
        spec: Option<&ImageSpec>,
        mirror: &Mirror,
        sha256: Option<&str>,
        sink: &Sink,
    ) -> Result<OpenImage> {
        sink.stage(format!("looking for {name} at {mirror}"));
        let offer = mirror.find(name).map_err(|problem| ImageError::Pull {
            reference: name.to_owned(),
            mirror: mirror.to_string(),
            problem,
        })?;
        if let Some(id) = &offer.id
            && let Ok(image) = OpenImage::open(self.home(), id)
        {
            sink.line(format!(
                "the image {name} {} is here already",
                image.manifest().short_id()
            ));
            return Ok(image);
        }
        if let (Some(wanted), Some(offered)) = (sha256, &offer.sha256)
            && wanted != offered
        {
            let problem = format!("the mirror offers the SHA-256 {offered}, and {wanted} was expected");
            return Err(invalid(&offer.origin, problem));
        }
        let size = offer.bytes.map_or_else(String::new, |bytes| {
            format!(" ({} MB)", bytes.div_ceil(1_000_000))
        });
        sink.line(format!("pulling the image {name}{size} from {mirror}"));
        let accepts = |manifest: &Manifest| accepts(manifest, name, spec, offer.id.as_deref());
        let sha256 = sha256.map(str::to_owned).or_else(|| offer.sha256.clone());
        let expected = ArchiveExpectation {
            sha256: sha256.as_deref(),
            manifest: &accepts,
        };
        let (from, arrival) = offer.open(self.home(), expected.sha256, sink)?;
        arrival.end(self.import_blocking(from, &offer.origin, &expected, sink))
    }
}

/// Compares an archive's manifest with what was looked for, before any of its files is written.
fn accepts(
    manifest: &Manifest,
    name: &str,
    spec: Option<&ImageSpec>,
    id: Option<&str>,
) -> Result<(), String> {
    if id.is_some_and(|id| id != manifest.id) {
        return Err(format!(
            "it holds the image {}, and the mirror's index names another one",
            manifest.short_id()
        ));
    }
    if manifest.name != name {
        return Err(format!(
            "it holds the image `{}`, not `{name}`",
            manifest.name.escape_debug()
        ));
    }
    if spec.is_some_and(|spec| spec.lock.is_some() && !spec.describes(manifest)) {
        return Err(format!(
            "its packages are not those that this Cellblock locks for `{name}`; it was made for another \
             version of Cellblock"
        ));
    }
    Ok(())
}
