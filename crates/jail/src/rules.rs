//! The Landlock rule set: a second wall around files, made in the room's own mount namespace.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};

use crate::error::Result;

/// Trees that user code may read and execute.
const READABLE: [&str; 8] = ["/usr", "/lib", "/lib64", "/bin", "/opt", "/etc", "/proc", "/sys"];
/// Trees that user code may write.
const WRITABLE: [&str; 3] = ["/workspace", "/tmp", "/dev/shm"];
/// Devices.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// The Landlock version of the running kernel, 0 when it has none.
pub fn abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with the version flag the call reads no attribute and only answers a number.
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

/// Makes the rule set of a room; `None` when the kernel has no Landlock. Joining it is one call on the descriptor.
pub fn create() -> Result<Option<OwnedFd>> {
    let abi = ABI::V6;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    let file_access = |access: BitFlags<AccessFs>| access & AccessFs::from_file(abi);
    let writable = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for (paths, access) in [
        (READABLE.as_slice(), AccessFs::from_read(abi)),
        (WRITABLE.as_slice(), writable),
        (
            DEVICES.as_slice(),
            file_access(AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev),
        ),
    ] {
        for path in paths {
            // What this machine does not have (`/lib64`, say) needs no rule.
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
