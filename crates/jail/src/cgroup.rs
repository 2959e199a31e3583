//! Control groups: one directory per launcher, one below it per room, in a v2 tree or in the v1
//! trees that the machine has.
//!
//! The launcher creates its directory while it still has the host's rights and passes it to the
//! keep's user. The keep then works through descriptors because the cgroup file system is not
//! visible inside it. Names contain the launcher's pid and start time, so that a later start can
//! identify and remove what a crash left behind.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat, unlinkat};
use serde::{Deserialize, Serialize};

use crate::error::{Result, SyscallResult};

mod stats;
mod sweep;

pub use stats::Usage;
pub use sweep::sweep;

/// The maximum of Linux.
const KEEP_WEIGHT: &str = "10000";

/// Niceness of a room's processes where no group weighs them.
const ROOM_NICENESS: i32 = 5;

/// A controller of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// Memory and swap.
    Memory,
    /// Number of processes.
    Pids,
    /// CPU time.
    Cpu,
}

/// The version of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// One tree per controller.
    V1,
    /// The unified tree.
    V2,
}

/// One of our directories in one tree.
#[derive(Debug)]
pub struct CgroupTree {
    version: Version,
    controllers: Vec<Controller>,
    dir: OwnedFd,
    /// Path in the host's file system; not valid inside the keep.
    path: PathBuf,
}

/// The launcher's directories, one per tree. Empty if the machine permits none.
#[derive(Debug, Default)]
pub struct Trees(Vec<CgroupTree>);

/// Limits of a room. `None` means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLimits {
    /// Bytes of memory, files in the room's tmpfs included.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Thousandths of a CPU.
    pub cpu_millis: Option<u64>,
    /// Bytes of buffers of TCP and UDP sockets, if there can be any. Version 2 counts them as memory;
    /// version 1 separately, and otherwise not at all.
    #[serde(default)]
    pub socket_bytes: Option<u64>,
}

/// The cgroups of one room.
#[derive(Debug)]
pub struct RoomCgroups {
    name: String,
    dirs: Vec<(Version, OwnedFd)>,
}

impl Trees {
    /// Creates the launcher's directory in every tree that permits it, owned by `owner`.
    pub fn prepare(name: &str, owner: (u32, u32)) -> Self {
        let mut trees = Vec::new();
        for candidate in sweep::candidates() {
            let taken =
                |tree: &CgroupTree| candidate.controllers.iter().any(|c| tree.controllers.contains(c));
            // Version 2 counts CPU time without a controller.
            let counted = |tree: &CgroupTree| candidate.controllers.is_empty() && tree.version == Version::V2;
            if trees.iter().any(|tree| taken(tree) || counted(tree)) {
                continue;
            }
            if let Ok(tree) = CgroupTree::create(&candidate, name, owner) {
                trees.push(tree);
            }
        }
        Self(trees)
    }

    /// Creates the launcher's directory below one directory of a v2 tree with the given
    /// controllers, which its parent must delegate.
    pub fn below(
        parent: &Path,
        controllers: &[Controller],
        name: &str,
        owner: (u32, u32),
    ) -> io::Result<Self> {
        let candidate = sweep::Candidate {
            version: Version::V2,
            controllers: controllers.to_vec(),
            parent: parent.to_owned(),
        };
        Ok(Self(vec![CgroupTree::create(&candidate, name, owner)?]))
    }

