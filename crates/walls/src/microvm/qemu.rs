//! QEMU: finding it, deciding whether KVM works, and the command lines of machines.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cellblock_jail::machine::counter_khz;
use cellblock_sandbox::{Error, Limits, Result};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::MicrovmOptions;
use super::kernel::Kernel;
use super::machine::Sockets;

/// The first version with `file:` migrations and memory files that are only read.
const OLDEST: (u32, u32) = (8, 2);
const PROGRAM: &str = "qemu-system-x86_64";
/// Maximum time to print a version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);
/// Maximum time for a kernel to reach its first process in KVM.
const KVM_LIMIT: Duration = Duration::from_secs(10);
/// What a kernel without a disk ends with: everything before it has worked.
const KVM_WORKS: &str = "Unable to mount root fs";
const INSTALL: &str = "install QEMU 8.2 or newer (on Debian and Ubuntu: apt-get install qemu-system-x86 qemu-system-common; Debian 12 has it in its \
     backports) and a kernel (apt-get install linux-image-cloud-amd64)";
/// Memory of a machine's kernel and of the template, beside that of the sandbox.
const OVERHEAD_BYTES: u64 = 768 << 20;
const MIB: u64 = 1 << 20;
const PROCESSORS: u32 = 8;

/// How a machine's instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accelerator {
    /// By the processor.
    Kvm,
    /// By translation.
    Tcg,
}

/// A QEMU that was checked.
#[derive(Clone, Debug)]
pub(super) struct Qemu {
    pub(super) path: PathBuf,
    /// Its own words, such as `10.0.2`.
    pub(super) version: String,
    pub(super) accelerator: Accelerator,
    pub(super) kernel: Kernel,
}

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

