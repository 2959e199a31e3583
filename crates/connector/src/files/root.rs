//! Root of a connector's files: a folder, or an object store. Both are searched and read alike.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cellblock_interpreter::connector::{ConnectorError, ConnectorErrorKind};
use glob::Pattern;
use object_store::{ObjectMeta, ObjectStore};

use super::end::CallEnd;
use super::folder::Folder;
use super::object::Object;
use super::objects::{Objects, unopened};
use super::search::Search;
use super::table_file::TableFile;

/// The operator's `root`.
#[derive(Debug)]
pub(super) enum FileRoot {
    Folder(PathBuf),
    /// An address, and the store there once it was opened: its connections and credentials are kept.
    Objects(String, OnceLock<Arc<dyn ObjectStore>>),
}

/// A root for the time of a call.
#[derive(Debug)]
pub(super) struct Root {
    kind: RootKind,
    end: CallEnd,
}

#[derive(Debug)]
enum RootKind {
    Folder(Folder),
    Objects(Arc<Objects>),
}

/// A file that a search found.
#[derive(Clone, Debug)]
pub(super) struct FileMatch {
    /// Path below the root.
    pub(super) path: String,
    object: Option<ObjectMeta>,
}

impl FileRoot {
    /// Opens the root for a call. A store repeats failed requests for a part of the time that a call has.
    pub(super) fn open(&self, timeout: Duration, end: CallEnd) -> Result<Root, ConnectorError> {
        let kind = match self {
            Self::Folder(path) => RootKind::Folder(Folder::open(path).map_err(|error| {
                // The path is not for the sandbox.
                tracing::warn!(path = %path.display(), %error, "the folder of a connector cannot be opened");
                ConnectorError::provider(format!("the folder `root` cannot be opened: {error}"))
            })?),
            Self::Objects(address, opened) => {
                let store = if let Some(store) = opened.get() {
                    store
                } else {
                    let store = cellblock_artifact::objects(address, timeout / 3);
                    let store = store.map_err(|error| unopened(&error))?;
                    opened.get_or_init(|| store)
                };
                RootKind::Objects(Arc::new(Objects::new(Arc::clone(store), end.clone())))
            }
        };
        Ok(Root { kind, end })
    }
}

impl Root {
    /// Fails after the end of the call.
    pub(super) fn check_end(&self) -> Result<(), ConnectorError> {
        self.end.check()
    }

    /// Checks that files can be searched.
    pub(super) fn check(&self) -> Result<(), ConnectorError> {
        match &self.kind {
            // It is open.
            RootKind::Folder(_) => Ok(()),
            RootKind::Objects(objects) => objects
                .check()
                .map_err(|error| self.failed("the object store `root` cannot be listed", error)),
        }
    }

    /// Returns the files that match a pattern, in the order of their paths.
    pub(super) fn files(&self, pattern: &Pattern) -> Result<Vec<FileMatch>, ConnectorError> {
        let mut search = Search::new(pattern);
        let found = match &self.kind {
            RootKind::Folder(folder) => folder
                .files(&mut search)
                .map(|paths| {
                    let found = paths.into_iter().map(|path| FileMatch { path, object: None });
                    found.collect::<Vec<_>>()
                })
                .map_err(|error| error.to_string()),
            RootKind::Objects(objects) => objects.files(&mut search).map(|objects| {
                let found = objects.into_iter().map(|(path, object)| FileMatch {
                    path,
                    object: Some(object),
                });
                found.collect()
            }),
        };
        let mut found =
            found.map_err(|error| self.failed(&format!("the files `{pattern}` cannot be listed"), error))?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Opens a file to read it.
    pub(super) fn file(&self, found: &FileMatch) -> Result<TableFile, ConnectorError> {
        match (&self.kind, &found.object) {
            (RootKind::Objects(objects), Some(object)) => Ok(TableFile::in_store(Object::new(
                Arc::clone(objects),
                object.clone(),
            ))),
            (RootKind::Folder(folder), _) => folder
                .file(&found.path)
                .and_then(TableFile::on_disk)
                .map_err(|error| self.broken(found, error)),
            (RootKind::Objects(_), None) => Err(self.broken(found, "it was not found in the object store")),
        }
    }

    /// Returns the error for a file that cannot be read.
    pub(super) fn broken(&self, found: &FileMatch, error: impl std::fmt::Display) -> ConnectorError {
        let action = format!("`{}` cannot be read", found.path);
        match self.taken_failure() {
            Some((kind, text)) => ConnectorError::new(kind, format!("{action}: {text}")),
            None => ConnectorError::new(ConnectorErrorKind::Parse, format!("{action}: {error}")),
        }
    }

    fn failed(&self, action: &str, error: String) -> ConnectorError {
        let provider = ConnectorErrorKind::Provider { status: None };
        let (kind, text) = self.taken_failure().unwrap_or((provider, error));
        ConnectorError::new(kind, format!("{action}: {text}"))
    }

    /// Takes the failure of the object store, if that is the cause.
    fn taken_failure(&self) -> Option<(ConnectorErrorKind, String)> {
        match &self.kind {
            RootKind::Folder(_) => None,
            RootKind::Objects(objects) => objects.take_failure(),
        }
    }
}
