//! File trees: a small read-only one for the keep, and the mounts that each room adds.
//!
//! A room inherits the keep's mounts and cannot undo them: mounts from a more privileged namespace
//! are locked together. So a room only adds what must be its own: `/proc`, `/tmp`, `/workspace`,
//! `/dev/shm`, `/dev/pts`, and the read-only `/tmp/data`.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_bind,
    mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use crate::error::{Result, SyscallResult};
use crate::ids::ROOM_USER;

mod image;

/// A directory of the host that is visible inside, read-only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBind {
    /// The host's directory.
    pub source: PathBuf,
    /// Path inside.
    pub target: PathBuf,
}

/// Content of the keep's tree in addition to the system's libraries and commands.
#[derive(Clone, Debug, Default)]
pub struct KeepTree {
    /// The host's directory of an image's root filesystem, which replaces those libraries and commands.
    pub root: Option<PathBuf>,
    /// Directories of the host.
    pub binds: Vec<HostBind>,
    /// Files with their content, by absolute path.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Limits of a room's writable file systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLimits {
    /// Maximum size of `/workspace`, and of `/tmp`, in bytes.
    pub bytes: u64,
    /// Maximum number of files and directories in each.
    pub inodes: u64,
    /// Maximum size of `/dev/shm` in bytes.
    pub shm_bytes: u64,
    /// Maximum size of `/tmp/data` in bytes.
    pub data_bytes: u64,
}

/// Parts of the host's `/usr` that a Python program needs.
pub const SYSTEM: [&str; 7] = [
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/usr/share/terminfo",
    // Debian's `awk` and similar commands are links through here.
    "/etc/alternatives",
];
/// Names at the root that are links to `/usr` on merged systems and directories elsewhere.
pub const ROOT_LINKS: [&str; 4] = ["bin", "lib", "lib32", "lib64"];
/// `tty` is the terminal of the process that opens it; processes without one get an error.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DIRECTORIES: [&str; 10] = [
    "proc",
    "dev/pts",
    "dev/shm",
    "etc",
    "home/user",
    "mnt",
    "tmp",
    "workspace",
    "opt/cellblock",
    "usr/share",
];
/// Target of `/cellblock`: inputs of derivations, in each room's own read-only directory.
const INPUTS: &str = "/tmp/data/.cellblock";
/// Target of `/skills`: the skills of each room's session, in the same read-only directory.
pub const SKILLS: &str = "/tmp/data/.skills";
/// Links of the tree with their targets. Many models use `/mnt/data`, as in OpenAI's interpreter.
pub const LINKS: [(&str, &str); 3] = [
    ("cellblock", INPUTS),
    ("mnt/data", "/workspace"),
    ("skills", SKILLS),
];
/// Another place of `/workspace`: programs written for E2B's sandboxes have their files there. It
/// is a mount rather than a link so that the working directory of such a program has that name.
const HOME: &str = "/home/user";
/// Options of the memory for a tree's own files.
const SMALL: &str = "mode=755,size=64m,nr_inodes=4096";
/// Options of a room's own pseudo-terminals. All instances of the machine share one limit, so each has
/// a small one of its own.
const TERMINALS: &CStr = c"newinstance,mode=600,ptmxmode=666,max=32";
const READ_ONLY: MountFlags = MountFlags::BIND
    .union(MountFlags::RDONLY)
    .union(MountFlags::NOSUID);
/// Directories that every host has; the first that exists carries the new tree until it becomes the root.
const SCAFFOLDS: [&str; 4] = ["/tmp", "/run", "/mnt", "/usr"];

const MASKED_FILES: [&str; 27] = [
    "/proc/buddyinfo",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/diskstats",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kmsg",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    // Locks of open files belong to no process, so that every namespace shows those of the host.
    "/proc/locks",
    "/proc/pagetypeinfo",
    "/proc/partitions",
    "/proc/sched_debug",
    "/proc/schedstat",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/vmallocinfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
];
/// The identity of the machine's boot, which is the same for all its processes, and counters of
/// what others open.
const MASKED_PARAMETERS: [&str; 5] = [
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/kernel/random/boot_id",
];
const MASKED_DIRECTORIES: [&str; 8] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/driver",
    "/proc/fs",
    "/proc/irq",
    "/proc/pressure",
    "/proc/scsi",
];

/// Detached, read-only copies of the host's directories that a keep shows.
#[derive(Debug)]
pub struct HostMounts {
    root: Option<OwnedFd>,
    directories: Vec<(OwnedFd, PathBuf)>,
}