impl Qemu {
    /// Finds QEMU, a kernel, and the way in which machines run.
    pub(super) async fn find(options: &MicrovmOptions) -> Result<Self> {
        let path = match &options.qemu {
            Some(path) => path.clone(),
            None => on_path().ok_or_else(|| missing(&format!("`{PROGRAM}` is not on PATH")))?,
        };
        let version = version(&path).await?;
        let kernel = Kernel::find(options.kernel.as_deref()).map_err(|reason| missing(&reason))?;
        let accelerator = match kvm(&path, &kernel).await {
            Ok(()) => Accelerator::Kvm,
            Err(_) if options.emulation => Accelerator::Tcg,
            Err(reason) => {
                return Err(Error::missing_protection(format!(
                    "microVMs do not work here: KVM is unusable: {reason}; use a machine with KVM, or allow emulation \
                     (`--emulation`, or `microvm: {{emulation: true}}`), which is slow and not a security boundary"
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

    /// Returns the command that starts a machine: a template, or one that waits for a snapshot's state.
    pub(super) fn command(
        &self,
        sockets: &Sockets,
        files: &Files,
        limits: &Limits,
        restored: bool,
    ) -> Vec<String> {
        let memory = format!("{}M", memory_bytes(limits) / MIB);
        let sharing = if restored {
            "share=off,readonly=on,rom=off"
        } else {
            "share=on"
        };
        let mut words = self.common();
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("-smp", processors(limits).to_string());
        add("-m", memory.clone());
        add(
            "-object",
            format!(
                "memory-backend-file,id=ram0,size={memory},mem-path={},{sharing}",
                escaped(&files.memory)
            ),
        );
        add("-machine", format!("{MACHINE},memory-backend=ram0"));
        if restored {
            add("-incoming", "defer".to_owned());
        } else {
            // A restored machine has them in its memory.
            add("-kernel", files.kernel.display().to_string());
            add("-initrd", files.first_tree.display().to_string());
            add("-append", self.parameters("quiet"));
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
            format!("socket,id=host,path={}", escaped(&sockets.stream)),
        );
        add(
            "-device",
            format!("virtserialport,chardev=host,nr=1,name={}", super::boot::PORT),
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
            Accelerator::Tcg => ("tcg,thread=multi,tb-size=128", "max"),
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

    /// Returns the kernel's parameters.
    fn parameters(&self, more: &str) -> String {
        let program = super::boot::PROGRAM;
        let command = super::boot::COMMAND;
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

/// Options of all machines. Debian's kernel finds devices by ACPI, and ACPI's tables need firmware.
const MACHINE: &str = "microvm,acpi=on,isa-serial=on,x-option-roms=on";

/// Returns the memory of a machine for a sandbox with these limits.
pub(super) fn memory_bytes(limits: &Limits) -> u64 {
    limits
        .memory_bytes
        .saturating_add(OVERHEAD_BYTES)
        .next_multiple_of(2 * MIB)
}

fn processors(limits: &Limits) -> u32 {
    let here = std::thread::available_parallelism().map_or(1, |it| u32::try_from(it.get()).unwrap_or(1));
    let wanted = limits.cpu_millis.map_or(here, |millis| {
        u32::try_from(millis.div_ceil(1000)).unwrap_or(here)
    });
    wanted.clamp(1, here.min(PROCESSORS))
}

/// Returns a path in QEMU's options, in which commas are doubled.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(PROGRAM))
        .find(|file| file.is_file())
}

async fn version(path: &Path) -> Result<String> {
    let output = Command::new(path).arg("--version").kill_on_drop(true).output();
    let output = tokio::time::timeout(VERSION_LIMIT, output)
        .await
        .map_err(|_| missing(&format!("`{} --version` does not end", path.display())))?
        .map_err(|error| missing(&format!("cannot run `{}`: {error}", path.display())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix("QEMU emulator version "))
        .and_then(|rest| rest.split(' ').next());
    let Some(version) = found else {
        return Err(missing(&format!(
            "`{} --version` does not print a version",
            path.display()
        )));
    };
    let mut numbers = version.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST {
        return Err(missing(&format!(
            "`{}` has the version {version}, which is too old",
            path.display()
        )));
    }
    Ok(version.to_owned())
}

/// Boots the kernel in KVM until it looks for its disk. That the device opens proves nothing: some machines
/// offer it and cannot run ordinary guests.
async fn kvm(path: &Path, kernel: &Kernel) -> Result<(), String> {
    let opened = fs::File::options().read(true).write(true).open("/dev/kvm");
    opened.map_err(|error| format!("open `/dev/kvm`: {error}"))?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let image = folder.path().join("kernel");
    let written = kernel.unpacked().and_then(|bytes| fs::write(&image, bytes));
    written.map_err(|error| format!("unpack `{}`: {error}", kernel.path.display()))?;
    let qemu = Qemu {
        path: path.to_owned(),
        version: String::new(),
        accelerator: Accelerator::Kvm,
        kernel: kernel.clone(),
    };
    let words = qemu.common();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .args([
            "-m",
            "256M",
            "-machine",
            MACHINE,
            "-append",
            "console=ttyS0 panic=-1 reboot=t",
            "-kernel",
        ])
        .arg(&image)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("start `{}`: {error}", path.display()))?;
    let (Some(console), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("QEMU has no output".to_owned());
    };
    let reading = async {
        let (mut console, mut errors) = (BufReader::new(console).lines(), BufReader::new(errors).lines());
        loop {
            tokio::select! {
                line = console.next_line() => match line {
                    Ok(Some(line)) if line.contains(KVM_WORKS) => return Ok(()),
                    Ok(Some(_)) => {}
                    _ => return Err(errors.next_line().await.ok().flatten().unwrap_or_else(|| "QEMU ended".to_owned())),
                },
                Ok(Some(line)) = errors.next_line() => return Err(line),
            }
        }
    };
    tokio::time::timeout(KVM_LIMIT, reading)
        .await
        .unwrap_or_else(|_| Err(format!("a guest did not boot within {} s", KVM_LIMIT.as_secs())))
}

pub(super) fn missing(reason: &str) -> Error {
    Error::missing_protection(format!("microVMs do not work here: {reason}; {INSTALL}"))
}
