//! Storage sessions: files that were uploaded or made, and who may read them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cellblock_interpreter::artifact::ArtifactId;
use chrono::{DateTime, Utc};
use parking_lot::{Mutex, MutexGuard};

use super::access::Reader;
use super::error::Problem;

/// Storage sessions by their ids.
#[derive(Debug)]
pub(super) struct Storage {
    sessions: Mutex<HashMap<String, Bundle>>,
    retention: Duration,
    max_files: usize,
}

/// The files of a storage session.
#[derive(Debug)]
struct Bundle {
    /// Whose quota they count for.
    owner: String,
    reader: Reader,
    files: Vec<StoredFile>,
    used: Instant,
}

/// A file of a storage session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredFile {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) artifact: ArtifactId,
    pub(super) bytes: u64,
    pub(super) modified: DateTime<Utc>,
}

impl Storage {
    pub(super) fn new(retention: Duration, max_files: usize) -> Self {
        Self {
            sessions: Mutex::default(),
            retention,
            max_files,
        }
    }

    /// Adds files to a storage session, and makes it if there is none. A file replaces the one with its name.
    pub(super) fn add(
        &self,
        owner: &str,
        session: &str,
        reader: &Reader,
        files: Vec<StoredFile>,
    ) -> Result<(), Problem> {
        let mut sessions = self.sessions();
        let held: usize = sessions
            .values()
            .filter(|it| it.owner == owner)
            .map(|it| it.files.len())
            .sum();
        if held + files.len() > self.max_files {
            let limit = self.max_files;
            return Err(Problem::invalid(format!(
                "store the files: there are {held} already, the limit is {limit}; delete some"
            )));
        }
        let bundle = sessions.entry(session.to_owned()).or_insert_with(|| Bundle {
            owner: owner.to_owned(),
            reader: reader.clone(),
            files: Vec::new(),
            used: Instant::now(),
        });
        for file in files {
            bundle.files.retain(|it| it.name != file.name);
            bundle.files.push(file);
        }
        Ok(())
    }

    /// Returns the files of a storage session.
    pub(super) fn list(&self, session: &str, reader: &Reader) -> Result<Vec<StoredFile>, Problem> {
        let mut sessions = self.sessions();
        Ok(found(&mut sessions, session, reader)?.files.clone())
    }

    /// Returns a file.
    pub(super) fn get(&self, session: &str, file: &str, reader: &Reader) -> Result<StoredFile, Problem> {
        let mut sessions = self.sessions();
        let bundle = found(&mut sessions, session, reader)?;
        let stored = bundle.files.iter().find(|it| it.id == file);
        stored.cloned().ok_or_else(|| missing(session, file))
    }

    /// Forgets a file.
    pub(super) fn delete(&self, session: &str, file: &str, reader: &Reader) -> Result<(), Problem> {
        let mut sessions = self.sessions();
        let bundle = found(&mut sessions, session, reader)?;
        let before = bundle.files.len();
        bundle.files.retain(|it| it.id != file);
        if bundle.files.len() == before {
            return Err(missing(session, file));
        }
        if bundle.files.is_empty() {
            sessions.remove(session);
        }
        Ok(())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Bundle>> {
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, bundle| bundle.used.elapsed() < self.retention);
        sessions
    }
}

fn found<'a>(
    sessions: &'a mut HashMap<String, Bundle>,
    session: &str,
    reader: &Reader,
) -> Result<&'a mut Bundle, Problem> {
    let bundle = sessions.get_mut(session).filter(|it| it.reader == *reader);
    let bundle = bundle.ok_or_else(|| {
        Problem::missing(format!(
            "storage session `{session}` does not exist, or belongs to somebody else; upload its files again"
        ))
    })?;
    bundle.used = Instant::now();
    Ok(bundle)
}

fn missing(session: &str, file: &str) -> Problem {
    Problem::missing(format!("storage session `{session}` has no file `{file}`"))
}
