//! The machines of one backend: a template and its snapshot, and one restored machine per sandbox.

use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellblock_remote::{LocalConfig, OpenedStream, RemoteBackend, unreachable};
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::protection::Demands;
use cellblock_sandbox::{Error, Result};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Mutex;

use crate::WallConfig;
use crate::owner::MachineOwner;
use crate::places::{MachinePlace, MachinePlaces};
use crate::running::RunningMachine;
use crate::snapshot::{Facts, Snapshot, SnapshotStore};
use crate::wake::Wake;

/// Free space below which a failure is explained by a full disk.
pub(crate) const FULL_BYTES: u64 = 256 << 20;
/// Memory that a forked kernel writes to before it runs code. What the template needs is not
/// counted: each backend adds it to the limit.
const LEAST_BYTES: u64 = 64 << 20;
/// Maximum time for a template to end.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Operations of a backend that start and snapshot its machines. Failures are reasons, in words for a person.
pub(crate) trait Wall: Debug + Send + Sync + 'static {
    /// The backend.
    const KIND: BackendKind;
    /// The backend's name.
    const NAME: &'static str = Self::KIND.name();
    /// Maximum time for a template to import the image's libraries.
    const TEMPLATE_LIMIT: Duration;

    /// Whether machines cannot see the image's layers on this computer.
    const SENDS_LAYERS: bool;

    /// Memory that a machine needs beside that of its sandbox.
    const OVERHEAD_BYTES: u64;

    /// Control that keeps a machine running, in addition to its owner.
    type Control: Send + 'static;

    /// Returns what runs, with version and platform, for reports.
    fn description(&self) -> String;

    /// Adds what snapshots depend on beside the image, this program, the limits and the computer.
    fn facts(&self, facts: Facts) -> io::Result<Facts>;

    /// Writes what all machines of this process share.
    fn prepare(&self, places: &MachinePlaces) -> io::Result<()>;

    /// Starts a template, whose files it writes to `directory`.
    fn start(
        &self,
        config: &WallConfig,
        places: &MachinePlaces,
        place: &MachinePlace,
        directory: &Path,
    ) -> impl Future<Output = Result<(MachineOwner, Self::Control), String>> + Send;

    /// Writes the state of a template that is ready to `directory`, and ends it.
    fn save(
        &self,
        template: (&MachineOwner, &mut Self::Control),
        place: &MachinePlace,
        directory: &Path,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Restores a machine, and returns the stream to it.
    fn restore(
        &self,
        config: &WallConfig,
        places: &MachinePlaces,
        place: &MachinePlace,
        origin: MachineOrigin<'_>,
    ) -> impl Future<Output = Result<(MachineOwner, Self::Control, UnixStream), String>> + Send;

    /// Writes the state of a machine that runs code and has no connection to `directory`. It goes
    /// on, also after a failure.
    fn save_running(
        &self,
        machine: (&MachineOwner, &mut Self::Control),
        place: &MachinePlace,
        directory: &Path,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Connects again to a machine that goes on.
    fn reconnect(
        &self,
        config: &WallConfig,
        machine: (&MachineOwner, &mut Self::Control),
        place: &MachinePlace,
    ) -> impl Future<Output = Result<UnixStream, String>> + Send;
}

/// Origin from which a machine is restored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineOrigin<'a> {
    /// The files of the template's snapshot.
    pub(crate) snapshot: &'a Path,
    /// The files of another machine of this snapshot that ran code, if it goes on with that one's state.
    pub(crate) saved: Option<&'a Path>,
}

/// Makes the machines of one backend.
#[derive(Debug)]
pub(crate) struct Machines<W> {
    pub(crate) wall: W,
    pub(crate) config: WallConfig,
    pub(crate) places: MachinePlaces,
    store: SnapshotStore,
    facts: Facts,
    snapshot: Mutex<Option<Arc<Snapshot>>>,
}

