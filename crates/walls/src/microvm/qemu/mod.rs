//! QEMU: finding it, deciding whether KVM works, and the command lines of machines.

use std::path::{Path, PathBuf};

use cellblock_jail::machine::counter_khz;
use cellblock_sandbox::{Error, Limits, Result};
use tokio::process::Command;

use super::MicrovmOptions;
use super::files::Files;
use super::kernel::Kernel;
use super::size::{MIB, memory_bytes, processors};
use super::trial::{boots, kvm_opens, version};
use crate::program::on_path;
use machine::Sockets;

mod machine;
mod qmp;

/// The first version with `file:` migrations and memory files that are only read.
const OLDEST: (u32, u32) = (8, 2);
const PROGRAM: &str = "qemu-system-x86_64";
const INSTALL: &str = "install QEMU 8.2 or newer (on Debian and Ubuntu: apt-get install qemu-system-x86 \
                       qemu-system-common; Debian 12 has it in its backports) and a kernel (apt-get \
                       install linux-image-cloud-amd64)";

/// Accelerator of a machine's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accelerator {
    /// By the processor.
    Kvm,
    /// By translation.
    Tcg,
}

/// Location of a machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemoryLocation {
    /// In a file of the snapshot that a template writes.
    Written,
    /// In that file, of which a machine changes copies of its own.
    Mapped,
    /// In the state that it loads.
    InState,
}

/// Name of the stream to the host in QEMU's options.
const STREAM: &str = "host";

/// A QEMU that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Qemu {
    pub(super) path: PathBuf,
    /// Its own words, such as `10.0.2`.
    pub(super) version: String,
    pub(super) accelerator: Accelerator,
    pub(super) kernel: Kernel,
}

impl Qemu {
    /// Finds QEMU, a kernel, and the way in which machines run.
    pub(super) async fn find(options: &MicrovmOptions) -> Result<Self> {
        let path = match &options.qemu {
            Some(path) => path.clone(),
            None => on_path(PROGRAM).ok_or_else(|| missing(&format!("`{PROGRAM}` is not on PATH")))?,
        };
        let version = version(&path, "QEMU emulator version ", OLDEST)
            .await
            .map_err(|reason| missing(&reason))?;
        let kernel = Kernel::find(options.kernel.as_deref()).map_err(|reason| missing(&reason))?;
        let accelerator = match kvm(&path, &kernel).await {
            Ok(()) => Accelerator::Kvm,
            Err(_) if options.emulation => Accelerator::Tcg,
            Err(reason) => {
                return Err(Error::missing_protection(format!(
                    "microVMs do not work here: KVM is unusable: {reason}; use a machine with KVM, or \
                     allow emulation (`--emulation`, or `microvm: {{emulation: true}}`), which is slow \
                     and not a security boundary"
                )));
            }
        };
        Ok(Self {
            path,
            version,
            accelerator,
            kernel,
        })
    }

    /// Returns the command that starts a machine: a template, or one that waits for its state.
    fn command(
        &self,
        sockets: &Sockets,
        files: &Files,
        limits: &Limits,
        memory: MemoryLocation,
    ) -> Vec<String> {
        let size = format!("{}M", memory_bytes(limits) / MIB);
        let of_file = |more| format!("file,mem-path={},{more}", escaped(&files.memory));
        let backend = match memory {
            MemoryLocation::Written => of_file("share=on"),
            MemoryLocation::Mapped => of_file("share=off,readonly=on,rom=off"),
            MemoryLocation::InState => "ram".to_owned(),
        };
        let mut words = self.common();
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("-smp", self.processors(limits).to_string());
        add("-m", size.clone());
        add("-object", format!("memory-backend-{backend},id=ram0,size={size}"));
        add("-machine", format!("{MACHINE},memory-backend=ram0"));
        if memory == MemoryLocation::Written {
            // A restored machine has them in its memory.
            add("-kernel", files.kernel.display().to_string());
            add("-initrd", files.first_tree.display().to_string());
            add("-append", self.parameters("quiet"));
        } else {
            add("-incoming", "defer".to_owned());
        }
        add(
            "-drive",
            format!(
                "id=disk,file={},format=raw,if=none,readonly=on",
                escaped(&files.disk)
            ),
        );
        add("-device", "virtio-blk-device,drive=disk".to_owned());
        add("-device", "virtio-serial-device,max_ports=2".to_owned());
        add(
            "-chardev",
            format!("socket,id={STREAM},path={}", escaped(&sockets.stream)),
        );
        add(
            "-device",
            format!(
                "virtserialport,chardev={STREAM},nr=1,name={}",
                crate::microvm::boot::PORT
            ),
        );
        add(
            "-chardev",
            format!("socket,id=control,path={}", escaped(&sockets.control)),
        );
        add("-mon", "chardev=control,mode=control".to_owned());
        words
    }

