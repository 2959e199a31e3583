//! The virtual machine: QEMU, which translates the instructions.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;

use super::KernelRelease;
use super::disk::Places;

/// After this many seconds, the machine is ended.
const LIMIT: &str = "7200";
/// Mounts the disk of the tests and starts its script. The kernel itself has drivers for the
/// system's disk only.
const FIRST: &str = "mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; \
                     modprobe -a virtio_pci virtio_blk; mount /dev/vda /srv && exec sh /srv/init.sh";

/// Runs the machine to its end, shows what it reports, and returns everything that it wrote on its console.
pub(super) fn run(places: &Places, kernel: KernelRelease) -> Result<String> {
    let name = kernel.to_possible_value().context("a kernel without a name")?;
    let file = |name: &str| places.folder.join(name).display().to_string();
    let disk = |name: &str, rest: &str| format!("file={},format=raw,{rest}", file(name));
    let mut machine = Command::new("timeout")
        .args([LIMIT, "qemu-system-aarch64", "-M", "virt"])
        // Signing pointers as the processor does would take half of the time.
        .args(["-cpu", "max,pauth-impdef=on", "-smp", "2", "-m", "4G"])
        .args(["-accel", "tcg,thread=multi", "-no-reboot"])
        .args(["-nographic", "-nodefaults", "-serial", "stdio"])
        .args(["-netdev", "user,id=net"])
        .args(["-device", "virtio-net-pci,netdev=net,romfile="])
        .args(["-drive", &disk("system.img", "if=none,id=system,snapshot=on")])
        .args(["-device", "nvme,drive=system,serial=system"])
        .args(["-drive", &disk("tests.img", "if=virtio,cache=unsafe")])
        .args(["-drive", &disk("home.img", "if=virtio,cache=unsafe")])
        .args(["-kernel", &file(&format!("vmlinuz-{}", name.get_name()))])
        .arg("-append")
        .arg(format!(
            "console=ttyAMA0 loglevel=5 panic=-1 root=/dev/nvme0n1 rw rootwait init=/bin/sh -- -c \"{FIRST}\""
        ))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start qemu-system-aarch64, of Debian's qemu-system-arm")?;
    let console = machine.stdout.take().context("no console")?;
    let mut log = File::create(places.folder.join("console.log")).context("create `console.log`")?;
    let mut said = String::new();
    for line in BufReader::new(console).split(b'\n') {
        let line = line.context("read the console")?;
        let line = String::from_utf8_lossy(&line);
        writeln!(log, "{}", line.trim_end())?;
        if line.starts_with("VM ") && !line.starts_with("VM skip ") {
            eprintln!("{}", line.trim_end());
        }
        said.push_str(line.trim_end());
        said.push('\n');
    }
    machine.wait()?;
    Ok(said)
}