/// Finds the snapshot of the image, or makes it, and returns the backend.
pub(crate) async fn start<W: Wall>(wall: W, config: WallConfig, demands: Demands) -> Result<RemoteBackend> {
    has_room(W::NAME, config.limits.memory_bytes)?;
    let home = config.image.home().root().to_owned();
    let failed = |error: io::Error| failure::<W>(&format!("prepare `{}`: {error}", home.display()));
    let places = MachinePlaces::create(&home, W::NAME).map_err(failed)?;
    wall.prepare(&places).map_err(failed)?;
    let facts = Facts::new(W::NAME, &config).and_then(|facts| wall.facts(facts));
    let manifest = config.image.manifest().clone();
    let description = wall.description();
    let machines = Arc::new(Machines {
        facts: facts.map_err(failed)?,
        store: SnapshotStore::below(&home),
        snapshot: Mutex::default(),
        wall,
        config,
        places,
    });
    machines.snapshot().await?;
    let local = LocalConfig {
        name: W::NAME.to_owned(),
        backend: W::NAME,
        wall: Some(description),
        lacks: W::KIND.lacks(),
        sends_layers: W::SENDS_LAYERS,
        suspends: W::KIND.suspends(),
        open: Arc::new(move || Box::pin(Arc::clone(&machines).open())),
    };
    RemoteBackend::start_local(local, demands, manifest).await
}

impl<W: Wall> Machines<W> {
    /// Restores a machine and wakes it. A failure is tried again, first with the same snapshot and
    /// then with a new one.
    async fn open(self: Arc<Self>) -> Result<OpenedStream> {
        let snapshot = self.snapshot().await?;
        for _ in 0..2 {
            match self.restore(&snapshot).await {
                Ok(opened) => return Ok(opened),
                Err(error) => tracing::warn!(%error, "could not restore a machine; trying again"),
            }
        }
        let fresh = self.renew(&snapshot).await?;
        self.restore(&fresh).await.map_err(|error| {
            failure::<W>(&format!(
                "{error}; remove `{}` to start over, or use another backend",
                fresh.path().display()
            ))
        })
    }

