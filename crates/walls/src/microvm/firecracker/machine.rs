//! Booting, snapshotting and restoring machines with Firecracker.

use std::io;
use std::path::Path;
use std::time::Duration;

use cellblock_guest::machine::MachineOrder;
use cellblock_sandbox::backend::BackendKind;
use cellblock_sandbox::jail::cgroup::GroupLimits;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::Firecracker;
use super::api::FirecrackerApi;
use super::stage::{Stage, readable};
use crate::WallConfig;
use crate::inside::PAUSE;
use crate::machines::{MachineOrigin, Wall};
use crate::microvm::boot::VSOCK_PORT;
use crate::microvm::files::{self, FORM, Files, HostWay};
use crate::microvm::size::{MIB, OVERHEAD_BYTES, memory_bytes, processors, total_bytes};
use crate::owner::MachineOwner;
use crate::places::{MachinePlace, MachinePlaces};
use crate::snapshot::Facts;

/// Maximum time to write a snapshot, or the state of a machine that goes on.
const SNAPSHOT_LIMIT: Duration = Duration::from_mins(1);
/// The machine's own address; nothing routes between machines.
const GUEST_CID: u32 = 3;
/// Maximum length of the answer to `CONNECT`.
const LINE: usize = 64;

/// Handles that keep a machine running, and the directory of its files.
pub(crate) struct Controls {
    api: FirecrackerApi,
    stage: Stage,
}

impl Wall for Firecracker {
    const KIND: BackendKind = BackendKind::Microvm;
    const TEMPLATE_LIMIT: Duration = Duration::from_mins(3);

    const SENDS_LAYERS: bool = true;

    const OVERHEAD_BYTES: u64 = OVERHEAD_BYTES;

    type Control = Controls;

    fn description(&self) -> String {
        let jail = if self.jailer.is_some() {
            "in its jailer"
        } else {
            "without its jailer, which needs root"
        };
        format!(
            "Firecracker {}, {jail}, KVM, kernel {}",
            self.version, self.kernel.release
        )
    }

    fn facts(&self, facts: Facts) -> io::Result<Facts> {
        Ok(facts
            .with("form", FORM)
            .with("firecracker", &*self.version)
            .with("jailer", self.jailer.is_some().to_string())
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
    ) -> Result<(MachineOwner, Controls), String> {
        let (copy, vmm, target) = (config.clone(), self.clone(), directory.to_owned());
        let written = tokio::task::spawn_blocking(move || {
            files::write(&copy, &vmm.kernel, HostWay::Vsock, &target)?;
            readable(&target)
        });
        written
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        let stage = self.stage(config, place, directory, true)?;
        let (owner, mut control) = self.run(config, place, stage).await?;
        let booted = self.boot(config, &mut control).await;
        booted.map_err(|reason| told(&reason, &owner))?;
        Ok((owner, control))
    }

    async fn save(
        &self,
        (owner, control): (&MachineOwner, &mut Controls),
        _place: &MachinePlace,
        directory: &Path,
    ) -> Result<(), String> {
        let Controls { api, stage } = control;
        api.patch("/vm", json!({"state": "Paused"})).await?;
        create(api, &stage.files()).await?;
        // The API has no request that ends a paused machine.
        owner.end();
        owner.ended().await;
        stage
            .seal(directory)
            .map_err(|error| format!("take over the snapshot's files: {error}"))
    }

    async fn restore(
        &self,
        config: &WallConfig,
        _places: &MachinePlaces,
        place: &MachinePlace,
        origin: MachineOrigin<'_>,
    ) -> Result<(MachineOwner, Controls, UnixStream), String> {
        let mut stage = self.stage(config, place, origin.snapshot, false)?;
        if let Some(saved) = origin.saved {
            let shown = stage.show(saved);
            shown.map_err(|error| format!("show `{}` to the jail: {error}", saved.display()))?;
        }
        let (owner, mut control) = self.run(config, place, stage).await?;
        let loaded = self.load(&mut control).await;
        loaded.map_err(|reason| told(&reason, &owner))?;
        let stream = self.reconnect(config, (&owner, &mut control), place).await?;
        Ok((owner, control, stream))
    }

    async fn save_running(
        &self,
        (_, control): (&MachineOwner, &mut Controls),
        _place: &MachinePlace,
        directory: &Path,
    ) -> Result<(), String> {
        let Controls { api, stage } = control;
        api.patch("/vm", json!({"state": "Paused"})).await?;
        let created = create(api, &stage.own_files()).await;
        api.patch("/vm", json!({"state": "Resumed"})).await?;
        let moved = stage.move_own(directory);
        created?;
        moved.map_err(|error| format!("take over the files of the machine's state: {error}"))
    }

    async fn reconnect(
        &self,
        config: &WallConfig,
        (owner, control): (&MachineOwner, &mut Controls),
        _place: &MachinePlace,
    ) -> Result<UnixStream, String> {
        let limit = config.options.restore_limit();
        let connecting = tokio::time::timeout(limit, connect(&control.stage, owner));
        let stream = connecting.await.unwrap_or_else(|_| {
            Err(format!(
                "nothing in the machine accepted a connection within {} s",
                limit.as_secs_f32()
            ))
        });
        stream.map_err(|reason| told(&reason, owner))
    }
}

impl Firecracker {
    fn stage(
        &self,
        config: &WallConfig,
        place: &MachinePlace,
        snapshot: &Path,
        writable: bool,
    ) -> Result<Stage, String> {
        let stage = Stage::set(self, config.image.home().root(), place, snapshot, writable);
        stage.map_err(|error| format!("prepare `{}`: {error}", place.path.display()))
    }

