//! The directory that charts and files are saved into.
//!
//! Names come from the sandbox. No link inside the directory is followed and no name leads out of
//! it: each part is opened on its own, by the kernel's rules. A file is written under a name of
//! ours first and renamed when it is whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use cellblock_artifact::{ArtifactId, Store};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, renameat, unlinkat};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// The directory that is used when none is named.
pub(crate) const DEFAULT: &str = "cellblock-out";

/// A directory that is made when the first file is saved.
#[derive(Debug)]
pub(crate) struct OutDir {
    path: PathBuf,
    dir: Option<OwnedFd>,
    /// Names of charts, which a file of the sandbox does not replace.
    ours: Vec<String>,
    saved: u64,
}

impl OutDir {
    /// The directory at a path.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            dir: None,
            ours: Vec::new(),
            saved: 0,
        }
    }

    /// Saves a chart or picture under a name that we chose.
    pub(crate) async fn save_picture(
        &mut self,
        store: &Store,
        id: ArtifactId,
        name: &str,
    ) -> Result<PathBuf> {
        self.ours.push(name.to_owned());
        self.save(store, id, name).await
    }

    /// Saves a file under the relative name that it has in the sandbox, or beside a chart of that name.
    pub(crate) async fn save_file(&mut self, store: &Store, id: ArtifactId, name: &str) -> Result<PathBuf> {
        let mut free = name.to_owned();
        while self.ours.contains(&free) {
            free = format!("file_{free}");
        }
        self.save(store, id, &free).await
    }

    async fn save(&mut self, store: &Store, id: ArtifactId, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let fail = |action| {
            let path = path.clone();
            move |errno: Errno| Error::own_file(action, path)(errno.into())
        };
        let (parent, file_name) = self.parent_of(name)?;
        self.saved += 1;
        let partial = format!(".cellblock-{}-{}", std::process::id(), self.saved);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&parent, &partial, flags, Mode::from_raw_mode(0o666)).map_err(fail("create"))?;
        let written = write(store, id, File::from(file), &path).await;
        let placed = match written {
            Ok(()) => renameat(&parent, &partial, &parent, file_name).map_err(fail("put in place")),
            Err(error) => Err(error),
        };
        if placed.is_err() {
            let _ = unlinkat(&parent, &partial, AtFlags::empty());
        }
        placed.map(|()| path)
    }

    /// Opens the directory of a file, making what is missing.
    fn parent_of<'a>(&mut self, name: &'a str) -> Result<(OwnedFd, &'a str)> {
        let mut parent = self.root()?;
        let mut parts = name.split('/');
        let file_name = parts.next_back().unwrap_or(name);
        let mut path = self.path.clone();
        for part in parts {
            path.push(part);
            parent = enter(&parent, part)
                .map_err(|errno| Error::own_file("make the directory", &path)(explain(errno)))?;
        }
        Ok((parent, file_name))
    }

    fn root(&mut self) -> Result<OwnedFd> {
        let fail = |source| Error::user_file("make the directory", &self.path)(source);
        if self.dir.is_none() {
            std::fs::create_dir_all(&self.path).map_err(fail)?;
            // The user chose this path, so links in it are theirs.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.dir =
                Some(openat(CWD, &self.path, flags, Mode::empty()).map_err(|errno| fail(errno.into()))?);
        }
        let dir = self
            .dir
            .as_ref()
            .ok_or_else(|| fail(io::ErrorKind::NotFound.into()))?;
        dir.try_clone().map_err(fail)
    }
}

fn enter(parent: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(
        parent,
        name,
        flags,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

/// Returns the meaning of an error of the kernel here.
fn explain(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP => io::Error::other(
            "it is a symbolic link, which is not followed; remove it or name another `--out`",
        ),
        Errno::XDEV => io::Error::other("its name leads out of the directory"),
        errno => errno.into(),
    }
}

async fn write(store: &Store, id: ArtifactId, mut file: File, path: &Path) -> Result<()> {
    let broken = |source| Error::Store {
        action: "read back what the cell made",
        source,
    };
    let mut reader = store.reader(id).await.map_err(broken)?;
    while let Some(piece) = reader.next().await.map_err(broken)? {
        file.write_all(&piece).map_err(Error::own_file("write", path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use cellblock_artifact::{ArtifactDescription, Kind};

    use super::*;

    async fn stored(folder: &Path, content: &[u8]) -> (Store, ArtifactId) {
        let store = Store::local(folder.join("store")).unwrap();
        let about = ArtifactDescription {
            kind: Kind::File,
            media_type: "text/plain".into(),
            origin: None,
        };
        let id = store.put(content.to_vec(), &about).await.unwrap();
        (store, id)
    }

    #[tokio::test]
    async fn nothing_is_made_before_something_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = stored(folder.path(), b"x").await;
        let out = folder.path().join("deep/out");
        let mut dir = OutDir::new(&out);
        assert!(!out.exists());
        let path = dir.save_file(&store, id, "a/b/c.txt").await.unwrap();
        assert_eq!(path, out.join("a/b/c.txt"));
        assert_eq!(fs::read(path).unwrap(), b"x");
        assert_eq!(
            fs::read_dir(out.join("a/b")).unwrap().count(),
            1,
            "no partial file is left"
        );
    }

    #[tokio::test]
    async fn a_link_in_the_directory_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = stored(folder.path(), b"evil").await;
        let (out, outside) = (folder.path().join("out"), folder.path().join("outside"));
        fs::create_dir(&out).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        symlink(&outside, out.join("dir")).unwrap();
        symlink(outside.join("kept"), out.join("file")).unwrap();
        let mut dir = OutDir::new(&out);
        let error = dir.save_file(&store, id, "dir/kept").await.unwrap_err();
        assert_eq!(
            error.chain()[1],
            "it is a symbolic link, which is not followed; remove it or name another `--out`"
        );
        dir.save_file(&store, id, "file").await.unwrap();
        assert_eq!(fs::read(outside.join("kept")).unwrap(), b"kept");
        assert_eq!(
            fs::read(out.join("file")).unwrap(),
            b"evil",
            "the link itself is replaced"
        );
        assert!(fs::symlink_metadata(out.join("file")).unwrap().is_file());
    }

    #[tokio::test]
    async fn no_name_leads_out_of_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = stored(folder.path(), b"evil").await;
        let out = folder.path().join("out");
        for name in ["../evil", "a/../../evil", "/evil", "..", "a/..", ""] {
            let mut dir = OutDir::new(&out);
            assert!(dir.save_file(&store, id, name).await.is_err(), "{name}");
        }
        assert!(!folder.path().join("evil").exists());
    }

    #[tokio::test]
    async fn a_file_does_not_replace_a_chart_of_the_same_run() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = stored(folder.path(), b"x").await;
        let mut dir = OutDir::new(folder.path().join("out"));
        let chart = dir.save_picture(&store, id, "figure_1.png").await.unwrap();
        let file = dir.save_file(&store, id, "figure_1.png").await.unwrap();
        assert_eq!(
            (
                chart.ends_with("figure_1.png"),
                file.ends_with("file_figure_1.png")
            ),
            (true, true)
        );
        dir.save_file(&store, id, "data.csv").await.unwrap();
        assert!(
            dir.save_file(&store, id, "data.csv")
                .await
                .unwrap()
                .ends_with("data.csv")
        );
    }
}
