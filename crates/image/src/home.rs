//! The directory of images, layers and downloads.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags};

use super::error::{ImageError, IoResultExt, Result};

/// Cellblock's directory on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Finds the directory: `CELLBLOCK_HOME`, else the user's data directory, else a private
    /// directory below `/var/tmp`.
    pub fn find() -> Result<Self> {
        if let Some(named) = env::var_os("CELLBLOCK_HOME").filter(|it| !it.is_empty()) {
            let root = PathBuf::from(named);
            return Self::at(&std::path::absolute(&root).at("make absolute", &root)?);
        }
        let xdg = env::var_os("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|it| it.is_absolute());
        let user = env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|it| it.is_absolute());
        let data = xdg.or_else(|| user.map(|it| it.join(".local/share")));
        match data.map(|it| Self::at(&it.join("cellblock"))) {
            Some(Ok(home)) => Ok(home),
            Some(Err(_)) | None => Self::private(Path::new("/var/tmp")),
        }
    }

    /// Uses this directory, and creates it if it is missing.
    pub fn at(root: &Path) -> Result<Self> {
        let unusable = |action: &str, error: io::Error| ImageError::Home {
            problem: format!("{action} `{}`: {error}", root.display()),
        };
        fs::create_dir_all(root).map_err(|error| unusable("create", error))?;
        rustix::fs::access(root, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|errno| unusable("write to", errno.into()))?;
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// Other users may write to `parent`, so an existing directory with our name must be only ours.
    fn private(parent: &Path) -> Result<Self> {
        let us = rustix::process::geteuid().as_raw();
        let root = parent.join(format!("cellblock-{us}"));
        match fs::DirBuilder::new().mode(0o700).create(&root) {
            Ok(()) => return Ok(Self { root }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).at("create", &root),
        }
        let found = fs::symlink_metadata(&root).at("look at", &root)?;
        if !found.is_dir() || found.uid() != us || found.mode() & 0o077 != 0 {
            return Err(ImageError::Home {
                problem: format!(
                    "`{}` exists, but must be a directory that only user {us} can enter",
                    root.display()
                ),
            });
        }
        Ok(Self { root })
    }

    /// Fails if programs below the directory cannot be executed, as those of an image are.
    pub(crate) fn check_programs_run(&self) -> Result<()> {
        let found = rustix::fs::statvfs(&self.root).at("look at", &self.root)?;
        if found.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return Err(ImageError::Home {
                problem: format!(
                    "programs cannot run from `{}`, because its filesystem is mounted `noexec`",
                    self.root.display()
                ),
            });
        }
        Ok(())
    }

    /// Returns the directory's path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of the layers, one subdirectory each, which a backend makes visible to
    /// sandboxes.
    pub fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }

    /// Returns the directory of the kernel's bytecode for an image.
    pub(crate) fn bytecode(&self, image: &str) -> PathBuf {
        self.root.join("bytecode").join(image)
    }

    /// Returns the directory of an image's frozen template.
    pub(crate) fn frozen(&self, image: &str) -> PathBuf {
        self.root.join("frozen").join(image)
    }

    pub(crate) fn layer_index(&self) -> PathBuf {
        self.root.join("refs/layers")
    }

    pub(crate) fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    pub(crate) fn image_refs(&self) -> PathBuf {
        self.root.join("refs/images")
    }

    pub(crate) fn staging(&self, key: &str) -> PathBuf {
        self.root.join("staging").join(key)
    }

    /// Returns the directory in which running builds are listed.
    pub(crate) fn builds(&self) -> PathBuf {
        self.root.join("builds")
    }

    pub(crate) fn lock(&self, name: &str) -> PathBuf {
        self.root.join("locks").join(name)
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }
}

/// Writes a small file that is either there as a whole or not at all.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().at("write", path)
}

/// The names in a directory that may not be there.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).at("list", directory),
        Ok(entries) => Ok(entries
            .flatten()
            .filter_map(|it| it.file_name().into_string().ok())
            .collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_home_is_created_for_one_user_and_found_again() {
        let parent = tempfile::tempdir().unwrap();
        let made = Home::private(parent.path()).unwrap();
        assert_eq!(
            fs::metadata(made.root()).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(Home::private(parent.path()).unwrap(), made);
    }

    #[test]
    fn a_private_home_that_others_can_enter_is_rejected() {
        let parent = tempfile::tempdir().unwrap();
        let made = Home::private(parent.path()).unwrap();
        fs::set_permissions(made.root(), fs::Permissions::from_mode(0o770)).unwrap();
        assert!(matches!(
            Home::private(parent.path()),
            Err(ImageError::Home { .. })
        ));
    }

    #[test]
    fn a_private_home_that_is_a_link_is_rejected() {
        let parent = tempfile::tempdir().unwrap();
        let us = rustix::process::geteuid().as_raw();
        let elsewhere = parent.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, parent.path().join(format!("cellblock-{us}"))).unwrap();
        assert!(matches!(
            Home::private(parent.path()),
            Err(ImageError::Home { .. })
        ));
    }
}
