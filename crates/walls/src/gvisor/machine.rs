//! Machines: the template and its snapshot, and one restored machine per sandbox.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cellblock_guest::machine::Machine;
use cellblock_remote::{Opened, unreachable};
use cellblock_sandbox::jail::cgroup::GroupLimits;
use cellblock_sandbox::{Error, Result};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Mutex;

use super::NAME;
use super::bundle;
use super::places::{MachinePlace, Places};
use super::runsc::Runsc;
use crate::WallConfig;
use crate::owner::Owner;
use crate::snapshot::{Facts, Snapshot, SnapshotStore};
use crate::wake::Wake;

/// Line of a template that can be written to a snapshot.
const READY: &str = "ready";
/// Maximum time for a template to import the image's libraries.
const TEMPLATE_LIMIT: Duration = Duration::from_mins(3);
/// Maximum time to write a snapshot.
const SNAPSHOT_LIMIT: Duration = Duration::from_mins(1);
/// Maximum time for a restored machine to connect, and then to answer.
const RESTORE_LIMIT: Duration = Duration::from_secs(20);
/// Memory of the template and of gVisor itself, and what code can take until the machine notices that it
/// has taken too much. Beyond it the host ends the whole machine.
const OVERHEAD_BYTES: u64 = 1 << 30;

/// Makes the machines of one backend.
#[derive(Debug)]
pub(super) struct Machines {
    config: WallConfig,
    runsc: Runsc,
    places: Places,
    store: SnapshotStore,
    facts: Facts,
    snapshot: Mutex<Arc<Snapshot>>,
}

/// What a sandbox holds until its end.
struct Running {
    _owner: Owner,
    _machines: Arc<Machines>,
    _snapshot: Arc<Snapshot>,
}

impl Machines {
    /// Finds the snapshot of the image, or makes it.
    pub(super) async fn prepare(config: WallConfig, runsc: Runsc) -> Result<Self> {
        let home = config.image.home().root().to_owned();
        let failed = |error: io::Error| failure(&format!("prepare `{}`: {error}", home.display()));
        std::fs::create_dir_all(config.image.home().layers()).map_err(failed)?;
        let places = Places::create(&home).map_err(failed)?;
        let facts = Facts::new(NAME, &config)
            .map_err(failed)?
            .with("runsc", &*runsc.version);
        let store = SnapshotStore::below(&home);
        let snapshot = store
            .find_or_make(&facts, |directory| async {
                let directory = directory;
                template(&config, &runsc, &places, &directory).await
            })
            .await?;
        Ok(Self {
            config,
            runsc,
            places,
            store,
            facts,
            snapshot: Mutex::new(Arc::new(snapshot)),
        })
    }

    /// Restores a machine and wakes it. A failure is tried again, first with the same snapshot and then with a
    /// new one.
    pub(super) async fn open(self: Arc<Self>) -> Result<Opened> {
        let snapshot = Arc::clone(&*self.snapshot.lock().await);
        for _ in 0..2 {
            match self.restore(&snapshot).await {
                Ok(opened) => return Ok(opened),
                Err(error) => tracing::warn!(%error, "could not restore a machine; trying again"),
            }
        }
        let fresh = self.renew(&snapshot).await?;
        self.restore(&fresh).await.map_err(|error| {
            failure(&format!(
                "{error}; remove `{}` to start over, or use another backend",
                fresh.path().display()
            ))
        })
    }

    /// Replaces a snapshot from which no machine can be restored, once for all who wait.
    async fn renew(&self, broken: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        let mut current = self.snapshot.lock().await;
        if Arc::ptr_eq(&current, broken) {
            tracing::warn!(path = %broken.path().display(), "making the snapshot again");
            let make = |directory: std::path::PathBuf| async move {
                template(&self.config, &self.runsc, &self.places, &directory).await
            };
            *current = Arc::new(self.store.remake(&self.facts, broken, make).await?);
        }
        Ok(Arc::clone(&current))
    }

