//! The images of this machine: built, found, listed and removed.

use std::fs;
use std::path::Path;

use super::build::remove;
use super::error::{ImageError, IoResultExt, Result};
use super::home::{Home, names, write_atomically};
use super::lock::Lock;
use super::manifest::{Manifest, is_id, short};
use super::mirror::Mirror;
use super::open::OpenImage;
use super::progress::Sink;
use super::running::{BuildNotice, RunningBuild, running_builds};
use super::spec::ImageSpec;

/// The images below a home.
#[derive(Clone, Debug)]
pub struct ImageStore {
    home: Home,
    mirror: Option<Mirror>,
}

impl ImageStore {
    /// Opens the store of this user.
    pub fn find() -> Result<Self> {
        Ok(Self::new(Home::find()?))
    }

    /// Opens the store below a home.
    pub fn new(home: Home) -> Self {
        Self { home, mirror: None }
    }

    /// Sets the mirror from which an image that is missing is pulled, before it is built.
    #[must_use]
    pub fn mirror(mut self, mirror: Option<Mirror>) -> Self {
        self.mirror = mirror;
        self
    }

    /// Returns the home.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the mirror that was set.
    pub(crate) fn configured_mirror(&self) -> Option<&Mirror> {
        self.mirror.as_ref()
    }

    /// Returns the image of a specification, building it if it is missing or if forced.
    ///
    /// Blocking work runs on a separate thread and continues when the future is dropped.
    pub async fn build(&self, spec: &ImageSpec, force: bool, sink: Sink) -> Result<OpenImage> {
        let (store, spec) = (self.clone(), spec.clone());
        tokio::task::spawn_blocking(move || store.build_blocking(&spec, force, &sink)).await?
    }

    fn build_blocking(&self, spec: &ImageSpec, force: bool, sink: &Sink) -> Result<OpenImage> {
        let key = spec.key();
        let before = if force { None } else { self.built(&key) };
        if let Some(Ok(image)) = before {
            return Ok(image);
        }
        let waiting = || sink.waiting(format!("another process is building the image `{}`", spec.name));
        let earlier = self.built_id(&key);
        let lock = Lock::exclusive(&self.home.lock(&format!("build-{key}")), waiting)?;
        // The process that held the lock may have just built it.
        let is_news = !force || self.built_id(&key) != earlier;
        if let Some(Ok(image)) = self.built(&key).filter(|_| is_news) {
            return Ok(image);
        }
        let (_announced, sink) = BuildNotice::start(&self.home, format!("image {}", spec.name), sink);
        let fitting = if force { None } else { self.fitting(spec)? };
        let id = match fitting {
            Some(id) => {
                sink.line(format!("using the imported image {} {}", spec.name, short(&id)));
                id
            }
            None => self.pull_or_build(spec, &key, force, &lock, &sink)?,
        };
        self.set_built(&key, &id)?;
        OpenImage::open(&self.home, &id)
    }

    /// Returns the newest image that another machine built for this specification and that was
    /// imported here, if there is one.
    fn fitting(&self, spec: &ImageSpec) -> Result<Option<String>> {
        let mut list = self.list()?.into_iter();
        Ok(list
            .find(|manifest| spec.describes(manifest) && OpenImage::open(&self.home, &manifest.id).is_ok())
            .map(|manifest| manifest.id))
    }

    /// Finds an image by its id, the first digits of its id, or its name; of several with a name, the newest.
    pub fn resolve(&self, reference: &str) -> Result<OpenImage> {
        if let Some(spec) = ImageSpec::shipped(reference)?
            && let Some(image) = self.built(&spec.key())
        {
            return image;
        }
        let all = self.ids()?;
        if all.iter().any(|it| it == reference) {
            return OpenImage::open(&self.home, reference);
        }
        let by_id: Vec<_> = all
            .iter()
            .filter(|it| reference.len() >= 4 && it.starts_with(reference))
            .collect();
        match by_id[..] {
            [id] => return OpenImage::open(&self.home, id),
            [] => {}
            _ => {
                let matches = by_id.iter().map(|it| short(it)).collect::<Vec<_>>().join(", ");
                return Err(ImageError::Ambiguous {
                    reference: reference.to_owned(),
                    matches,
                });
            }
        }
        let list = self.list()?;
        match list
            .iter()
            .filter(|it| it.name == reference)
            .max_by_key(|it| it.created)
        {
            Some(manifest) => OpenImage::open(&self.home, &manifest.id),
            None => Err(ImageError::NotFound {
                reference: reference.to_owned(),
                known: match list.len() {
                    0 => "none".to_owned(),
                    _ => list
                        .iter()
                        .map(|it| format!("{} {}", it.name, it.short_id()))
                        .collect::<Vec<_>>()
                        .join(", "),
                },
            }),
        }
    }