    /// Starts Firecracker and waits until its API answers.
    async fn run(
        &self,
        config: &WallConfig,
        place: &MachinePlace,
        stage: Stage,
    ) -> Result<(MachineOwner, Controls), String> {
        let machine = MachineOrder {
            program: stage.command.clone(),
            cleanup: Vec::new(),
            directory: place.path.clone(),
            namespaces: self.jailer.is_none(),
            mounts: stage.mounts.clone(),
            limits: GroupLimits {
                memory_bytes: Some(total_bytes(&config.limits)),
                processes: None,
                cpu_millis: config.limits.cpu_millis,
                socket_bytes: None,
            },
        };
        let owner = MachineOwner::start(&config.executable, &machine)?;
        let limit = config.options.restore_limit();
        let connecting = async {
            loop {
                match stage.connect_api().await {
                    Ok(stream) => return FirecrackerApi::start(stream).await,
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        };
        let api = tokio::select! {
            connected = tokio::time::timeout(limit, connecting) => connected.unwrap_or_else(|_| {
                Err(format!("Firecracker's API did not appear within {} s", limit.as_secs_f32()))
            }),
            () = owner.ended() => Err("Firecracker ended".to_owned()),
        };
        let api = api.map_err(|reason| told(&reason, &owner))?;
        Ok((owner, Controls { api, stage }))
    }

    /// Describes a template's machine and boots it. It has no network interface.
    async fn boot(&self, config: &WallConfig, control: &mut Controls) -> Result<(), String> {
        let Controls { api, stage } = control;
        let files = stage.files();
        let size = json!({
            "vcpu_count": processors(&config.limits),
            "mem_size_mib": memory_bytes(&config.limits) / MIB,
        });
        api.put("/machine-config", size).await?;
        let source = json!({
            "kernel_image_path": files.kernel,
            "initrd_path": files.first_tree,
            "boot_args": Self::parameters(),
        });
        api.put("/boot-source", source).await?;
        let drive = json!({
            "drive_id": "disk",
            "path_on_host": files.disk,
            "is_root_device": false,
            "is_read_only": true,
        });
        api.put("/drives/disk", drive).await?;
        let socket = json!({"guest_cid": GUEST_CID, "uds_path": stage.stream()});
        api.put("/vsock", socket).await?;
        api.put("/actions", json!({"action_type": "InstanceStart"})).await
    }

    /// Loads a snapshot and lets the machine run. Its memory is mapped privately from the snapshot's file.
    async fn load(&self, control: &mut Controls) -> Result<(), String> {
        let Controls { api, stage } = control;
        let files = stage.origin_files();
        let mut order = json!({
            "snapshot_path": files.state,
            "mem_backend": {"backend_type": "File", "backend_path": files.memory},
            "resume_vm": true,
        });
        if self.overrides_sockets() {
            order["vsock_override"] = json!({"uds_path": stage.stream()});
        }
        api.put("/snapshot/load", order).await
    }
}

/// Writes the state and the memory of a paused machine.
async fn create(api: &mut FirecrackerApi, files: &Files) -> Result<(), String> {
    let order = json!({
        "snapshot_type": "Full",
        "snapshot_path": files.state,
        "mem_file_path": files.memory,
    });
    api.put_within("/snapshot/create", order, SNAPSHOT_LIMIT).await
}

/// Connects to the machine's server. Before it listens again, Firecracker closes connections.
async fn connect(stage: &Stage, owner: &MachineOwner) -> Result<UnixStream, String> {
    let connecting = async {
        loop {
            if let Ok(stream) = attempt(stage).await {
                return stream;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        stream = connecting => Ok(stream),
        () = owner.ended() => Err("the machine ended".to_owned()),
    }
}

async fn attempt(stage: &Stage) -> io::Result<UnixStream> {
    let mut stream = stage.connect_stream().await?;
    stream
        .write_all(format!("CONNECT {VSOCK_PORT}\n").as_bytes())
        .await?;
    let mut line = Vec::with_capacity(LINE);
    // What follows the line belongs to the machine.
    while line.len() < LINE {
        match stream.read_u8().await? {
            b'\n' if line.starts_with(b"OK ") => return Ok(stream),
            b'\n' => break,
            byte => line.push(byte),
        }
    }
    let reason = "Firecracker did not answer `CONNECT` with `OK`";
    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// Adds what a machine has printed to a reason.
fn told(reason: &str, owner: &MachineOwner) -> String {
    let words = owner.last_words();
    if words.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}: {words}")
    }
}
