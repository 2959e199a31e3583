//! The first process of a machine: mounts its file systems, starts the server, and reaps.
//!
//! ```text
//! the kernel's first file tree: load modules, mount the disk, make it the root
//!   └── the same program on the disk: mount the rest ── cellblock inside
//! ```

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cellblock_jail::process::report;
use rustix::mount::{MountFlags, mount, mount_bind, mount_move};
use rustix::system::{RebootCommand, finit_module, reboot};

/// The program inside, on the disk and in the first tree.
pub(super) const PROGRAM: &str = "/opt/cellblock/cellblock";
/// The image on the disk.
pub(super) const IMAGE: &str = "/opt/image";
/// In the first tree: kernel modules, where the disk is mounted, and the arguments of `inside`.
pub(super) const MODULES: &str = "/modules";
pub(super) const ROOT: &str = "/root";
pub(super) const WORDS: &str = "/words.json";
/// The subcommand of the first process.
pub(super) const COMMAND: &str = "boot-machine";
/// Name of the serial port to the host.
pub(super) const PORT: &str = "cellblock";

/// Port on which a machine of Firecracker accepts its host.
pub(super) const VSOCK_PORT: u32 = 5000;

const DISK: &str = "/dev/vda";
const HOME: &str = "/run/home";
/// Maximum time for the disk to appear.
const DISK_LIMIT: Duration = Duration::from_secs(20);
/// `linux/module.h`: the kernel decompresses the module.
const COMPRESSED: i32 = 4;

/// Runs the first process of a machine. Returns only an error.
pub fn boot(words: &[String]) -> io::Error {
    if std::process::id() != 1 {
        let reason = "only the first process of a machine may mount its file systems";
        return io::Error::new(io::ErrorKind::PermissionDenied, reason);
    }
    let failed = if Path::new(MODULES).is_dir() {
        match enter_disk() {
            Ok(words) => Command::new(PROGRAM).arg(COMMAND).arg("--").args(words).exec(),
            Err(error) => error,
        }
    } else {
        match serve(words) {
            Ok(never) => match never {},
            Err(error) => error,
        }
    };
    report(&format!("the machine could not start: {failed}"));
    let _ = reboot(RebootCommand::Restart);
    failed
}

/// Makes the disk the root; returns the arguments of `inside`.
fn enter_disk() -> io::Result<Vec<String>> {
    let words = serde_json::from_slice(&fs::read(WORDS)?)?;
    for (kind, target) in [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys")] {
        mounted(kind, target, MountFlags::NOSUID, "")?;
    }
    let mut modules: Vec<_> = fs::read_dir(MODULES)?.flatten().map(|it| it.path()).collect();
    modules.sort();
    for module in modules {
        let plain = module.extension().is_some_and(|it| it == "ko");
        let flags = if plain { 0 } else { COMPRESSED };
        finit_module(File::open(&module)?, c"", flags)
            .map_err(|error| io::Error::other(format!("load `{}`: {error}", module.display())))?;
    }
    let began = Instant::now();
    while !Path::new(DISK).exists() {
        if began.elapsed() > DISK_LIMIT {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the kernel finds no disk",
            ));
        }
        sleep(Duration::from_millis(2));
    }
    mount(
        DISK,
        ROOT,
        "ext4",
        MountFlags::RDONLY | MountFlags::NODEV,
        c"noload",
    )
    .map_err(|error| io::Error::other(format!("mount the disk: {error}")))?;
    for directory in ["/dev", "/proc", "/sys"] {
        mount_move(directory, format!("{ROOT}{directory}"))?;
    }
    // Its memory is free once the program on the disk runs.
    for directory in ["/opt", "/lib", "/lib64", "/usr", MODULES] {
        let _ = fs::remove_dir_all(directory);
    }
    std::env::set_current_dir(ROOT)?;
    mount_move(".", "/")?;
    rustix::process::chroot(".")?;
    std::env::set_current_dir("/")?;
    Ok(words)
}

enum Never {}

/// Mounts what is writable, and runs `inside` until it ends; then the machine ends.
fn serve(words: &[String]) -> io::Result<Never> {
    let private = MountFlags::NOSUID | MountFlags::NODEV;
    fs::create_dir_all("/dev/shm")?;
    fs::create_dir_all("/dev/pts")?;
    mounted("tmpfs", "/tmp", private, "mode=1777")?;
    mounted("tmpfs", "/run", private, "mode=755")?;
    mounted("tmpfs", "/dev/shm", private, "mode=1777")?;
    mounted("devpts", "/dev/pts", MountFlags::NOSUID, "mode=620,ptmxmode=666")?;
    mounted("cgroup2", "/sys/fs/cgroup", private, "")?;
    // Rooms have limits of their own only where the root of the tree hands its controllers on.
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +memory +pids")?;
    let image = words.iter().skip_while(|word| *word != "--image").nth(1);
    let image = image.ok_or_else(|| io::Error::other("the arguments name no image"))?;
    let target = format!("{HOME}/images/{image}");
    fs::create_dir_all(&target)?;
    fs::create_dir_all(format!("{HOME}/layers"))?;
    mount_bind(IMAGE, &target)?;
    let child = Command::new(PROGRAM)
        .arg("inside")
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/run")
        .env("LANG", "C.UTF-8")
        .env("CELLBLOCK_HOME", HOME)
        .env("CELLBLOCK_LOG", "warn")
        .spawn()?;
    let server = i32::try_from(child.id()).unwrap_or(-1);
    loop {
        let ended = rustix::process::wait(rustix::process::WaitOptions::empty())?;
        if let Some((pid, status)) = ended
            && pid.as_raw_nonzero().get() == server
        {
            report(&format!("the machine's server ended: {status:?}"));
            reboot(RebootCommand::Restart)?;
        }
    }
}

fn mounted(kind: &str, target: &str, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    mount(kind, target, kind, flags, &*options)
        .map_err(|error| io::Error::other(format!("mount `{kind}` on `{target}`: {error}")))
}
