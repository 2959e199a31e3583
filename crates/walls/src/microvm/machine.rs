//! Machines: the template and its snapshot, and one restored machine per sandbox.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cellblock_guest::machine::MachineOrder;
use cellblock_remote::{OpenedStream, unreachable};
use cellblock_sandbox::jail::cgroup::GroupLimits;
use cellblock_sandbox::{Error, Result};
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Mutex;

use super::NAME;
use super::boot::PORT;
use super::disk;
use super::places::{MachinePlace, Places};
use super::qemu::{Files, Qemu, memory_bytes};
use super::qmp::Qmp;
use crate::WallConfig;
use crate::owner::MachineOwner;
use crate::snapshot::{Facts, Snapshot, SnapshotStore};
use crate::wake::Wake;

/// Number of the way in which templates are made; another one makes snapshots anew.
const FORM: &str = "2";
/// Line of a template that can be written to a snapshot.
const READY: &str = "ready";
/// Maximum time for a template to boot and to import the image's libraries, emulated on a busy machine.
const TEMPLATE_LIMIT: Duration = Duration::from_mins(8);
/// Maximum time to write a snapshot.
const SNAPSHOT_LIMIT: Duration = Duration::from_mins(1);
/// Maximum time for QEMU to connect, to load its state, and for the machine to answer.
const RESTORE_LIMIT: Duration = Duration::from_secs(20);
/// Memory of QEMU itself, beside that of the machine.
const OVERHEAD_BYTES: u64 = 384 << 20;

/// Makes the machines of one backend.
#[derive(Debug)]
pub(super) struct Machines {
    config: WallConfig,
    qemu: Qemu,
    places: Places,
    store: SnapshotStore,
    facts: Facts,
    snapshot: Mutex<Arc<Snapshot>>,
}

/// What a sandbox holds until its end.
struct Running {
    _owner: MachineOwner,
    _control: Qmp,
    _machines: Arc<Machines>,
    _snapshot: Arc<Snapshot>,
}

/// A QEMU that has connected.
struct Started {
    owner: MachineOwner,
    control: Qmp,
    stream: UnixStream,
}

impl Machines {
    /// Finds the snapshot of the image, or makes it.
    pub(super) async fn prepare(config: WallConfig, qemu: Qemu) -> Result<Self> {
        let home = config.image.home().root().to_owned();
        let failed = |error: io::Error| failure(&format!("prepare `{}`: {error}", home.display()));
        let places = Places::create(&home).map_err(failed)?;
        let facts = Facts::new(NAME, &config)
            .map_err(failed)?
            .with("form", FORM)
            .with("qemu", &*qemu.version)
            .with("accelerator", format!("{:?}", qemu.accelerator))
            .with("guest", qemu.kernel.sha256().map_err(failed)?);
        let store = SnapshotStore::below(&home);
        let make = |directory: std::path::PathBuf| {
            let (config, qemu, places) = (&config, &qemu, &places);
            async move { template(config, qemu, places, &directory).await }
        };
        let snapshot = store.find_or_make(&facts, make).await?;
        Ok(Self {
            config,
            qemu,
            places,
            store,
            facts,
            snapshot: Mutex::new(Arc::new(snapshot)),
        })
    }

    /// Restores a machine and wakes it. A failure is tried again, first with the same snapshot and then with a
    /// new one.
    pub(super) async fn open(self: Arc<Self>) -> Result<OpenedStream> {
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
                template(&self.config, &self.qemu, &self.places, &directory).await
            };
            *current = Arc::new(self.store.remake(&self.facts, broken, make).await?);
        }
        Ok(Arc::clone(&current))
    }

    async fn restore(self: &Arc<Self>, snapshot: &Arc<Snapshot>) -> Result<OpenedStream> {
        let failed = |reason: String| failure(&format!("restore a machine: {reason}"));
        let place = self.places.machine().map_err(|error| failed(error.to_string()))?;
        let files = Files::of(snapshot.path());
        let mut started = start(&self.config, &self.qemu, &place, &files, true)
            .await
            .map_err(failed)?;
        load(&mut started.control, &files.state)
            .await
            .map_err(|reason| failed(format!("{reason}: {}", started.owner.last_words())))?;
        Wake::new(&*place.id)?
            .send(&mut started.stream, RESTORE_LIMIT)
            .await?;
        let running = Running {
            _owner: started.owner,
            _control: started.control,
            _machines: Arc::clone(self),
            _snapshot: Arc::clone(snapshot),
        };
        Ok(OpenedStream {
            stream: started.stream,
            keep: Some(Box::new(running)),
        })
    }
}

