//! Rooms: one namespace set, file tree and cgroup per sandbox, with the guest as its first process.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use crate::cgroup::{Group, GroupLimits, Trees, Usage, enter as enter_group};
use crate::confine::{self, ProcessLimits};
use crate::error::{During, Error, Result, chain};
use crate::fds;
use crate::ids::{self, KeepIds};
use crate::landlock;
use crate::mounts::{self, DiskLimits};
use crate::process::{Child, NAMESPACES, spawn};
use crate::protection::{Demand, Demands, Protection};
use crate::seccomp::Filters;

/// Everything that bounds a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomLimits {
    /// Of the whole room, by cgroup.
    pub group: GroupLimits,
    /// Of its file systems.
    pub disk: DiskLimits,
    /// Of each process.
    pub process: ProcessLimits,
}

/// A room as seen by the keep.
#[derive(Debug)]
pub struct Room {
    /// Its first process: killing it ends everything in the room.
    pub init: Child,
    /// Its namespaces, in the order in which a process joins them; the pid namespace, which holds for children, comes first.
    pub namespaces: Vec<OwnedFd>,
    /// Its Landlock rules, for processes that join later.
    pub rules: Option<OwnedFd>,
    group: Group,
}

/// What the first process of a room gets from its set-up.
#[derive(Debug)]
pub struct Inside {
    /// A writable handle to `/tmp/data`.
    pub data: OwnedFd,
    /// The room's Landlock rules, for commands that it starts.
    pub rules: Option<OwnedFd>,
    /// Where the room's directories are, if it could not mount its own.
    pub dir: Option<crate::scratch::RoomDir>,
}

/// What the first process of a room tells the keep while it is being made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FromRoom {
    /// Its namespaces, and its rules if it has any, are beside this.
    Handles,
    /// It is locked down.
    Ready,
    /// It could not be made.
    Refused { error: String },
}

/// What every room of a keep shares.
#[derive(Debug)]
pub struct Rooms<'a> {
    /// The keep's id map.
    pub ids: KeepIds,
    /// Where groups are made.
    pub trees: &'a Trees,
    /// The compiled system call filters.
    pub filters: &'a Filters,
    /// What the policy asks for.
    pub demands: &'a Demands,
}

impl Rooms<'_> {
    /// Makes a room and runs `body` as its first process, locked down, with the standard descriptors and `keep_open`.
    pub fn create(
        &self,
        name: &str,
        slot: u32,
        limits: &RoomLimits,
        keep_open: &[RawFd],
        body: impl FnOnce(Inside) -> Result<()>,
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
        group: &Group,
        keep_open: &[RawFd],
        body: impl FnOnce(Inside) -> Result<()>,
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
            let made = self.furnish(limits).and_then(|(inside, namespaces)| {
                // Linux compares the descriptors that a user has on their way with the sender's limit on open files, and other sandboxes
                // of the user may have filled sockets: the room's own, lower limit comes after.
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
                            "the room's namespaces did not arrive: too many open files; raise the limit (`ulimit -n`)".into(),
                        ));
                    }
                    Some((FromRoom::Handles, handles)) => namespaces = handles,
                    Some((FromRoom::Ready, _)) => return Ok(namespaces),
                    Some((FromRoom::Refused { error }, _)) => return Err(Error::Child(error)),
                    None => return Err(Error::Child("the room ended while it was being made".into())),
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

    /// Runs inside the room, in its first process, and leaves only [`lock_down`](Self::lock_down) to be done.
    fn furnish(&self, limits: &RoomLimits) -> Result<(Inside, Vec<OwnedFd>)> {
        let wanted = |protection| self.demands.of(protection) != Demand::Disabled;
        if wanted(Protection::CgroupNamespace) {
            // SAFETY: a cgroup namespace changes nothing that safe code relies on; descriptors and memory stay as they are.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }
                .during("hide the host's cgroups")?;
        }
        // Taken before this process hides itself: after that, nobody in the keep may open them.
        let namespaces = open_namespaces()?;
        confine::become_room_user()?;
        rustix::system::sethostname(b"cellblock").during("name the room")?;
        if wanted(Protection::HiddenProc) {
            mounts::hide_proc()?;
        }
        let data = mounts::enter_room(&limits.disk)?;
        let rules = if wanted(Protection::Landlock) {
            landlock::create()?
        } else {
            None
        };
        confine::hide()?;
        rustix::thread::set_name(c"cellblock-guest").during("name the guest")?;
        rustix::process::chdir("/").during("enter the room")?;
        let inside = Inside {
            data,
            rules,
            dir: None,
        };
        Ok((inside, namespaces))
    }

    fn lock_down(&self, limits: &RoomLimits) -> Result<()> {
        limits.process.apply()?;
        crate::caps::drop_all()?;
        if self.demands.of(Protection::Seccomp) != Demand::Disabled {
            self.filters.install()?;
        }
        Ok(())
    }

    /// Removes the groups of a room whose first process has been reaped.
    pub fn remove_groups(&self, room: &Room) -> Result<()> {
        self.trees.remove(&room.group)
    }
}

/// The pid namespace first, then the user namespace, which gives the right to join the others.
const NAMESPACE_FILES: [&str; 7] = ["pid", "user", "mnt", "net", "ipc", "uts", "cgroup"];

/// Where the user namespace and the mount namespace are among them.
const USER: usize = 1;
const MOUNTS: usize = 2;

fn enter_namespaces(user: &OwnedFd, mounts: &OwnedFd) -> Result<()> {
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User)).during("join the room's users")?;
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount)).during("join the room's mounts")
}

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
    /// Files through which a process joins the room's groups.
    pub fn doors(&self) -> Result<Vec<OwnedFd>> {
        self.group.doors()
    }

    /// Mounts a file, as a detached mount, over a file of the room's `/tmp/data`; called by the keep, whose user namespace is above the room's.
    pub fn mount_data(&self, mount: &OwnedFd, name: &str) -> Result<()> {
        let [users, tree] = [USER, MOUNTS].map(|index| &self.namespaces[index]);
        let (ours, theirs) = fds::packet_pair()?;
        let child = spawn(0, None, || {
            let open = [users, tree, mount, &theirs].map(AsRawFd::as_raw_fd);
            fds::close_all_but(&open)?;
            let attached = enter_namespaces(users, tree)
                .and_then(|()| mounts::attach_data(mount.as_fd(), name))
                .map_err(|error| chain(&error));
            fds::send(&theirs, &attached.err(), &[])
        })
        .during("start what mounts data")?;
        drop(theirs);
        let told = fds::receive::<Option<String>>(&ours);
        child.wait()?;
        match told? {
            Some((None, _)) => Ok(()),
            Some((Some(failure), _)) => Err(Error::Child(failure)),
            None => Err(Error::Child("what mounts data ended before it had".into())),
        }
    }

    /// What the room has used.
    pub fn usage(&self) -> Usage {
        self.group.usage()
    }
}
