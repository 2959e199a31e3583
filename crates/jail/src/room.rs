//! Rooms: namespaces, file tree and cgroup of a sandbox, with the guest as its first process.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::cgroup::{GroupLimits, RoomCgroups, Trees, Usage, enter as enter_group};
use crate::confine::{self, ProcessLimits};
use crate::error::{Error, Result, SyscallResult, chain};
use crate::fds;
use crate::ids::{self, KeepIds};
use crate::landlock;
use crate::mounts::{self, DiskLimits};
use crate::network::{self, NetworkPolicy};
use crate::process::{Child, NAMESPACES, spawn};
use crate::protection::{Demand, Demands, Protection};
use crate::seccomp::Filters;

/// Limits of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomLimits {
    /// Limits of the whole room, enforced by a cgroup.
    pub group: GroupLimits,
    /// Limits of its file systems.
    pub disk: DiskLimits,
    /// Limits of each process.
    pub process: ProcessLimits,
    /// Its network.
    #[serde(default)]
    pub network: NetworkPolicy,
}

/// A room, as seen by the keep.
#[derive(Debug)]
pub struct Room {
    /// First process; killing it ends everything in the room.
    pub init: Child,
    /// Namespaces in the order in which a process joins them; the pid namespace, which applies to
    /// children, comes first.
    pub namespaces: Vec<OwnedFd>,
    /// Landlock rules, for processes that join later.
    pub rules: Option<OwnedFd>,
    group: RoomCgroups,
}

/// Handles that the setup passes to the first process of a room.
#[derive(Debug)]
pub struct RoomHandles {
    /// Writable handle to `/tmp/data`.
    pub data: OwnedFd,
    /// Landlock rules, for commands that the room starts.
    pub rules: Option<OwnedFd>,
    /// The room's directories, if it could not mount its own.
    pub dir: Option<crate::scratch::RoomDir>,
    /// The room's network.
    pub network: NetworkPolicy,
}

/// A message from a room's first process to the keep during setup.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FromRoom {
    /// Sends the namespaces, and the rules if any, as descriptors.
    Handles,
    /// The process is locked down.
    Ready,
    /// The setup failed.
    Refused { error: String },
}

/// State that all rooms of a keep share.
#[derive(Debug)]
pub struct Rooms<'a> {
    /// The keep's id map.
    pub ids: KeepIds,
    /// Place of the cgroups.
    pub trees: &'a Trees,
    /// The compiled system call filters.
    pub filters: &'a Filters,
    /// The policy's demands.
    pub demands: &'a Demands,
    /// Whether the keep's tree is an image's root filesystem.
    pub is_image: bool,
}

impl Rooms<'_> {
    /// Creates a room and runs `body` as its first process, locked down, with the standard
    /// descriptors and `keep_open`.
    pub fn create(
        &self,
        name: &str,
        slot: u32,
        limits: &RoomLimits,
        keep_open: &[RawFd],
        body: impl FnOnce(RoomHandles) -> Result<()>,
    ) -> Result<Room> {
        let group = self.trees.create(name, &limits.group)?;
        let made = self.populate(slot, limits, &group, keep_open, body);
        match made {
            Ok((init, mut handles)) => {
                let rules = (handles.len() > NAMESPACE_FILES.len())
                    .then(|| handles.pop())
                    .flatten();
                Ok(Room {
                    init,
                    namespaces: handles,
                    rules,
                    group,
                })
            }
            Err(error) => {
                let _ = self.trees.remove(&group);
                Err(error)
            }
        }
    }

    fn populate(
        &self,
        slot: u32,
        limits: &RoomLimits,
        group: &RoomCgroups,
        keep_open: &[RawFd],
        body: impl FnOnce(RoomHandles) -> Result<()>,
    ) -> Result<(Child, Vec<OwnedFd>)> {
        let (ours, theirs) = fds::packet_pair()?;
        let doors = if group.v2().is_some() {
            Vec::new()
        } else {
            group.doors()?
        };
        let init = spawn(NAMESPACES, group.v2(), || {
            let mut open = keep_open.to_vec();
            open.push(theirs.as_raw_fd());
            open.extend(doors.iter().map(AsRawFd::as_raw_fd));
            fds::close_all_but(&open)?;
            if fds::receive::<()>(&theirs)?.is_none() {
                return Ok(());
            }
            enter_group(&doors)?;
            drop(doors);
            self.trees.give_way(None);
            let made = self.furnish(limits).and_then(|(inside, namespaces)| {
                // Linux compares the number of descriptors that a user has in flight with the
                // sender's limit of open files, and other sandboxes of the user may have filled
                // sockets: the room's own, lower limit is set afterward.
                let handles: Vec<_> = namespaces.iter().chain(&inside.rules).map(AsFd::as_fd).collect();
                fds::send(&theirs, &FromRoom::Handles, &handles)?;
                drop(handles);
                drop(namespaces);
                self.lock_down(limits)?;
                Ok(inside)
            });
            match made {
                Ok(inside) => {
                    fds::send(&theirs, &FromRoom::Ready, &[])?;
                    drop(theirs);
                    body(inside)
                }
                Err(error) => {
                    let refused = FromRoom::Refused { error: chain(&error) };
                    fds::send(&theirs, &refused, &[])?;
                    Err(error)
                }
            }
        })
        .during("make the room's namespaces")?;
        let furnished = || -> Result<Vec<OwnedFd>> {
            ids::write_room(init.pid, self.ids.room(slot))?;
            fds::send(ours.as_fd(), &(), &[])?;
            let mut namespaces = Vec::new();
            loop {
                match fds::receive::<FromRoom>(ours.as_fd())? {
                    Some((FromRoom::Handles, handles)) if handles.len() < NAMESPACE_FILES.len() => {
                        return Err(Error::Child(
                            "the room's namespaces did not arrive: too many open files; raise the limit \
                             (`ulimit -n`)"
                                .into(),
                        ));
                    }
                    Some((FromRoom::Handles, handles)) => namespaces = handles,
                    Some((FromRoom::Ready, _)) => return Ok(namespaces),
                    Some((FromRoom::Refused { error }, _)) => return Err(Error::Child(error)),
                    None => return Err(Error::Child("the room exited during its setup".into())),
                }
            }
        };
        match furnished() {
            Ok(handles) => Ok((init, handles)),
            Err(error) => {
                init.kill();
                init.wait()?;
                Err(error)
            }
        }
    }

    /// Sets up the room from inside, in its first process; only [`lock_down`](Self::lock_down)
    /// remains to be done.
    fn furnish(&self, limits: &RoomLimits) -> Result<(RoomHandles, Vec<OwnedFd>)> {
        let wanted = |protection| self.demands.of(protection) != Demand::Disabled;
        if wanted(Protection::CgroupNamespace) {
            // SAFETY: a cgroup namespace changes nothing that safe code relies on; descriptors and
            // memory stay as they are.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }
                .during("hide the host's cgroups")?;
        }
        // Opened before this process hides itself: after that, no process in the keep may open
        // them.
        let namespaces = open_namespaces()?;
        if !limits.network.is_none() {
            network::start_loopback()?;
        }
        confine::become_room_user()?;
        if wanted(Protection::HiddenProc) {
            mounts::hide_proc()?;
        }
        let data = mounts::enter_room(&limits.disk)?;
        let rules = if wanted(Protection::Landlock) {
            landlock::create(limits.network, self.is_image)?
        } else {
            None
        };
        confine::hide()?;
        rustix::thread::set_name(c"cellblock-guest").during("name the guest")?;
        rustix::process::chdir("/").during("enter the room")?;
        let inside = RoomHandles {
            data,
            rules,
            dir: None,
            network: limits.network,
        };
        Ok((inside, namespaces))
    }

    fn lock_down(&self, limits: &RoomLimits) -> Result<()> {
        limits.process.apply()?;
        crate::caps::drop_all()?;
        if self.demands.of(Protection::Seccomp) != Demand::Disabled {
            self.filters.install(limits.network)?;
        }
        Ok(())
    }

    /// Removes the groups of a room whose first process has been reaped.
    pub fn remove_groups(&self, room: &Room) -> Result<()> {
        self.trees.remove(&room.group)
    }
}

