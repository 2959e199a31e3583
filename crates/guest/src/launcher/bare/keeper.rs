//! The keep without namespaces: it creates and ends rooms, each supervised by its own shepherd.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use cellblock_jail::cgroup::{RoomCgroups, Trees};
use cellblock_jail::error::{SyscallResult, chain};
use cellblock_jail::process::{Child, child_signals, clear_child_signals, reap_one, report, spawn};
use cellblock_jail::room::RoomLimits;
use cellblock_jail::scratch::{RoomDir, Scratch};
use cellblock_jail::seccomp::Filters;
use cellblock_jail::walled::{self, Leash};
use cellblock_jail::{Error, Result, fds, tree};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::kernel::RoomPaths;
use super::memory::{self, Memory};
use super::shepherd::{self, FromShepherd, RoomParts as Flock, ToShepherd};
use crate::launcher::control::{Launch, LauncherEvent, LauncherReply, LauncherRequest, Operation};

/// Maximum time that a room's cgroup may stay busy after its last process was killed. On a busy
/// machine, the exit of many processes with little CPU time takes seconds.
const GROUP_LIMIT: Duration = Duration::from_secs(20);
/// Pause between two attempts to remove such a cgroup.
const GROUP_PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};
/// Raw wait status of a process that SIGKILL ended.
const KILLED: i32 = libc::SIGKILL;

/// The keep's state, owned by this one process.
#[derive(Debug)]
pub(super) struct Keeper<'a> {
    control: &'a OwnedFd,
    launch: &'a Launch,
    trees: &'a Trees,
    filters: &'a Filters,
    scratch: &'a Scratch,
    rooms: HashMap<String, KeeperRoom>,
    /// Cgroups of rooms that have ended, which the kernel still considers busy.
    busy: Vec<BusyGroup>,
    last_token: u64,
    children: OwnedFd,
    /// Only in a walled machine.
    memory: Option<Memory>,
}

#[derive(Debug)]
struct BusyGroup {
    group: RoomCgroups,
    /// Request to answer once the group is removed.
    ending: Option<u64>,
    since: Instant,
}

#[derive(Debug)]
struct KeeperRoom {
    shepherd: Child,
    /// Replaces its handle inside a wall.
    leash: Option<Leash>,
    socket: OwnedFd,
    dir: RoomDir,
    group: RoomCgroups,
    /// Limit of its memory.
    memory_bytes: Option<u64>,
    /// Pending requests for kernels, by token.
    waiting: HashMap<u64, u64>,
    /// Running kernels, by token.
    kernels: HashSet<u64>,
    /// The shepherd and all its processes have ended.
    gone: bool,
    /// Request to answer once the shepherd has ended.
    ending: Option<u64>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(
        control: &'a OwnedFd,
        launch: &'a Launch,
        trees: &'a Trees,
        filters: &'a Filters,
        scratch: &'a Scratch,
    ) -> Result<Self> {
        Ok(Self {
            control,
            launch,
            trees,
            filters,
            scratch,
            rooms: HashMap::new(),
            busy: Vec::new(),
            last_token: 0,
            children: child_signals()?,
            memory: launch.walled.then(Memory::new),
        })
    }

    /// Serves until the host closes the socket.
    pub(super) fn serve(mut self) -> Result<()> {
        loop {
            let (from_host, child, talking) = self.wait()?;
            self.remove_groups()?;
            self.watch_memory()?;
            self.obey();
            for name in talking {
                self.hear(&name)?;
            }
            if child {
                self.reap()?;
            }
            if from_host {
                let Some((request, descriptors)) = fds::receive::<LauncherRequest>(self.control)? else {
                    return Ok(());
                };
                self.answer(&request, descriptors)?;
            }
        }
    }

