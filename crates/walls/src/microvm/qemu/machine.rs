//! Booting, snapshotting and restoring machines with QEMU.

use std::io;
use std::path::Path;
use std::time::Duration;

use cellblock_guest::machine::MachineOrder;
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::cgroup::GroupLimits;
use serde_json::json;
use tokio::net::UnixStream;

use super::qmp::Qmp;
use super::{Accelerator, MemoryLocation, Qemu, STREAM};
use crate::WallConfig;
use crate::machines::{MachineOrigin, Wall, connected, listen};
use crate::microvm::files::{self, FORM, Files, HostWay};
use crate::microvm::size::{OVERHEAD_BYTES, total_bytes};
use crate::owner::MachineOwner;
use crate::places::{MachinePlace, MachinePlaces};
use crate::snapshot::Facts;

/// Maximum time to write a snapshot, or the state of a machine that goes on, and to load it.
const SNAPSHOT_LIMIT: Duration = Duration::from_mins(3);
/// Maximum rate of writing; without it, QEMU writes no more than 128 MiB in a second.
const BYTES_PER_SECOND: u64 = 1 << 40;

impl Wall for Qemu {
    const KIND: BackendKind = BackendKind::Microvm;
    /// Emulated, on a busy machine.
    const TEMPLATE_LIMIT: Duration = Duration::from_mins(8);

    const SENDS_LAYERS: bool = true;

    const OVERHEAD_BYTES: u64 = OVERHEAD_BYTES;

    type Control = Qmp;

    fn description(&self) -> String {
        let how = match self.accelerator {
            Accelerator::Kvm => "KVM",
            Accelerator::Tcg => "emulated (slow, and no security boundary)",
        };
        format!("QEMU {}, {how}, kernel {}", self.version, self.kernel.release)
    }

    fn facts(&self, facts: Facts) -> io::Result<Facts> {
        Ok(facts
            .with("form", FORM)
            .with("qemu", &*self.version)
            .with("accelerator", format!("{:?}", self.accelerator))
            .with("guest", self.kernel.sha256()?))
    }

    fn prepare(&self, _places: &MachinePlaces) -> io::Result<()> {
        Ok(())
    }

    async fn start(
        &self,
        config: &WallConfig,
        _places: &MachinePlaces,
        place: &MachinePlace,
        directory: &Path,
    ) -> Result<(MachineOwner, Qmp), String> {
        let (copy, qemu, target) = (config.clone(), self.clone(), directory.to_owned());
        let written =
            tokio::task::spawn_blocking(move || files::write(&copy, &qemu.kernel, HostWay::Port, &target))
                .await;
        written
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        let files = Files::of(directory);
        let (owner, control, _) = self.run(config, place, &files, MemoryLocation::Written).await?;
        Ok((owner, control))
    }

    async fn save(
        &self,
        (_, control): (&MachineOwner, &mut Qmp),
        _place: &MachinePlace,
        directory: &Path,
    ) -> Result<(), String> {
        ignore_memory(control, true).await?;
        control.run("stop", json!({})).await?;
        write(control, &Files::of(directory).state).await?;
        control.run("quit", json!({})).await.map(drop)
    }

    async fn restore(
        &self,
        config: &WallConfig,
        _places: &MachinePlaces,
        place: &MachinePlace,
        origin: MachineOrigin<'_>,
    ) -> Result<(MachineOwner, Qmp, UnixStream), String> {
        let files = Files::of(origin.snapshot);
        let (memory, state) = match origin.saved {
            Some(saved) => (MemoryLocation::InState, Files::of(saved).state),
            None => (MemoryLocation::Mapped, files.state.clone()),
        };
        let (owner, mut control, stream) = self.run(config, place, &files, memory).await?;
        let loaded = load(&mut control, &state, memory).await;
        loaded.map_err(|reason| format!("{reason}: {}", owner.last_words()))?;
        Ok((owner, control, stream))
    }

    async fn save_running(
        &self,
        (_, control): (&MachineOwner, &mut Qmp),
        _place: &MachinePlace,
        directory: &Path,
    ) -> Result<(), String> {
        // Its memory is private, and has to be written, too.
        ignore_memory(control, false).await?;
        control.run("stop", json!({})).await?;
        let written = write(control, &Files::of(directory).state).await;
        if written.is_err() {
            control.run("migrate_cancel", json!({})).await?;
        }
        control.run("cont", json!({})).await?;
        written
    }