/// The pid namespace comes first, then the user namespace, which grants the right to join the
/// others.
const NAMESPACE_FILES: [&str; 7] = ["pid", "user", "mnt", "net", "ipc", "uts", "cgroup"];

/// Indexes of the user namespace, the mount namespace and the one with the host name in that list.
const USER: usize = 1;
const MOUNTS: usize = 2;
const NAMES: usize = 5;

fn open_namespaces() -> Result<Vec<OwnedFd>> {
    NAMESPACE_FILES
        .iter()
        .map(|name| {
            let path = format!("/proc/self/ns/{name}");
            rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).during_on("open", &path)
        })
        .collect()
}

impl Room {
    /// Opens the files through which a process joins the room's groups.
    pub fn doors(&self) -> Result<Vec<OwnedFd>> {
        self.group.doors()
    }

    /// Mounts a file, as a detached mount, over a file of the room's `/tmp/data`; called by the
    /// keep, whose user namespace is above the room's.
    pub fn mount_data(&self, mount: &OwnedFd, name: &str) -> Result<()> {
        self.within((MOUNTS, LinkNameSpaceType::Mount), &[mount], || {
            mounts::attach_data(mount.as_fd(), name)
        })
    }

    /// Sets the room's host name; called by the keep.
    pub fn name_host(&self, name: &str) -> Result<()> {
        self.within((NAMES, LinkNameSpaceType::HostNameAndNISDomainName), &[], || {
            rustix::system::sethostname(name.as_bytes()).during("set the room's host name")
        })
    }

    /// Runs `body` in a child that has joined the room's users and one more of its namespaces, and
    /// keeps these descriptors.
    fn within(
        &self,
        (index, kind): (usize, LinkNameSpaceType),
        kept: &[&OwnedFd],
        body: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let [users, other] = [USER, index].map(|index| &self.namespaces[index]);
        let (ours, theirs) = fds::packet_pair()?;
        let child = spawn(0, None, || {
            let open: Vec<_> = [users, other, &theirs]
                .iter()
                .chain(kept)
                .map(|descriptor| descriptor.as_raw_fd())
                .collect();
            fds::close_all_but(&open)?;
            let joined = move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))
                .and_then(|()| move_into_link_name_space(other.as_fd(), Some(kind)))
                .during_on("join the room's namespace", NAMESPACE_FILES[index]);
            let done = joined.and_then(|()| body()).map_err(|error| chain(&error));
            fds::send(&theirs, &done.err(), &[])
        })
        .during("start what enters a room")?;
        drop(theirs);
        let told = fds::receive::<Option<String>>(&ours);
        child.wait()?;
        match told? {
            Some((None, _)) => Ok(()),
            Some((Some(failure), _)) => Err(Error::Child(failure)),
            None => Err(Error::Child(
                "what entered the room ended before it was done".into(),
            )),
        }
    }

    /// Returns the room's resource usage.
    pub fn usage(&self) -> Usage {
        self.group.usage()
    }
}