/// Builds the keep's tree and makes it the root of the calling process, which must be alone in its
/// mount namespace.
pub fn enter_keep(tree: &KeepTree, sources: HostMounts) -> Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .during("make mounts private")?;
    let root = SCAFFOLDS
        .iter()
        .map(Path::new)
        .find(|path| path.is_dir())
        .unwrap_or(Path::new("/"));
    let frozen: &[&str] = if let Some(image) = sources.root {
        image::mount(root, image)?;
        &image::FROZEN
    } else {
        make_tree(root)?;
        &[]
    };
    for (source, target) in sources.directories {
        attach(source, &beneath(root, &target))?;
    }
    devices(root)?;
    write_files(root, tree)?;
    write_processors(root)?;
    // For the template's caches; a room covers it with its own.
    tmpfs(
        &root.join("tmp"),
        "mode=1777,size=64m,nr_inodes=4096",
        MountFlags::NOSUID | MountFlags::NODEV,
    )?;
    for directory in frozen {
        let path = root.join(directory);
        mount_remount(&path, READ_ONLY, "").during_on("make read-only", &path)?;
    }
    let proc = root.join("proc");
    mount(
        "proc",
        &proc,
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )
    .during_on("mount proc at", "/proc")?;
    rustix::process::chdir(root).during("enter the new tree")?;
    rustix::process::pivot_root(".", ".").during("make the new tree the root")?;
    unmount(".", UnmountFlags::DETACH).during("leave the old tree")?;
    rustix::process::chdir("/").during("enter the root")?;
    if tree.root.is_some() {
        // It was mounted read-only.
        return Ok(());
    }
    mount_remount("/", READ_ONLY, "").during("make the root read-only")
}

/// Makes the small tree of a keep: the machine's programs and libraries are mounted in it.
fn make_tree(root: &Path) -> Result<()> {
    tmpfs(root, SMALL, MountFlags::NOSUID)?;
    for directory in DIRECTORIES {
        create_dir(&root.join(directory))?;
    }
    for name in ROOT_LINKS {
        if let Ok(target) = fs::read_link(Path::new("/").join(name)) {
            let link = root.join(name);
            symlink(&target, &link).during_on("link", &link)?;
        }
    }
    for (name, target) in LINKS {
        let link = root.join(name);
        symlink(target, &link).during_on("link", &link)?;
    }
    Ok(())
}

/// Mounts a room's own file systems. Returns a writable handle to `/tmp/data`, which is read-only
/// through its path.
pub fn enter_room(limits: &DiskLimits) -> Result<OwnedFd> {
    let guarded = MountFlags::NOSUID | MountFlags::NODEV;
    let owner = format!("uid={ROOM_USER},gid={ROOM_USER}");
    let disk = format!(
        "mode=700,{owner},size={},nr_inodes={}",
        limits.bytes, limits.inodes
    );
    tmpfs(Path::new("/workspace"), &disk, guarded)?;
    show_home()?;
    tmpfs(Path::new("/tmp"), &disk.replace("mode=700", "mode=1777"), guarded)?;
    let shm = format!(
        "mode=1777,{owner},size={},nr_inodes={}",
        limits.shm_bytes, limits.inodes
    );
    tmpfs(Path::new("/dev/shm"), &shm, guarded | MountFlags::NOEXEC)?;
    // A machine without pseudo-terminals has rooms without them, where no process gets a terminal.
    let _ = mount(
        "devpts",
        "/dev/pts",
        "devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        Some(TERMINALS),
    );
    create_dir(Path::new("/tmp/output"))?;
    create_dir(Path::new("/tmp/data"))?;
    let data = format!(
        "mode=755,{owner},size={},nr_inodes={}",
        limits.data_bytes, limits.inodes
    );
    tmpfs(Path::new("/tmp/data"), &data, guarded | MountFlags::NOEXEC)?;
    let handle = open_tree(
        CWD,
        "/tmp/data",
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
    )
    .during_on("open", "/tmp/data")?;
    let frozen = MountFlags::BIND | MountFlags::RDONLY | guarded | MountFlags::NOEXEC;
    mount_remount("/tmp/data", frozen, "").during_on("make read-only", "/tmp/data")?;
    Ok(handle)
}

/// Shows `/workspace` in `/home/user`, too, unless the tree is an image that lacks that directory,
/// or has a link in its way.
pub(crate) fn show_home() -> Result<()> {
    let is_directory = |path: &str| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    if !is_directory("/home") || !is_directory(HOME) {
        return Ok(());
    }
    mount_bind("/workspace", HOME).during_on("bind", HOME)
}

