//! A machine of a sandbox: it can be written to disk while its sandbox has no connection, and be
//! restored from that.
//!
//! What is written has all that the sandbox had in memory, with all files of its user. It is in a
//! directory that only this user can read, has no name that a request could give, and is removed
//! with the value that stands for it, or by the next start after a crash.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellblock_remote::{LocalMachine, OpenedStream, SavedMachine};
use cellblock_sandbox::backend::BoxFuture;
use cellblock_sandbox::{Error, Result};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::machines::{FULL_BYTES, Machines, Wall, failure, free_bytes};
use crate::owner::MachineOwner;
use crate::places::MachinePlace;
use crate::snapshot::Snapshot;
use crate::wake::Wake;

/// Number of attempts to write a machine: its server may still be closing the connection.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(50);
/// Text of programs about a full disk.
const FULL: &str = "no space left";

/// Resources that a sandbox holds until its end.
pub(crate) struct RunningMachine<W: Wall> {
    pub(crate) owner: MachineOwner,
    pub(crate) control: Mutex<W::Control>,
    pub(crate) machines: Arc<Machines<W>>,
    /// The snapshot that it began with.
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) place: MachinePlace,
    /// Its name, which is its host name.
    pub(crate) identity: String,
}

/// The state of a machine on disk.
struct SavedState<W> {
    machines: Arc<Machines<W>>,
    snapshot: Arc<Snapshot>,
    identity: String,
    directory: PathBuf,
    /// The files as they were written. Kept in memory, so that nobody can change it together with them.
    files: Vec<SavedFile>,
}

#[derive(Debug, PartialEq, Eq)]
struct SavedFile {
    name: String,
    bytes: u64,
    /// Its inode, and when that last changed: seconds and nanoseconds.
    unchanged: (u64, i64, i64),
}

impl<W: Wall> RunningMachine<W> {
    /// Returns the stream to it, with which it ends.
    pub(crate) fn opened(self, stream: UnixStream) -> OpenedStream {
        OpenedStream {
            stream,
            machine: Some(Arc::new(self)),
        }
    }

    async fn write(&self) -> Result<SavedState<W>, String> {
        let machines = &self.machines;
        let directory = machines.places.saved().map_err(|error| error.to_string())?;
        let mut saved = SavedState {
            machines: Arc::clone(machines),
            snapshot: Arc::clone(&self.snapshot),
            identity: self.identity.clone(),
            directory,
            files: Vec::new(),
        };
        let free = free_bytes(&saved.directory).unwrap_or(u64::MAX);
        if free < FULL_BYTES {
            return Err(full(free));
        }
        let mut control = self.control.lock().await;
        let mut attempt = 1;
        loop {
            let machine = (&self.owner, &mut *control);
            let writing = machines.wall.save_running(machine, &self.place, &saved.directory);
            let Err(reason) = writing.await else { break };
            if reason.to_lowercase().contains(FULL) {
                let free = free_bytes(&saved.directory).unwrap_or_default();
                return Err(full(free));
            }
            if attempt == ATTEMPTS {
                // It names what belongs to the host.
                tracing::warn!(reason, "could not write the state of a machine");
                return Err(format!("`{}` cannot write what it has", W::NAME));
            }
            attempt += 1;
            clear(&saved.directory).map_err(|error| error.to_string())?;
            tokio::time::sleep(PAUSE).await;
        }
        saved.files = files(&saved.directory).map_err(|error| error.to_string())?;
        let config = &machines.config;
        let usual = config.limits.memory_bytes.saturating_add(W::OVERHEAD_BYTES);
        let limit = config.options.suspended_bytes.unwrap_or(usual);
        if saved.bytes() > limit {
            return Err(format!(
                "it has {} bytes, the limit is {limit}; delete variables and files that are not needed",
                saved.bytes()
            ));
        }
        Ok(saved)
    }
}

impl<W: Wall> LocalMachine for RunningMachine<W> {
    fn save(&self) -> BoxFuture<'_, Result<Box<dyn SavedMachine>>> {
        Box::pin(async {
            let saved = self.write().await.map_err(|reason| {
                Error::request(format!(
                    "write the state of the sandbox to disk: {reason}; the sandbox goes on"
                ))
            })?;
            Ok(Box::new(saved) as Box<dyn SavedMachine>)
        })
    }

    fn reconnect(&self) -> BoxFuture<'_, Result<UnixStream>> {
        Box::pin(async {
            let machines = &self.machines;
            let mut control = self.control.lock().await;
            let machine = (&self.owner, &mut *control);
            let connecting = machines.wall.reconnect(&machines.config, machine, &self.place);
            let mut stream = connecting.await.map_err(|reason| {
                failure::<W>(&format!("connect to a machine that was suspended: {reason}"))
            })?;
            let limit = machines.config.options.restore_limit();
            Wake::new(&*self.identity).send(&mut stream, limit).await?;
            Ok(stream)
        })
    }
}

impl<W: Wall> SavedState<W> {
    async fn restore(&self, renamed: bool) -> Result<OpenedStream> {
        let found = files(&self.directory);
        if !found.is_ok_and(|found| found == self.files) {
            let reason =
                "the state of the sandbox on disk is not what was written; it was changed, or removed";
            return Err(failure::<W>(reason));
        }
        let identity = (!renamed).then_some(&*self.identity);
        let restoring = || {
            self.machines
                .restored(&self.snapshot, Some(&self.directory), identity)
        };
        let (running, stream) = match restoring().await {
            Ok(restored) => restored,
            Err(error) => {
                tracing::warn!(%error, "could not restore a suspended machine; trying again");
                restoring().await?
            }
        };
        Ok(running.opened(stream))
    }
}

impl<W> SavedState<W> {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl<W: Wall> SavedMachine for SavedState<W> {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn open(&self, renamed: bool) -> BoxFuture<'_, Result<OpenedStream>> {
        Box::pin(self.restore(renamed))
    }
}

impl<W> fmt::Debug for SavedState<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("SavedState");
        shown
            .field("directory", &self.directory)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl<W> Drop for SavedState<W> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn full(free: u64) -> String {
    format!(
        "the data directory's disk has only {} MiB free; make room there",
        free >> 20
    )
}

fn clear(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        fs::remove_file(entry?.path())?;
    }
    Ok(())
}

fn files(directory: &Path) -> io::Result<Vec<SavedFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        found.push(SavedFile {
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: metadata.len(),
            unchanged: (metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}