/// Boots a template, waits until it has imported the image's libraries, and writes its snapshot.
async fn template(config: &WallConfig, qemu: &Qemu, places: &Places, directory: &Path) -> Result<()> {
    let failed = |reason: String| failure(&format!("make a snapshot: {reason}"));
    let place = places.machine().map_err(|error| failed(error.to_string()))?;
    let written = {
        let (config, qemu, directory) = (config.clone(), qemu.clone(), directory.to_owned());
        tokio::task::spawn_blocking(move || write_files(&config, &qemu, &directory)).await
    };
    written
        .map_err(|error| failed(error.to_string()))?
        .map_err(|error| failed(error.to_string()))?;
    let files = Files::of(directory);
    let mut started = start(config, qemu, &place, &files, false).await.map_err(failed)?;
    let ready = tokio::time::timeout(TEMPLATE_LIMIT, started.owner.prints(READY)).await;
    ready
        .map_err(|_| Error::too_late("the image's template", TEMPLATE_LIMIT))?
        .map_err(|reason| failed(format!("the template ended: {reason}")))?;
    save(&mut started.control, &files.state).await.map_err(failed)?;
    let ended = tokio::time::timeout(RESTORE_LIMIT, started.owner.ended()).await;
    ended.map_err(|_| Error::too_late("the end of a template", RESTORE_LIMIT))
}

fn write_files(config: &WallConfig, qemu: &Qemu, directory: &Path) -> io::Result<()> {
    let files = Files::of(directory);
    std::fs::write(&files.kernel, qemu.kernel.unpacked()?)?;
    let limits = serde_json::to_string(&config.limits)?;
    let words = [
        "--image",
        config.image.id(),
        "--host",
        &format!("port:{PORT}"),
        "--limits",
        &limits,
        // A kernel that existed before the snapshot would draw the same numbers in every machine: each is forked
        // from the template after the wake, and seeds itself then.
        "--ready",
        "0",
    ]
    .map(str::to_owned);
    std::fs::write(&files.first_tree, disk::first_tree(config, &qemu.kernel, &words)?)?;
    disk::write_disk(&files.disk, &directory.join("tree"), config)
}

/// Starts QEMU and waits until it has connected to both sockets.
async fn start(
    config: &WallConfig,
    qemu: &Qemu,
    place: &MachinePlace,
    files: &Files,
    restored: bool,
) -> Result<Started, String> {
    let control = listen(&place.control())?;
    let stream = listen(&place.stream())?;
    let machine = MachineOrder {
        program: qemu.command(place, files, &config.limits, restored),
        cleanup: Vec::new(),
        directory: place.path.clone(),
        namespaces: false,
        limits: GroupLimits {
            memory_bytes: Some(memory_bytes(&config.limits).saturating_add(OVERHEAD_BYTES)),
            processes: None,
            cpu_millis: config.limits.cpu_millis,
        },
    };
    let owner = MachineOwner::start(&config.executable, &machine)?;
    let stream = connected(&stream, &owner).await?;
    let control = connected(&control, &owner).await?;
    let control = Qmp::start(control).await?;
    Ok(Started {
        owner,
        control,
        stream,
    })
}

/// Writes a template's state, except its memory, which is a file already, and ends it.
async fn save(control: &mut Qmp, state: &Path) -> Result<(), String> {
    ignore_memory(control).await?;
    control.run("stop", json!({})).await?;
    let uri = format!("file:{}", state.display());
    control.run("migrate", json!({"uri": uri})).await?;
    let pending = ["none", "setup", "active", "device", "pre-switchover"];
    let result = control.settled("query-migrate", &pending, SNAPSHOT_LIMIT).await?;
    if result["status"] != "completed" {
        return Err(format!("QEMU could not write its state: {result}"));
    }
    control.run("quit", json!({})).await.map(drop)
}

/// Loads a snapshot's state and lets the machine run.
async fn load(control: &mut Qmp, state: &Path) -> Result<(), String> {
    ignore_memory(control).await?;
    let uri = format!("file:{}", state.display());
    control.run("migrate-incoming", json!({"uri": uri})).await?;
    let result = control
        .settled("query-status", &["inmigrate"], RESTORE_LIMIT)
        .await?;
    match result["status"].as_str() {
        Some("running") => Ok(()),
        Some("paused" | "prelaunch") => control.run("cont", json!({})).await.map(drop),
        _ => Err(format!("QEMU could not load its state: {result}")),
    }
}

async fn ignore_memory(control: &mut Qmp) -> Result<(), String> {
    let capability = json!({"capability": "x-ignore-shared", "state": true});
    let arguments = json!({"capabilities": [capability]});
    control.run("migrate-set-capabilities", arguments).await.map(drop)
}

fn listen(socket: &Path) -> Result<UnixListener, String> {
    let listener =
        UnixListener::bind(socket).map_err(|error| format!("listen on `{}`: {error}", socket.display()))?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))
        .map_err(|error| format!("protect `{}`: {error}", socket.display()))?;
    Ok(listener)
}

/// Waits until QEMU connects.
async fn connected(listener: &UnixListener, owner: &MachineOwner) -> Result<UnixStream, String> {
    let accepted = async {
        tokio::select! {
            accepted = listener.accept() => accepted.map(|(stream, _)| stream).map_err(|error| error.to_string()),
            () = owner.ended() => Err(format!("QEMU ended: {}", owner.last_words())),
        }
    };
    let accepted = tokio::time::timeout(RESTORE_LIMIT, accepted).await;
    accepted.map_err(|_| {
        format!(
            "QEMU did not connect within {} s: {}",
            RESTORE_LIMIT.as_secs(),
            owner.last_words()
        )
    })?
}

fn failure(reason: &str) -> Error {
    unreachable(NAME, reason)
}