/// Mounts a fresh `/proc` that shows only the room's processes, and masks files that reveal or
/// control the machine.
pub fn hide_proc() -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, Some(c"hidepid=2")).during_on("mount", "/proc")?;
    for file in MASKED_FILES {
        match mount_bind("/dev/null", file) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error).during_on("mask", file),
        }
    }
    // One file system covers them all: Linux keeps a record of each file system in each memory cgroup.
    let mut masked = MASKED_DIRECTORIES.into_iter().filter(|it| Path::new(it).is_dir());
    if let Some(first) = masked.next() {
        let frozen = flags | MountFlags::RDONLY;
        tmpfs(Path::new(first), "mode=555,size=4k,nr_inodes=1", frozen)?;
        for directory in masked {
            mount_bind(first, directory).during_on("mask", directory)?;
        }
    }
    mount_bind("/proc/sys", "/proc/sys").during_on("bind", "/proc/sys")?;
    mount_remount("/proc/sys", MountFlags::BIND | MountFlags::RDONLY | flags, "")
        .during_on("make read-only", "/proc/sys")?;
    // Last, because they are below that mount.
    for file in MASKED_PARAMETERS {
        mount_bind("/dev/null", file).during_on("mask", file)?;
    }
    Ok(())
}

/// Copies the mounts of the tree's host directories. Called inside the keep's namespaces while the
/// process still has the host's user id, because images may be below a home directory that only the
/// user can enter.
pub fn open_sources(tree: &KeepTree) -> Result<HostMounts> {
    let mut directories = Vec::new();
    let root = tree.root.as_deref().map(open_read_only).transpose()?;
    if root.is_none() {
        directories = open_system()?;
    }
    for bind in &tree.binds {
        directories.push((open_read_only(&bind.source)?, bind.target.clone()));
    }
    Ok(HostMounts { root, directories })
}

fn open_system() -> Result<Vec<(OwnedFd, PathBuf)>> {
    let system = SYSTEM.iter().map(PathBuf::from).filter(|path| path.is_dir());
    let root_directories = ROOT_LINKS
        .iter()
        .map(|name| Path::new("/").join(name))
        .filter(|path| path.is_dir() && !path.is_symlink());
    system
        .chain(root_directories)
        .map(|path| Ok((open_read_only(&path)?, path)))
        .collect()
}

fn open_read_only(source: &Path) -> Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let fd = open_tree(CWD, source, flags).during_on("open", source)?;
    set_attributes(fd.as_fd()).during_on("make read-only", source)?;
    Ok(fd)
}

/// Keeps later mounts of the caller's mount namespace out of all others.
pub fn make_private() -> Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .during("keep mounts to this process")
}

/// Shows a directory at another place of the caller's mount namespace, without its devices and
/// set-user-ID programs.
pub fn show(source: &Path, target: &Path, writable: bool) -> Result<()> {
    const KEPT: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, source, flags).during_on("open", source)?;
    let attributes = if writable {
        KEPT
    } else {
        KEPT | libc::MOUNT_ATTR_RDONLY
    };
    set(tree.as_fd(), attributes).during_on("mount", source)?;
    move_mount(&tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).during_on("mount", target)
}

fn set_attributes(tree: BorrowedFd<'_>) -> std::io::Result<()> {
    const GUARDED: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    set(tree, GUARDED)
}

fn set(tree: BorrowedFd<'_>, attributes: u64) -> std::io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the kernel reads `attributes` during the call only, and its size is passed with it;
    // the path is a static empty string.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Creates a detached mount of one open file, read-only and not executable. The caller must be
/// allowed to mount in its mount namespace.
pub fn file_mount(file: BorrowedFd<'_>) -> std::io::Result<OwnedFd> {
    const DATA: u64 =
        libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let mount = open_tree(file, "", flags)?;
    set(mount.as_fd(), DATA)?;
    Ok(mount)
}

/// Does the same for a process that may not mount: it moves, for good, to its own user and mount
/// namespaces, where it may. It must have only one thread. The path must be that of the open file.
pub fn file_mount_apart(file: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: the namespaces change nothing that safe code relies on; descriptors and memory stay
    // as they are.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS) }
        .during("make namespaces for a mount")?;
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{0} {0} 1", uid.as_raw())),
        ("gid_map", format!("{0} {0} 1", gid.as_raw())),
    ] {
        let path = Path::new("/proc/self").join(name);
        fs::write(&path, text).during_on("write", &path)?;
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let again = rustix::fs::open(path, flags, Mode::empty()).during("open the file again")?;
    let (one, other) = (rustix::fs::fstat(file), rustix::fs::fstat(&again));
    let (one, other) = (one.during("look at the file")?, other.during("look at the file")?);
    if (one.st_dev, one.st_ino) != (other.st_dev, other.st_ino) {
        return Err(crate::Error::Child("its path now names another file".into()));
    }
    file_mount(again.as_fd()).during("make a mount of a file")
}

/// Attaches a detached mount of a file to a file of `/tmp/data`; called in a room's mount namespace
/// with the rights to mount there.
pub fn attach_data(mount: BorrowedFd<'_>, name: &str) -> Result<()> {
    let directory = rustix::fs::open(
        "/tmp/data",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .during_on("open", "/tmp/data")?;
    let target = openat2(
        &directory,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .during_on("open", name)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", &target, "", flags).during_on("mount", name)
}

fn attach(source: OwnedFd, target: &Path) -> Result<()> {
    create_dir(target)?;
    move_mount(source, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).during_on("mount", target)
}

fn devices(root: &Path) -> Result<()> {
    let dev = root.join("dev");
    for name in DEVICES {
        let target = dev.join(name);
        fs::write(&target, "").during_on("create", &target)?;
        mount_bind(Path::new("/dev").join(name), &target).during_on("mount", &target)?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        symlink(target, dev.join(name)).during_on("link", dev.join(name))?;
    }
    Ok(())
}

/// Writes one of the files that a sandbox starts with; a file in a folder `bin` is executable.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).during_on("write", path)?;
    if path.parent().is_some_and(|folder| folder.ends_with("bin")) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).during_on("make executable", path)?;
    }
    Ok(())
}

