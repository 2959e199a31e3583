//! The files of a snapshot, which do not depend on what runs the machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::boot::{PORT, VSOCK_PORT};
use super::disk;
use super::kernel::Kernel;
use crate::WallConfig;

/// Number of the way in which templates are made; another one makes snapshots anew.
pub(super) const FORM: &str = "8";

/// Files of a snapshot.
pub(super) struct Files {
    pub(super) disk: PathBuf,
    pub(super) kernel: PathBuf,
    pub(super) first_tree: PathBuf,
    pub(super) memory: PathBuf,
    pub(super) state: PathBuf,
}

impl Files {
    pub(super) fn of(directory: &Path) -> Self {
        let file = |name| directory.join(name);
        Self {
            disk: file("disk.ext4"),
            kernel: file("kernel"),
            first_tree: file("first-tree.cpio"),
            memory: file("memory"),
            state: file("state"),
        }
    }
}

/// Way in which a machine reaches its host.
#[derive(Clone, Copy, Debug)]
pub(super) enum HostWay {
    /// A serial port.
    Port,
    /// A stream that the host opens.
    Vsock,
}

impl HostWay {
    /// Returns the address that `cellblock inside` reads.
    fn address(self) -> String {
        match self {
            Self::Port => format!("port:{PORT}"),
            Self::Vsock => format!("vsock:{VSOCK_PORT}"),
        }
    }

    /// Returns the names of the kernel's modules that it needs beside those of every machine.
    const fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Port => &[],
            Self::Vsock => &["vmw_vsock_virtio_transport"],
        }
    }
}

/// Writes what a template boots from.
pub(super) fn write(config: &WallConfig, kernel: &Kernel, host: HostWay, directory: &Path) -> io::Result<()> {
    let files = Files::of(directory);
    match host {
        // QEMU hands an unpacked kernel of 60 MB over slowly, and Linux 6.1 then finds no tables of ACPI.
        HostWay::Port => fs::copy(&kernel.path, &files.kernel).map(drop)?,
        HostWay::Vsock => fs::write(&files.kernel, kernel.unpacked()?)?,
    }
    let limits = serde_json::to_string(&config.limits)?;
    let words = [
        "--image",
        config.image.id(),
        "--host",
        &host.address(),
        "--limits",
        &limits,
        // It seeds itself at its first message, after the wake.
        "--ready",
        "1",
    ]
    .map(str::to_owned);
    fs::write(
        &files.first_tree,
        disk::first_tree(config, kernel, host.modules(), &words)?,
    )?;
    disk::write_disk(&files.disk, &directory.join("tree"), config)
}