    async fn reconnect(
        &self,
        config: &WallConfig,
        (owner, control): (&MachineOwner, &mut Qmp),
        place: &MachinePlace,
    ) -> Result<UnixStream, String> {
        let socket = Sockets::of(place).stream;
        let listener = listen(&socket)?;
        let address = json!({"type": "unix", "data": {"path": socket}});
        let backend = json!({"type": "socket", "data": {"addr": address, "server": false}});
        let change = json!({"id": STREAM, "backend": backend});
        control.run("chardev-change", change).await?;
        connected(&listener, owner, config.options.restore_limit()).await
    }
}

impl Qemu {
    /// Starts QEMU and waits until it has connected to both sockets.
    async fn run(
        &self,
        config: &WallConfig,
        place: &MachinePlace,
        files: &Files,
        memory: MemoryLocation,
    ) -> Result<(MachineOwner, Qmp, UnixStream), String> {
        let sockets = Sockets::of(place);
        let control = listen(&sockets.control)?;
        let stream = listen(&sockets.stream)?;
        let machine = MachineOrder {
            program: self.command(&sockets, files, &config.limits, memory),
            cleanup: Vec::new(),
            directory: place.path.clone(),
            namespaces: false,
            mounts: Vec::new(),
            limits: GroupLimits {
                memory_bytes: Some(total_bytes(&config.limits)),
                processes: None,
                cpu_millis: config.limits.cpu_millis,
                socket_bytes: None,
            },
        };
        let owner = MachineOwner::start(&config.executable, &machine)?;
        let limit = config.options.restore_limit();
        let stream = connected(&stream, &owner, limit).await?;
        let control = connected(&control, &owner, limit).await?;
        let control = Qmp::start(control, limit).await;
        let control = control.map_err(|reason| format!("{reason}: {}", owner.last_words()))?;
        Ok((owner, control, stream))
    }
}

/// The sockets of a machine, on which the host listens.
pub(super) struct Sockets {
    /// For QEMU's control protocol.
    pub(super) control: std::path::PathBuf,
    /// For the stream to the machine.
    pub(super) stream: std::path::PathBuf,
}

impl Sockets {
    fn of(place: &MachinePlace) -> Self {
        Self {
            control: place.path.join("qmp"),
            stream: place.path.join("port"),
        }
    }
}

/// Writes the state of a machine that is stopped.
async fn write(control: &mut Qmp, state: &Path) -> Result<(), String> {
    let parameters = json!({"max-bandwidth": BYTES_PER_SECOND});
    control.run("migrate-set-parameters", parameters).await?;
    let uri = format!("file:{}", state.display());
    control.run("migrate", json!({"uri": uri})).await?;
    let pending = ["none", "setup", "active", "device", "pre-switchover"];
    let result = control.settled("query-migrate", &pending, SNAPSHOT_LIMIT).await?;
    if result["status"] != "completed" {
        return Err(format!("QEMU could not write its state: {result}"));
    }
    Ok(())
}

/// Loads a state and lets the machine run.
async fn load(control: &mut Qmp, state: &Path, memory: MemoryLocation) -> Result<(), String> {
    ignore_memory(control, memory == MemoryLocation::Mapped).await?;
    let uri = format!("file:{}", state.display());
    control.run("migrate-incoming", json!({"uri": uri})).await?;
    let result = control
        .settled("query-status", &["inmigrate"], SNAPSHOT_LIMIT)
        .await?;
    match result["status"].as_str() {
        Some("running") => Ok(()),
        Some("paused" | "prelaunch") => control.run("cont", json!({})).await.map(drop),
        _ => Err(format!("QEMU could not load its state: {result}")),
    }
}

/// Leaves the memory out of a state, because it is in a file of its own, or takes it in.
async fn ignore_memory(control: &mut Qmp, ignored: bool) -> Result<(), String> {
    let capability = json!({"capability": "x-ignore-shared", "state": ignored});
    let arguments = json!({"capabilities": [capability]});
    control.run("migrate-set-capabilities", arguments).await.map(drop)
}