fn write_files(root: &Path, tree: &KeepTree) -> Result<()> {
    // Most files are beside the one before, and a directory costs as much as a file.
    let mut created = PathBuf::new();
    for (path, content) in &tree.files {
        let path = beneath(root, path);
        if let Some(parent) = path.parent()
            && parent != created
        {
            create_dir(parent)?;
            parent.clone_into(&mut created);
        }
        write_file(&path, content)?;
    }
    let etc = if tree.root.is_some() { image::ETC } else { "etc" };
    for (name, text) in system_files() {
        let path = root.join(etc).join(name);
        create_dir(path.parent().unwrap_or(root))?;
        fs::write(&path, text).during_on("write", &path)?;
    }
    if tree.root.is_some() {
        image::show_files(root)?;
    }
    Ok(())
}

/// Returns the files of `/etc` in a sandbox, by name.
pub fn system_files() -> [(&'static str, String); 5] {
    let user = ROOM_USER;
    [
        (
            "passwd",
            format!(
                "root:x:0:0:root:/:/bin/false\nuser:x:{user}:{user}:user:/workspace:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/:/bin/false\n"
            ),
        ),
        // Mounts from the host belong to ids that the room does not map; they are shown as
        // `nobody`.
        ("group", format!("root:x:0:\nuser:x:{user}:\nnogroup:x:65534:\n")),
        ("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned()),
        // Without it, fontconfig, which renderers call, prints warnings to stderr.
        (
            "fonts/fonts.conf",
            "<?xml version=\"1.0\"?><fontconfig><cachedir>/tmp/.fontconfig</cachedir></fontconfig>\n"
                .to_owned(),
        ),
        (
            "nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files\n".to_owned(),
        ),
    ]
}

/// Writes a replacement for the part of `/sys` from which programs count processors: their number,
/// each a core of its own.
fn write_processors(root: &Path) -> Result<()> {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cpus = root.join("sys/devices/system/cpu");
    let write = |path: PathBuf, text: &str| -> Result<()> {
        create_dir(path.parent().unwrap_or(root))?;
        fs::write(&path, format!("{text}\n")).during_on("write", &path)
    };
    let all = if count == 1 {
        "0".to_owned()
    } else {
        format!("0-{}", count - 1)
    };
    write(cpus.join("kernel_max"), &(count - 1).to_string())?;
    for name in ["possible", "present", "online"] {
        write(cpus.join(name), &all)?;
    }
    for cpu in 0..count {
        let topology = cpus.join(format!("cpu{cpu}/topology"));
        write(topology.join("core_id"), &cpu.to_string())?;
        write(topology.join("physical_package_id"), "0")?;
        write(topology.join("core_cpus_list"), &cpu.to_string())?;
        write(
            topology.join("thread_siblings"),
            &format!("{:x}", 1_u128 << (cpu % 128)),
        )?;
        write(
            topology.join("core_siblings"),
            &format!("{:x}", u128::MAX >> (128 - count.clamp(1, 128))),
        )?;
        write(topology.join("core_siblings_list"), &all)?;
    }
    Ok(())
}

fn tmpfs(at: &Path, options: &str, flags: MountFlags) -> Result<()> {
    let options = std::ffi::CString::new(options).expect("mount options have no NUL");
    mount("tmpfs", at, "tmpfs", flags, Some(options.as_c_str())).during_on("mount a tmpfs at", at)
}

fn create_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).during_on("create", path)
}

fn beneath(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