    async fn restore(self: &Arc<Self>, snapshot: &Arc<Snapshot>) -> Result<Opened> {
        let failed = |reason: String| failure(&format!("restore a machine: {reason}"));
        let place = self.places.machine().map_err(|error| failed(error.to_string()))?;
        let prepared = prepare(&place, &self.places, &self.config);
        let listener = prepared
            .and_then(|()| listen(&place.socket()))
            .map_err(|error| failed(error.to_string()))?;
        let mut program = self.runsc.words(&place.state());
        program.extend([
            "restore".to_owned(),
            format!("--image-path={}", snapshot.path().display()),
            format!("--bundle={}", place.path.display()),
            place.id.clone(),
        ]);
        let owner = own(&self.config, &self.runsc, &place, program).map_err(failed)?;
        let mut stream = connected(&listener, &owner).await.map_err(failed)?;
        Wake::new(&*place.id)?.send(&mut stream, RESTORE_LIMIT).await?;
        let running = Running {
            _owner: owner,
            _machines: Arc::clone(self),
            _snapshot: Arc::clone(snapshot),
        };
        Ok(Opened {
            stream,
            keep: Some(Box::new(running)),
        })
    }
}

/// Starts a template, waits until it has imported the image's libraries, and writes its snapshot.
async fn template(config: &WallConfig, runsc: &Runsc, places: &Places, directory: &Path) -> Result<()> {
    let failed = |reason: String| failure(&format!("make a snapshot: {reason}"));
    let place = places.machine().map_err(|error| failed(error.to_string()))?;
    prepare(&place, places, config).map_err(|error| failed(error.to_string()))?;
    let words = runsc.words(&place.state());
    let mut program = words.clone();
    program.extend([
        "run".to_owned(),
        format!("--bundle={}", place.path.display()),
        place.id.clone(),
    ]);
    let owner = own(config, runsc, &place, program).map_err(failed)?;
    let ready = tokio::time::timeout(TEMPLATE_LIMIT, owner.prints(READY)).await;
    ready
        .map_err(|_| Error::too_late("the image's template", TEMPLATE_LIMIT))?
        .map_err(|reason| failed(format!("the template ended: {reason}")))?;
    let mut checkpoint = words;
    checkpoint.extend([
        "checkpoint".to_owned(),
        "--compression=none".to_owned(),
        format!("--image-path={}", directory.display()),
        place.id.clone(),
    ]);
    let written = tokio::time::timeout(SNAPSHOT_LIMIT, owner.run(checkpoint)).await;
    written
        .map_err(|_| Error::too_late("a snapshot", SNAPSHOT_LIMIT))?
        .map_err(failed)?;
    // Its directory is gone before the caller goes on.
    let ended = tokio::time::timeout(RESTORE_LIMIT, owner.ended()).await;
    ended.map_err(|_| Error::too_late("the end of a template", RESTORE_LIMIT))
}

fn prepare(place: &MachinePlace, places: &Places, config: &WallConfig) -> io::Result<()> {
    bundle::write(&place.path, &places.root(), &place.shared(), config)
}

fn listen(socket: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Starts the owner of a machine.
fn own(
    config: &WallConfig,
    runsc: &Runsc,
    place: &MachinePlace,
    program: Vec<String>,
) -> Result<Owner, String> {
    let mut delete = runsc.words(&place.state());
    delete.extend(["delete".to_owned(), "-force".to_owned(), place.id.clone()]);
    let machine = Machine {
        program,
        cleanup: vec![delete],
        directory: place.path.clone(),
        namespaces: !rustix::process::geteuid().is_root(),
        limits: GroupLimits {
            memory_bytes: Some(config.limits.memory_bytes.saturating_add(OVERHEAD_BYTES)),
            // Inside, tasks are gVisor's own; threads of its kernel come and go.
            processes: None,
            cpu_millis: config.limits.cpu_millis,
        },
    };
    Owner::start(&config.executable, &machine)
}

/// Waits until the machine connects.
async fn connected(listener: &UnixListener, owner: &Owner) -> Result<UnixStream, String> {
    let accepted = async {
        tokio::select! {
            accepted = listener.accept() => accepted.map(|(stream, _)| stream).map_err(|error| error.to_string()),
            () = owner.ended() => Err(format!("it ended: {}", owner.last_words())),
        }
    };
    let accepted = tokio::time::timeout(RESTORE_LIMIT, accepted).await;
    accepted.map_err(|_| {
        format!(
            "it did not connect within {} s: {}",
            RESTORE_LIMIT.as_secs(),
            owner.last_words()
        )
    })?
}

fn failure(reason: &str) -> Error {
    unreachable(NAME, reason)
}