    /// Returns the launcher's directories in the host's file system.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|tree| tree.path.as_path())
    }

    /// Returns the available controllers.
    pub fn controllers(&self) -> Vec<Controller> {
        self.0
            .iter()
            .flat_map(|tree| tree.controllers.iter().copied())
            .collect()
    }

    /// Lowers the priority of a room's process where no group weighs the room's processors against
    /// the keep, which makes all other rooms. Its children inherit that.
    pub fn give_way(&self, pid: Option<rustix::process::Pid>) {
        if !self.controllers().contains(&Controller::Cpu) {
            // A failure costs others time, and nothing else.
            let _ = rustix::process::setpriority_process(pid, ROOM_NICENESS);
        }
    }

    /// Returns the descriptors that a child must keep to work with the trees.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.0.iter().map(|tree| tree.dir.as_raw_fd())
    }

    /// Returns the version in use, for reports.
    pub fn version(&self) -> Option<Version> {
        self.0.first().map(|tree| tree.version)
    }

    /// Moves a process to the `keep` leaf of the v2 directory: a process that forks into a room's
    /// group must be below the same directory.
    pub fn adopt_keep(&self, pid: i32) -> Result<()> {
        for tree in self.0.iter().filter(|tree| tree.version == Version::V2) {
            write_at(tree.dir.as_fd(), "keep/cgroup.procs", &pid.to_string())
                .during("move the keep to its cgroup")?;
        }
        Ok(())
    }

    /// Creates the groups of a room and sets their limits.
    pub fn create(&self, name: &str, limits: &GroupLimits) -> Result<RoomCgroups> {
        let mut group = RoomCgroups {
            name: name.to_owned(),
            dirs: Vec::new(),
        };
        for tree in &self.0 {
            mkdirat(&tree.dir, name, Mode::from_raw_mode(0o755)).during("make the room's cgroup")?;
            let dir = open_dir(tree.dir.as_fd(), name).during("open the room's cgroup")?;
            let set = set_limits(tree, dir.as_fd(), limits);
            group.dirs.push((tree.version, dir));
            if let Err(error) = set {
                let _ = self.remove(&group);
                return Err(error);
            }
        }
        Ok(group)
    }

    /// Removes a room's groups; fails while one contains a process.
    pub fn remove(&self, group: &RoomCgroups) -> Result<()> {
        for tree in &self.0 {
            match unlinkat(&tree.dir, group.name.as_str(), AtFlags::REMOVEDIR) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error).during("remove the room's cgroup"),
            }
        }
        Ok(())
    }

    /// Removes the launcher's own directories and their content; called in the host's namespaces
    /// after every process has exited.
    pub fn remove_all(&self) {
        for tree in &self.0 {
            sweep::remove_tree(&tree.path);
        }
    }
}

impl CgroupTree {
    fn create(candidate: &sweep::Candidate, name: &str, owner: (u32, u32)) -> io::Result<Self> {
        let path = candidate.parent.join(name);
        fs::create_dir(&path)?;
        let made = Self::furnish(candidate, &path, owner);
        if made.is_err() {
            sweep::remove_tree(&path);
        }
        made
    }

    fn furnish(candidate: &sweep::Candidate, path: &Path, owner: (u32, u32)) -> io::Result<Self> {
        let dir = open_dir(CWD, path)?;
        let mut files = vec!["cgroup.procs"];
        match candidate.version {
            Version::V2 => {
                fs::create_dir(path.join("keep"))?;
                for controller in &candidate.controllers {
                    fs::write(
                        path.join("cgroup.subtree_control"),
                        format!("+{}", controller.name()),
                    )?;
                }
                files.extend([
                    "cgroup.subtree_control",
                    "cgroup.threads",
                    "keep",
                    "keep/cgroup.procs",
                ]);
            }
            Version::V1 => files.push("tasks"),
        }
        if candidate.version == Version::V2 && candidate.controllers.contains(&Controller::Cpu) {
            // Rooms have the default weight of 100 each: however many are busy, the template still
            // forks kernels.
            let _ = fs::write(path.join("keep/cpu.weight"), KEEP_WEIGHT);
        }
        let owner = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
        chownat(&dir, "", Some(owner.0), Some(owner.1), AtFlags::EMPTY_PATH)?;
        for file in files {
            chownat(&dir, file, Some(owner.0), Some(owner.1), AtFlags::empty())?;
        }
        let mut controllers = candidate.controllers.clone();
        if candidate.version == Version::V2 {
            let enabled = fs::read_to_string(path.join("cgroup.subtree_control"))?;
            controllers.retain(|controller| enabled.split_whitespace().any(|word| word == controller.name()));
        }
        Ok(Self {
            version: candidate.version,
            controllers,
            dir,
            path: path.to_owned(),
        })
    }
}