    fn common(&self) -> Vec<String> {
        let path = self.path.display().to_string();
        let (accelerator, processor) = match self.accelerator {
            Accelerator::Kvm => ("kvm", "host"),
            Accelerator::Tcg => ("tcg,thread=multi,tb-size=128", EMULATED),
        };
        [
            &*path,
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-sandbox",
            "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
            "-accel",
            accelerator,
            "-cpu",
            processor,
            "-chardev",
            "stdio,id=console,signal=off",
            "-serial",
            "chardev:console",
        ]
        .map(str::to_owned)
        .into()
    }

    /// Returns the number of processors of a machine. An emulated machine has one: several would be
    /// threads that wait for each other, and on a busy computer they would do little else.
    fn processors(&self, limits: &Limits) -> u32 {
        match self.accelerator {
            Accelerator::Kvm => processors(limits),
            Accelerator::Tcg => 1,
        }
    }

    /// Returns the kernel's parameters.
    fn parameters(&self, more: &str) -> String {
        let program = crate::microvm::boot::PROGRAM;
        let command = crate::microvm::boot::COMMAND;
        let mut parameters = format!(
            "console=ttyS0 panic=-1 reboot=t random.trust_cpu=on no_timer_check {more} rdinit={program}"
        );
        if self.accelerator == Accelerator::Tcg {
            // An emulated machine's only other clock is a timer that a busy host serves too late to measure
            // the counter by it.
            if let Some(khz) = counter_khz() {
                parameters = format!("{parameters} tsc_early_khz={khz} tsc=reliable");
            }
            // There is nothing to mitigate between translated programs.
            parameters += " mitigations=off";
        }
        parameters + " -- " + command
    }
}

/// The processor of emulated machines. Linux and the C library use `rep movsb` wherever it is said
/// to be fast, and emulation executes it byte after byte: without it, touching new memory and
/// forking take half the time, and copying between processes a quarter.
const EMULATED: &str = "max,-erms,-fsrm";

/// Options of all machines. Debian's kernel finds devices by ACPI, and ACPI's tables need firmware.
const MACHINE: &str = "microvm,acpi=on,isa-serial=on,x-option-roms=on";

/// Returns a path in QEMU's options, in which commas are doubled.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Boots the kernel in KVM until it looks for its disk.
async fn kvm(path: &Path, kernel: &Kernel) -> Result<(), String> {
    kvm_opens()?;
    let qemu = Qemu {
        path: path.to_owned(),
        version: String::new(),
        accelerator: Accelerator::Kvm,
        kernel: kernel.clone(),
    };
    let words = qemu.common();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["-m", "256M", "-machine", MACHINE, "-append"])
        .args(["console=ttyS0 panic=-1 reboot=t", "-kernel"])
        .arg(&kernel.path);
    boots(command).await
}

fn missing(reason: &str) -> Error {
    Error::missing_protection(format!("microVMs do not work here: {reason}; {INSTALL}"))
}