    async fn snapshot(&self) -> Result<Arc<Snapshot>> {
        let mut current = self.snapshot.lock().await;
        if let Some(snapshot) = &*current {
            return Ok(Arc::clone(snapshot));
        }
        let make = |directory: PathBuf| async move { self.make(&directory).await };
        let found = Arc::new(self.store.find_or_make(&self.facts, make).await?);
        *current = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Replaces a snapshot from which no machine can be restored, once for all who wait.
    async fn renew(&self, broken: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        let mut current = self.snapshot.lock().await;
        if let Some(other) = current.as_ref().filter(|it| !Arc::ptr_eq(it, broken)) {
            return Ok(Arc::clone(other));
        }
        tracing::warn!(path = %broken.path().display(), "making the snapshot again");
        let make = |directory: PathBuf| async move { self.make(&directory).await };
        let fresh = Arc::new(self.store.remake(&self.facts, broken, make).await?);
        *current = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    async fn restore(self: &Arc<Self>, snapshot: &Arc<Snapshot>) -> Result<OpenedStream> {
        let (running, stream) = self.restored(snapshot, None, None).await?;
        Ok(running.opened(stream))
    }

    /// Restores a machine from a snapshot, or from what another one of it has saved, and wakes it
    /// with this name, or with one of its own.
    pub(crate) async fn restored(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        saved: Option<&Path>,
        identity: Option<&str>,
    ) -> Result<(RunningMachine<W>, UnixStream)> {
        let failed = |reason: String| failure::<W>(&format!("restore a machine: {reason}"));
        let place = self.places.machine().map_err(|error| failed(error.to_string()))?;
        let origin = MachineOrigin {
            snapshot: snapshot.path(),
            saved,
        };
        let restoring = self.wall.restore(&self.config, &self.places, &place, origin);
        let (owner, control, mut stream) = restoring.await.map_err(failed)?;
        let identity = identity.unwrap_or(&place.id).to_owned();
        let limit = self.config.options.restore_limit();
        Wake::new(&*identity).send(&mut stream, limit).await?;
        let running = RunningMachine {
            owner,
            control: Mutex::new(control),
            machines: Arc::clone(self),
            snapshot: Arc::clone(snapshot),
            place,
            identity,
        };
        Ok((running, stream))
    }

    /// Makes a snapshot. A program that fails because the disk is full often cannot say so.
    async fn make(&self, directory: &Path) -> Result<()> {
        self.template(directory).await.map_err(|reason| {
            let full = free_bytes(directory)
                .filter(|free| *free < FULL_BYTES)
                .map(|free| {
                    format!(
                        "; `{}` has only {} MiB free: remove files there, or set `CELLBLOCK_HOME` to \
                     a larger disk",
                        directory.display(),
                        free >> 20
                    )
                });
            failure::<W>(&format!("make a snapshot: {reason}{}", full.unwrap_or_default()))
        })
    }

    /// Starts a template, waits until it has imported the image's libraries, and writes its snapshot.
    async fn template(&self, directory: &Path) -> Result<(), String> {
        let place = self.places.machine().map_err(|error| error.to_string())?;
        let starting = self.wall.start(&self.config, &self.places, &place, directory);
        let (owner, mut control) = starting.await?;
        let ready = tokio::time::timeout(W::TEMPLATE_LIMIT, owner.ready()).await;
        ready
            .map_err(|_| {
                let late = late("import the image's libraries", W::TEMPLATE_LIMIT);
                format!("{late}: {}", owner.last_words())
            })?
            .map_err(|reason| format!("the template ended: {reason}"))?;
        self.wall.save((&owner, &mut control), &place, directory).await?;
        // Its directory is gone before the caller goes on.
        let ended = tokio::time::timeout(END_LIMIT, owner.ended()).await;
        ended.map_err(|_| late("end", END_LIMIT))
    }
}

fn late(action: &str, limit: Duration) -> String {
    format!("the template did not {action} within {} s", limit.as_secs())
}

/// Returns how much a file system can still take.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// Fails for a memory limit with which no kernel starts.
fn has_room(backend: &str, limit: u64) -> Result<()> {
    if limit >= LEAST_BYTES {
        return Ok(());
    }
    Err(Error::request(format!(
        "run sandboxes with {} MiB of memory in `{backend}`: a kernel needs {} MiB or more there; raise \
         the memory limit",
        limit >> 20,
        LEAST_BYTES >> 20
    )))
}

/// Listens on a socket that only this user can use, in place of an earlier one.
pub(crate) fn listen(socket: &Path) -> Result<UnixListener, String> {
    let _ = fs::remove_file(socket);
    let listener =
        UnixListener::bind(socket).map_err(|error| format!("listen on `{}`: {error}", socket.display()))?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))
        .map_err(|error| format!("protect `{}`: {error}", socket.display()))?;
    Ok(listener)
}

/// Waits until the machine connects.
pub(crate) async fn connected(
    listener: &UnixListener,
    owner: &MachineOwner,
    limit: Duration,
) -> Result<UnixStream, String> {
    let accepted = async {
        tokio::select! {
            accepted = listener.accept() => {
                accepted.map(|(stream, _)| stream).map_err(|error| error.to_string())
            }
            () = owner.ended() => Err(format!("the machine ended: {}", owner.last_words())),
        }
    };
    let accepted = tokio::time::timeout(limit, accepted).await;
    accepted.map_err(|_| {
        format!(
            "the machine did not connect within {} s: {}",
            limit.as_secs_f32(),
            owner.last_words()
        )
    })?
}

pub(crate) fn failure<W: Wall>(reason: &str) -> Error {
    unreachable(W::NAME, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_limit_with_which_no_kernel_starts_is_rejected_with_the_least() {
        assert!(has_room("gvisor", 64 << 20).is_ok());
        let error = has_room("gvisor", 32 << 20).unwrap_err().to_string();
        assert!(error.contains("with 32 MiB of memory in `gvisor`"), "{error}");
        assert!(error.contains("needs 64 MiB or more"), "{error}");
    }
}