impl Controller {
    /// Returns the kernel's name for the controller.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

impl RoomCgroups {
    /// Returns the v2 directory, for `CLONE_INTO_CGROUP`.
    pub fn v2(&self) -> Option<BorrowedFd<'_>> {
        self.dirs
            .iter()
            .find(|(version, _)| *version == Version::V2)
            .map(|(_, dir)| dir.as_fd())
    }

    /// Opens the files into which a process writes `0` to join.
    ///
    /// In v1 this is `tasks`: a thread that moves itself needs no lock over all processes and
    /// therefore no RCU grace period, unlike with `cgroup.procs` (kernel/cgroup/cgroup.c,
    /// `cgroup_attach_lock`).
    pub fn doors(&self) -> Result<Vec<OwnedFd>> {
        self.dirs
            .iter()
            .map(|(version, dir)| {
                let file = if *version == Version::V2 {
                    "cgroup.procs"
                } else {
                    "tasks"
                };
                openat(dir, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                    .during("open the room's cgroup")
            })
            .collect()
    }

    /// Returns the room's resource usage.
    pub fn usage(&self) -> Usage {
        Usage::read(self.dirs.iter().map(|(version, dir)| (*version, dir.as_fd())))
    }
}

/// Joins through the files of [`RoomCgroups::doors`].
pub fn enter(doors: &[OwnedFd]) -> Result<()> {
    for door in doors {
        rustix::io::write(door, b"0").during("join the room's cgroup")?;
    }
    Ok(())
}

fn set_limits(tree: &CgroupTree, dir: BorrowedFd<'_>, limits: &GroupLimits) -> Result<()> {
    let has = |controller| tree.controllers.contains(&controller);
    let v2 = tree.version == Version::V2;
    if let Some(bytes) = limits.memory_bytes.filter(|_| has(Controller::Memory)) {
        let bytes = bytes.to_string();
        if v2 {
            write_at(dir, "memory.max", &bytes).during("limit memory")?;
            // Both are missing on kernels without swap accounting; without swap there is nothing to
            // limit.
            let _ = write_at(dir, "memory.swap.max", "0");
            let _ = write_at(dir, "memory.oom.group", "0");
        } else {
            write_at(dir, "memory.limit_in_bytes", &bytes).during("limit memory")?;
            let _ = write_at(dir, "memory.memsw.limit_in_bytes", &bytes);
            let _ = write_at(dir, "memory.swappiness", "0");
            if let Some(bytes) = limits.socket_bytes {
                // Linux would take them from the memory for sockets of the whole machine.
                write_at(dir, "memory.kmem.tcp.limit_in_bytes", &bytes.to_string())
                    .during("limit memory of sockets")?;
            }
        }
    }
    if let Some(processes) = limits.processes.filter(|_| has(Controller::Pids)) {
        write_at(dir, "pids.max", &processes.to_string()).during("limit processes")?;
    }
    if let Some(millis) = limits.cpu_millis.filter(|_| has(Controller::Cpu)) {
        const PERIOD: u64 = 100_000;
        let quota = millis * PERIOD / 1000;
        if v2 {
            write_at(dir, "cpu.max", &format!("{quota} {PERIOD}")).during("limit CPU time")?;
        } else {
            // Missing without CONFIG_CFS_BANDWIDTH; `probe` reports that.
            let _ = write_at(dir, "cpu.cfs_period_us", &PERIOD.to_string());
            let _ = write_at(dir, "cpu.cfs_quota_us", &quota.to_string());
        }
    }
    Ok(())
}

fn open_dir(at: BorrowedFd<'_>, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    Ok(openat(
        at,
        path,
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

fn write_at(dir: BorrowedFd<'_>, file: &str, text: &str) -> io::Result<()> {
    let file = openat(dir, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}
