//! Firecracker: finding it and its jailer, and deciding whether it works here.

use std::path::{Path, PathBuf};

use cellblock_sandbox::{Error, Result};
use serde_json::json;
use tokio::process::Command;

use super::MicrovmOptions;
use super::boot::{COMMAND, PROGRAM};
use super::kernel::Kernel;
use super::trial::{boots, kvm_opens, numbers, version};
use crate::program::on_path;

mod api;
mod machine;
mod stage;

/// The first version whose snapshots are used.
const OLDEST: (u32, u32) = (1, 13);
/// The first version that restores a machine with another path of its socket.
const OVERRIDES: (u32, u32) = (1, 16);
const NAME: &str = "firecracker";
const JAILER: &str = "jailer";
const INSTALL: &str = "install `firecracker` and `jailer` 1.13 or newer from one release of Firecracker \
                       on PATH, and a kernel (apt-get install linux-image-cloud-amd64); or use QEMU \
                       (`microvm: {vmm: qemu}`)";
/// Parameters of the kernel for Firecracker's devices, which have no timer, no keyboard and no PCI bus.
const PARAMETERS: &str =
    "console=ttyS0 panic=-1 reboot=k random.trust_cpu=on i8042.noaux i8042.nomux i8042.dumbkbd";

/// A Firecracker that was checked.
#[derive(Clone, Debug)]
pub(super) struct Firecracker {
    path: PathBuf,
    /// Its own words, such as `1.16.1`.
    version: String,
    /// Its jailer, of the same version; used by root, and only by root.
    jailer: Option<PathBuf>,
    kernel: Kernel,
}

impl Firecracker {
    /// Returns whether there is a Firecracker, without asking whether it works.
    pub(super) fn is_there(options: &MicrovmOptions) -> bool {
        options.firecracker.is_some() || on_path(NAME).is_some()
    }

    /// Finds Firecracker, its jailer if this is root, and a kernel, and boots the kernel once.
    pub(super) async fn find(options: &MicrovmOptions) -> Result<Self> {
        Self::look(options).await.map_err(|reason| {
            Error::missing_protection(format!("Firecracker does not work here: {reason}; {INSTALL}"))
        })
    }

    async fn look(options: &MicrovmOptions) -> std::result::Result<Self, String> {
        let path = match &options.firecracker {
            Some(path) => path.clone(),
            None => on_path(NAME).ok_or_else(|| format!("`{NAME}` is not on PATH"))?,
        };
        let own = version(&path, "Firecracker v", OLDEST).await?;
        let root = rustix::process::geteuid().is_root();
        let jailer = jailer(&path, options.jailer.as_deref(), root)?;
        if let Some(jailer) = &jailer {
            let theirs = version(jailer, "Jailer v", OLDEST).await?;
            if theirs != own {
                return Err(format!(
                    "`{}` has the version {theirs}, but Firecracker has {own}: a jailer runs only \
                     its own release",
                    jailer.display()
                ));
            }
        }
        let kernel = Kernel::find(options.kernel.as_deref())?;
        tried(&path, &kernel).await?;
        Ok(Self {
            path,
            version: own,
            jailer,
            kernel,
        })
    }

    fn overrides_sockets(&self) -> bool {
        numbers(&self.version) >= OVERRIDES
    }

    /// Returns the kernel's parameters. A restored machine has them in its memory.
    fn parameters() -> String {
        format!("{PARAMETERS} quiet rdinit={PROGRAM} -- {COMMAND}")
    }
}

/// Returns the jailer that root must use. Without root it cannot work.
fn jailer(
    firecracker: &Path,
    configured: Option<&Path>,
    root: bool,
) -> std::result::Result<Option<PathBuf>, String> {
    match (configured, root) {
        (Some(path), true) => Ok(Some(path.to_owned())),
        (Some(path), false) => Err(format!(
            "the jailer `{}` works only as root; remove it from the configuration, or run as root",
            path.display()
        )),
        (None, false) => Ok(None),
        (None, true) => {
            let beside = firecracker.with_file_name(JAILER);
            let found = Some(beside)
                .filter(|path| path.is_file())
                .or_else(|| on_path(JAILER));
            found.map(Some).ok_or_else(|| {
                format!(
                    "there is no `{JAILER}` beside `{}` or on PATH, and root runs Firecracker only in its \
                     jailer; set `microvm.jailer`",
                    firecracker.display()
                )
            })
        }
    }
}

/// Boots the kernel without a disk.
async fn tried(path: &Path, kernel: &Kernel) -> std::result::Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (image, described) = (folder.path().join("kernel"), folder.path().join("machine.json"));
    let machine = json!({
        "boot-source": {"kernel_image_path": image, "boot_args": "console=ttyS0 panic=-1 reboot=k"},
        "drives": [],
        "machine-config": {"vcpu_count": 1, "mem_size_mib": 256},
    });
    let unpacked = kernel
        .unpacked()
        .map_err(|error| format!("unpack `{}`: {error}", kernel.path.display()))?;
    if !Kernel::is_unpacked(&unpacked) {
        return Err(format!(
            "the kernel `{}` is packed in an unknown way, and Firecracker boots only an unpacked one; set \
             `microvm.kernel` to a `vmlinux`",
            kernel.path.display()
        ));
    }
    std::fs::write(&image, unpacked)
        .and_then(|()| std::fs::write(&described, machine.to_string()))
        .map_err(|error| format!("write a machine for a trial: {error}"))?;
    let mut command = Command::new(path);
    command.arg("--no-api").arg("--config-file").arg(&described);
    boots(command).await.map_err(|reason| {
        let reason = kvm_opens().err().unwrap_or(reason);
        format!("KVM is unusable: {reason}")
    })
}
