//! The Landlock rule set: a second layer of file protection, created in the room's own mount
//! namespace.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};

use crate::error::{Result, SyscallResult};
use crate::network::NetworkPolicy;

/// Directories that user code may read and execute.
const READABLE: [&str; 8] = ["/usr", "/lib", "/lib64", "/bin", "/opt", "/etc", "/proc", "/sys"];
/// Directories that user code may write to.
const WRITABLE: [&str; 3] = ["/workspace", "/tmp", "/dev/shm"];
/// Device files that user code may use.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// The terminal of a process, if it was started with one. Other terminals cannot be opened: the guest
/// makes them, and hands them over open.
const TERMINAL: &str = "/dev/tty";

/// Returns the Landlock version of the running kernel, or 0 without Landlock.
pub fn abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with the version flag, the call reads no attribute and only returns a number.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(answer).unwrap_or(0)
}

/// Oldest version that protects files without other mechanisms: before it, any file of the own user
/// could be truncated.
pub const ALONE_ABI: u32 = 3;

/// Paths of a shared machine that programs may read: commands, libraries, and facts that reveal
/// nothing about other users.
const SHARED: [&str; 23] = [
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/usr/share/terminfo",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/random/uuid",
    "/sys/devices/system/cpu",
];

/// Creates a rule set for use without namespaces: all other paths cannot be opened. Of `listed`
/// directories, only the names are visible.
pub fn create_alone(readable: &[&Path], listed: &[&Path], writable: &[&Path]) -> Result<OwnedFd> {
    let abi = ABI::V6;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    let shared: Vec<_> = SHARED.iter().map(Path::new).collect();
    let devices: Vec<_> = DEVICES.iter().map(Path::new).collect();
    for (paths, access) in [
        (shared.as_slice(), AccessFs::from_read(abi)),
        (readable, AccessFs::from_read(abi)),
        (listed, AccessFs::ReadDir.into()),
        (
            writable,
            AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
        ),
        (
            devices.as_slice(),
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
        ),
    ] {
        for path in paths {
            if let Ok(fd) = PathFd::new(path) {
                let access = if path.is_dir() {
                    access
                } else {
                    access & AccessFs::from_file(abi)
                };
                rules = rules.add_rule(PathBeneath::new(fd, access))?;
            }
        }
    }
    let made: Option<OwnedFd> = rules.into();
    made.ok_or_else(|| crate::Error::Child("this kernel does not support Landlock".into()))
}

/// Applies a rule set for good; the caller must have `no_new_privs`.
pub fn join(rules: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: the call takes a descriptor and a flag word; the borrow keeps the descriptor open.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
    if result < 0 {
        Err(std::io::Error::last_os_error()).during("join the room's file rules")
    } else {
        Ok(())
    }
}

/// Lists the directories of an image's root filesystem that others do not have. They are read-only,
/// like the tree around them.
fn others() -> Vec<String> {
    const OWN: [&str; 3] = ["dev", "tmp", "workspace"];
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    entries
        .filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|it| it.file_name().into_string().ok())
        .filter(|name| !OWN.contains(&name.as_str()))
        .map(|name| format!("/{name}"))
        .collect()
}

/// Creates the rule set of a room; `None` if the kernel does not support Landlock. One call on the
/// descriptor applies it. Landlock names ports, not devices, so a room with a loopback has no rules
/// for TCP.
///
/// If the tree is an image's root filesystem, code may read all of it.
pub fn create(network: NetworkPolicy, is_image: bool) -> Result<Option<OwnedFd>> {
    let abi = ABI::V6;
    let mut handled = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?;
    if network.is_none() {
        handled = handled.handle_access(AccessNet::from_all(abi))?;
    }
    let mut rules = handled
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    let file_access = |access: BitFlags<AccessFs>| access & AccessFs::from_file(abi);
    let writable = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let others = if is_image { others() } else { Vec::new() };
    let others: Vec<_> = others.iter().map(String::as_str).collect();
    for (paths, access) in [
        (READABLE.as_slice(), AccessFs::from_read(abi)),
        (others.as_slice(), AccessFs::from_read(abi)),
        (WRITABLE.as_slice(), writable),
        (DEVICES.as_slice(), file_access(device)),
        (&[TERMINAL], file_access(device)),
    ] {
        for path in paths {
            // Paths that this machine lacks (`/lib64`, for example) need no rule.
            if let Ok(fd) = PathFd::new(path) {
                rules = rules.add_rule(PathBeneath::new(fd, access))?;
            }
        }
    }
    // `/dev` itself may be listed, as shells and Python's `os` do.
    if let Ok(fd) = PathFd::new("/") {
        rules = rules.add_rule(PathBeneath::new(fd, AccessFs::ReadDir))?;
    }
    Ok(rules.into())
}