    /// Opens an image by a user's reference: a shipped image or a TOML file, built if necessary, or
    /// a built image.
    pub async fn open(&self, reference: &str, sink: Sink) -> Result<OpenImage> {
        if let Some(spec) = ImageSpec::shipped(reference)? {
            self.build(&spec, false, sink).await
        } else if is_file(reference) {
            self.build(&ImageSpec::load(Path::new(reference))?, false, sink)
                .await
        } else {
            self.resolve(reference)
        }
    }

    /// Checks whether [`open`](Self::open) knows a user's reference, without building anything.
    pub fn check(&self, reference: &str) -> Result<()> {
        if ImageSpec::shipped(reference)?.is_some() {
            return Ok(());
        }
        if is_file(reference) {
            return ImageSpec::load(Path::new(reference)).map(drop);
        }
        self.resolve(reference).map(drop)
    }

    /// Lists the images, newest first. Damaged ones are left out: opening them reports the damage.
    pub fn list(&self) -> Result<Vec<Manifest>> {
        let read = |id: &String| {
            Manifest::parse(&fs::read(self.home.images().join(id).join("manifest.json")).ok()?).ok()
        };
        let mut list: Vec<_> = self.ids()?.iter().filter_map(read).collect();
        list.sort_by_key(|it| (std::cmp::Reverse(it.created), it.id.clone()));
        Ok(list)
    }

    /// Returns the builds of images and of requirements that run now, the oldest first.
    pub fn running_builds(&self) -> Vec<RunningBuild> {
        running_builds(&self.home)
    }

    /// Removes an unused image and the layers made for it; returns its id.
    pub async fn remove(&self, reference: &str) -> Result<String> {
        let id = match self.resolve(reference) {
            Ok(image) => image.id().to_owned(),
            // A damaged image can be removed by its id.
            Err(ImageError::Damaged { id, .. }) => self.whole_id(&id)?,
            Err(error) => return Err(error),
        };
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.remove_blocking(id)).await?
    }

    fn remove_blocking(&self, id: String) -> Result<String> {
        let place = self.home.images().join(&id);
        let lock = match Lock::try_exclusive(&place.join("lock")) {
            Ok(None) => {
                return Err(ImageError::InUse {
                    id: short(&id).to_owned(),
                });
            }
            Ok(lock) => lock,
            Err(_) => None,
        };
        for (key, built) in self.refs()? {
            if built == id {
                remove(&self.home.image_refs().join(key))?;
            }
        }
        // First renamed, so that no process opens half of it.
        let trash = self.home.staging(&format!("removed-{id}"));
        if let Some(parent) = trash.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        remove(&trash)?;
        fs::rename(&place, &trash).at("move away", &place)?;
        drop(lock);
        remove(&trash)?;
        remove(&self.home.bytecode(&id))?;
        remove(&self.home.frozen(&id))?;
        crate::layer::forget_image(&self.home, &id)?;
        Ok(id)
    }

    fn whole_id(&self, short: &str) -> Result<String> {
        let mut fitting = self.ids()?.into_iter().filter(|it| it.starts_with(short));
        fitting.next().ok_or_else(|| ImageError::NotFound {
            reference: short.to_owned(),
            known: "none".to_owned(),
        })
    }

    fn ids(&self) -> Result<Vec<String>> {
        let mut ids = names(&self.home.images())?;
        ids.retain(|it| is_id(it));
        Ok(ids)
    }

    fn refs(&self) -> Result<Vec<(String, String)>> {
        let keys = names(&self.home.image_refs())?;
        Ok(keys
            .into_iter()
            .filter_map(|key| self.built_id(&key).map(|id| (key, id)))
            .collect())
    }

    fn built_id(&self, key: &str) -> Option<String> {
        fs::read_to_string(self.home.image_refs().join(key))
            .ok()
            .map(|it| it.trim().to_owned())
            .filter(|it| is_id(it))
    }

    /// Returns the image that was built for this request; an error if it is damaged.
    fn built(&self, key: &str) -> Option<Result<OpenImage>> {
        self.built_id(key).map(|id| OpenImage::open(&self.home, &id))
    }

    fn set_built(&self, key: &str, id: &str) -> Result<()> {
        let place = self.home.image_refs();
        fs::create_dir_all(&place).at("create", &place)?;
        write_atomically(&place.join(key), id)
    }
}

/// Returns whether a user's reference is the file of a specification.
fn is_file(reference: &str) -> bool {
    Path::new(reference).extension().is_some_and(|it| it == "toml")
}