    fn wait(&self) -> Result<(bool, bool, Vec<String>)> {
        let living: Vec<_> = self.rooms.iter().filter(|(_, room)| !room.gone).collect();
        let mut polled = vec![
            PollFd::new(self.control, PollFlags::IN),
            PollFd::new(&self.children, PollFlags::IN),
        ];
        polled.extend(
            living
                .iter()
                .map(|(_, room)| PollFd::new(&room.socket, PollFlags::IN)),
        );
        let leashes = living.iter().filter_map(|(_, room)| room.leash.as_ref());
        polled.extend(leashes.map(|leash| PollFd::new(leash, PollFlags::IN)));
        // Others must not wait for a room that is slow to end.
        let measured = self.memory.is_some() && living.iter().any(|(_, room)| !room.kernels.is_empty());
        let pause = if self.busy.is_empty() {
            measured.then_some(&memory::EVERY)
        } else {
            Some(&GROUP_PAUSE)
        };
        loop {
            match poll(&mut polled, pause) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).during("wait for work"),
            }
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        let talking = living.iter().zip(&ready[2..]).filter(|(_, ready)| **ready);
        Ok((
            ready[0],
            ready[1],
            talking.map(|((name, _), _)| (*name).clone()).collect(),
        ))
    }

    /// Ends the kernels of a machine whose memory is exhausted.
    fn watch_memory(&mut self) -> Result<()> {
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        for room in self
            .rooms
            .values()
            .filter(|room| !room.gone && !room.kernels.is_empty())
        {
            if room.memory_bytes.is_some_and(|limit| memory.exceeds(limit)) {
                memory.count_kill();
                fds::send(&room.socket, &ToShepherd::EndKernels, &[])?;
            }
        }
        Ok(())
    }

    /// Passes signals on that arrived through leashes, while no shepherd is reaped.
    fn obey(&mut self) {
        for room in self.rooms.values_mut().filter(|room| !room.gone) {
            let pid = room.shepherd.pid;
            let ready = room.leash.as_ref().is_some_and(is_readable);
            if ready {
                room.leash.take_if(|leash| !leash.pull(pid));
            }
        }
    }

    fn answer(&mut self, request: &LauncherRequest, descriptors: Vec<OwnedFd>) -> Result<()> {
        let result = match &request.operation {
            Operation::CreateRoom { room, slot, limits } => {
                return match self.create_room(room, *slot, limits, descriptors) {
                    Ok(shepherd) => self.reply(request.id, Ok(LauncherReply::Done), &[shepherd.as_fd()]),
                    Err(error) => self.reply(request.id, Err(chain(&error)), &[]),
                };
            }
            Operation::StartKernel { room } => match self.start_kernel(room, request.id, &descriptors) {
                Ok(()) => return Ok(()),
                Err(error) => Err(chain(&error)),
            },
            Operation::MountData { .. } => Err("mounts require namespaces".into()),
            // Rooms have the name of the machine around them.
            Operation::NameHost { .. } => Ok(LauncherReply::Done),
            Operation::FindProcess { .. } | Operation::MoveKernel { .. } => {
                Err("forks require namespaces".into())
            }
            Operation::AdoptKernel { .. } => Err("standbys require namespaces".into()),
            Operation::DestroyRoom { room } => match self.rooms.get_mut(room) {
                Some(found) if found.gone => {
                    found.ending = Some(request.id);
                    return self.finish(room);
                }
                Some(found) => {
                    found.ending = Some(request.id);
                    // The shepherd ends everything and then exits.
                    let _ = fds::send(&found.socket, &ToShepherd::End, &[]);
                    return Ok(());
                }
                None => Ok(LauncherReply::Done),
            },
            Operation::Usage { room } => match self.rooms.get(room) {
                Some(room) => Ok(LauncherReply::Usage(
                    self.memory
                        .as_ref()
                        .map_or_else(|| room.group.usage(), Memory::usage),
                )),
                None => Err(format!("no room `{room}`")),
            },
        };
        self.reply(request.id, result, &[])
    }

    fn create_room(
        &mut self,
        name: &str,
        slot: u32,
        limits: &RoomLimits,
        descriptors: Vec<OwnedFd>,
    ) -> Result<OwnedFd> {
        let [channel] = <[OwnedFd; 1]>::try_from(descriptors)
            .map_err(|_| Error::Child("creating a room requires one descriptor".into()))?;
        // Inside gVisor, the machine's loopback is the room's own.
        if !limits.network.is_none() && !self.launch.walled {
            return Err(Error::Child(format!(
                "the network policy `{}` requires namespaces, which this machine or the policy does not \
                 permit: without them, the only loopback is the machine's; use `network: none`",
                limits.network
            )));
        }
        let user = self.launch.ids.host_room(slot);
        if self.launch.walled {
            walled::mount_room(&limits.disk, user)?;
        }
        let dir = self.scratch.room(name, user)?;
        if self.launch.walled {
            let source = dir.data_source();
            std::fs::create_dir_all(&source).during_on("create", &source)?;
            walled::mount_data(&source, &limits.disk, user)?;
        }
        let group = self
            .trees
            .create(name, &limits.group)
            .inspect_err(|_| dir.remove())?;
        let made = self.populate(user, limits, &dir, &group, channel);
        match made.and_then(|(shepherd, socket)| Ok((walled::handle(&shepherd)?, shepherd, socket))) {
            Ok(((leash, handle), shepherd, socket)) => {
                let room = KeeperRoom {
                    shepherd,
                    leash,
                    socket,
                    dir,
                    group,
                    memory_bytes: limits.group.memory_bytes,
                    waiting: HashMap::new(),
                    kernels: HashSet::new(),
                    gone: false,
                    ending: None,
                };
                self.rooms.insert(name.to_owned(), room);
                Ok(handle)
            }
            Err(error) => {
                self.end_strays();
                dir.remove();
                self.release(group, None)?;
                Err(error)
            }
        }
    }

    fn populate(
        &self,
        user: Option<u32>,
        limits: &RoomLimits,
        dir: &RoomDir,
        group: &RoomCgroups,
        channel: OwnedFd,
    ) -> Result<(Child, OwnedFd)> {
        let (ours, theirs) = fds::packet_pair()?;
        let doors = group.doors()?;
        let place = RoomPaths::new(self.launch, self.scratch, dir);
        let shepherd = spawn(0, None, || {
            let mut open = vec![theirs.as_raw_fd(), channel.as_raw_fd()];
            open.extend(doors.iter().map(AsRawFd::as_raw_fd));
            fds::close_all_but(&open)?;
            if !self.launch.walled {
                self.trees.give_way(None);
            }
            let flock = Flock {
                place,
                user,
                limits: limits.process.clone(),
                filters: self.filters,
                network: limits.network,
                doors,
            };
            shepherd::watch(&theirs, channel, &flock)
        })
        .during("start the room's first process")?;
        drop(theirs);
        match fds::receive::<FromShepherd>(&ours) {
            Ok(Some((FromShepherd::Ready, _))) => Ok((shepherd, ours)),
            Ok(Some((FromShepherd::Refused { error }, _))) => {
                shepherd.wait()?;
                Err(Error::Child(error))
            }
            _ => {
                shepherd.kill();
                shepherd.wait()?;
                Err(Error::Child("the room exited during its setup".into()))
            }
        }
    }

    fn start_kernel(&mut self, name: &str, request: u64, descriptors: &[OwnedFd]) -> Result<()> {
        let Some(room) = self.rooms.get_mut(name).filter(|room| !room.gone) else {
            return Err(Error::Child(format!("no room `{name}`")));
        };
        self.last_token += 1;
        let ask = ToShepherd::StartKernel {
            token: self.last_token,
        };
        let sent: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        fds::send(&room.socket, &ask, &sent)?;
        room.waiting.insert(self.last_token, request);
        Ok(())
    }

    fn hear(&mut self, name: &str) -> Result<()> {
        let Some(room) = self.rooms.get_mut(name) else {
            return Ok(());
        };
        let Ok(Some((message, descriptors))) = fds::receive::<FromShepherd>(&room.socket) else {
            // Its end arrives as that of a child.
            if !room.gone {
                room.shepherd.wait()?;
                self.shepherd_ended(name)?;
            }
            return Ok(());
        };
        match message {
            FromShepherd::Started { token } => {
                room.kernels.insert(token);
                let Some(request) = room.waiting.remove(&token) else {
                    return Ok(());
                };
                let handles: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
                self.reply(request, Ok(LauncherReply::Kernel { kernel: token }), &handles)
            }
            FromShepherd::Failed { token, error } => match room.waiting.remove(&token) {
                Some(request) => self.reply(request, Err(format!("start a kernel: {error}")), &[]),
                None => Ok(()),
            },
            FromShepherd::Ended { token, status } => {
                room.kernels.remove(&token);
                self.tell(&LauncherEvent::KernelEnded {
                    kernel: token,
                    status,
                })
            }
            FromShepherd::Ready | FromShepherd::Refused { .. } => Ok(()),
        }
    }

    fn reap(&mut self) -> Result<()> {
        clear_child_signals(&self.children);
        while let Some((pid, _)) = reap_one() {
            let found = self
                .rooms
                .iter()
                .find(|(_, room)| !room.gone && room.shepherd.pid == pid);
            if let Some(name) = found.map(|(name, _)| name.clone()) {
                // Its last messages still count.
                while self.says_more(&name) {
                    self.hear(&name)?;
                }
                self.shepherd_ended(&name)?;
            }
        }
        Ok(())
    }

    fn says_more(&self, name: &str) -> bool {
        let Some(room) = self.rooms.get(name) else {
            return false;
        };
        let mut polled = [PollFd::new(&room.socket, PollFlags::IN)];
        let ready = poll(&mut polled, Some(&rustix::event::Timespec::default()));
        ready.is_ok_and(|count| count > 0)
            && polled[0].revents().contains(PollFlags::IN)
            && !polled[0].revents().contains(PollFlags::HUP)
    }

    /// Removes a room whose shepherd has ended; its remaining processes are now children of this
    /// keep.
    fn shepherd_ended(&mut self, name: &str) -> Result<()> {
        let Some(room) = self.rooms.get_mut(name) else {
            return Ok(());
        };
        room.gone = true;
        room.leash = None;
        let kernels = std::mem::take(&mut room.kernels);
        let waiting = std::mem::take(&mut room.waiting);
        self.end_strays();
        for kernel in kernels {
            self.tell(&LauncherEvent::KernelEnded {
                kernel,
                status: KILLED,
            })?;
        }
        for request in waiting.into_values() {
            self.reply(
                request,
                Err("the room exited while its kernel was starting".into()),
                &[],
            )?;
        }
        if self.rooms[name].ending.is_some() {
            self.finish(name)?;
        }
        Ok(())
    }

    /// Ends processes that have lost their shepherd.
    fn end_strays(&self) {
        let living = self.rooms.values().filter(|room| !room.gone);
        let shepherds: Vec<_> = living.map(|room| room.shepherd.pid).collect();
        if !tree::end_own(&shepherds) {
            report("launcher: processes that lost their room did not exit");
        }
    }

    fn finish(&mut self, name: &str) -> Result<()> {
        let Some(room) = self.rooms.remove(name) else {
            return Ok(());
        };
        room.dir.remove();
        self.release(room.group, room.ending)
    }

    /// Removes a room's cgroup, now or soon, and then answers the request to end the room.
    fn release(&mut self, group: RoomCgroups, ending: Option<u64>) -> Result<()> {
        self.busy.push(BusyGroup {
            group,
            ending,
            since: Instant::now(),
        });
        self.remove_groups()
    }

    /// Removes the cgroups of rooms that have ended; the kernel may need a moment to release their processes.
    fn remove_groups(&mut self) -> Result<()> {
        for busy in std::mem::take(&mut self.busy) {
            match self.trees.remove(&busy.group) {
                Err(_) if busy.since.elapsed() < GROUP_LIMIT => self.busy.push(busy),
                removed => {
                    let Some(request) = busy.ending else { continue };
                    let result = removed
                        .map(|()| LauncherReply::Done)
                        .map_err(|error| chain(&error));
                    self.reply(request, result, &[])?;
                }
            }
        }
        Ok(())
    }

    fn reply(
        &self,
        id: u64,
        result: Result<LauncherReply, String>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<()> {
        fds::send(self.control, &LauncherEvent::Reply { id, result }, descriptors)
    }

    fn tell(&self, event: &LauncherEvent) -> Result<()> {
        fds::send(self.control, event, &[])
    }
}

fn is_readable(fd: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}
