//! The shepherd: the first process of a room without namespaces. It starts the room's guest and
//! kernels, reaps their orphans, and ends all of them. User code cannot affect it: it runs as the
//! keep's user and outside the room's rules.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use cellblock_jail::bare::BareRoom;
use cellblock_jail::cgroup::enter as enter_group;
use cellblock_jail::confine::{ProcessLimits, hide};
use cellblock_jail::error::{SyscallResult, chain};
use cellblock_jail::network::NetworkPolicy;
use cellblock_jail::process::{Child, child_signals, clear_child_signals, reap_one, spawn};
use cellblock_jail::room::RoomHandles;
use cellblock_jail::seccomp::Filters;
use cellblock_jail::walled::{self, Leash};
use cellblock_jail::{Error, Result, fds, tree};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, set_child_subreaper, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::kernel::RoomPaths;
use crate::init;

/// Token of a launcher's first kernel.
const FIRST: u64 = 1;

/// Parts of a room.
#[derive(Debug)]
pub(super) struct RoomParts<'a> {
    pub(super) place: RoomPaths,
    pub(super) user: Option<u32>,
    pub(super) limits: ProcessLimits,
    pub(super) filters: &'a Filters,
    pub(super) network: NetworkPolicy,
    /// Files through which its processes join its cgroups.
    pub(super) doors: Vec<OwnedFd>,
}

/// A request from the keep.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToShepherd {
    /// Starts a kernel. Descriptors: its channel, stdout and stderr.
    StartKernel {
        /// Repeated in the response.
        token: u64,
    },
    /// Kills the kernels with everything that they started, because memory is exhausted.
    EndKernels,
    /// Ends everything in the room.
    End,
}

/// A message from a shepherd.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromShepherd {
    /// The guest runs.
    Ready,
    /// The guest failed to start.
    Refused {
        /// The reason.
        error: String,
    },
    /// A kernel runs. Descriptor: its handle.
    Started {
        /// Token of the request.
        token: u64,
    },
    /// A kernel failed to start.
    Failed {
        /// Token of the request.
        token: u64,
        /// The reason.
        error: String,
    },
    /// A kernel ended, with everything that it had started.
    Ended {
        /// Token of the request.
        token: u64,
        /// Raw wait status.
        status: i32,
    },
}

/// Runs a room until the keep closes the socket, the guest exits, or the keep requests its end.
pub(super) fn watch(keep: &OwnedFd, channel: OwnedFd, room: &RoomParts<'_>) -> Result<()> {
    match start(channel, room) {
        Ok(shepherd) => {
            fds::send(keep, &FromShepherd::Ready, &[])?;
            let served = shepherd.serve(keep, room);
            tree::end_own(&[]);
            served
        }
        Err(error) => {
            let refused = FromShepherd::Refused { error: chain(&error) };
            fds::send(keep, &refused, &[])?;
            Err(error)
        }
    }
}

fn start(channel: OwnedFd, room: &RoomParts<'_>) -> Result<Shepherd> {
    set_parent_process_death_signal(Some(Signal::KILL)).during("tie the room to its keep")?;
    set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
    rustix::process::setsid().during("leave the keep's session")?;
    rustix::thread::set_name(c"cellblock-room").during("name the room")?;
    hide()?;
    let children = child_signals()?;
    let guest = start_guest(channel, room)?;
    Ok(Shepherd {
        children,
        guest,
        kernels: Vec::new(),
    })
}

#[derive(Debug)]
struct Shepherd {
    children: OwnedFd,
    guest: Child,
    kernels: Vec<Kernel>,
}

#[derive(Debug)]
struct Kernel {
    token: u64,
    child: Child,
    /// Replaces its handle inside a wall.
    leash: Option<Leash>,
}

impl Shepherd {
    fn serve(mut self, keep: &OwnedFd, room: &RoomParts<'_>) -> Result<()> {
        loop {
            let mut polled = vec![
                PollFd::new(keep, PollFlags::IN),
                PollFd::new(&self.children, PollFlags::IN),
            ];
            let leashes = self.kernels.iter().filter_map(|kernel| kernel.leash.as_ref());
            polled.extend(leashes.map(|leash| PollFd::new(leash, PollFlags::IN)));
            match poll(&mut polled, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error).during("wait for work"),
            }
            let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            // First, while no child is reaped.
            self.obey(&ready[2..]);
            if ready[1] && self.reap(keep)? {
                return Ok(());
            }
            if ready[0] {
                match fds::receive::<ToShepherd>(keep)? {
                    Some((ToShepherd::StartKernel { token }, descriptors)) => {
                        self.start_kernel(keep, room, token, descriptors)?;
                    }
                    Some((ToShepherd::EndKernels, _)) => {
                        tree::end_own(&[self.guest.pid]);
                    }
                    Some((ToShepherd::End, _)) | None => return Ok(()),
                }
            }
        }
    }

    /// Passes signals on that arrived through leashes.
    fn obey(&mut self, ready: &[bool]) {
        let leashed = self.kernels.iter_mut().filter(|kernel| kernel.leash.is_some());
        for (kernel, _) in leashed.zip(ready).filter(|(_, ready)| **ready) {
            let pid = kernel.child.pid;
            kernel.leash.take_if(|leash| !leash.pull(pid));
        }
    }

    fn start_kernel(
        &mut self,
        keep: &OwnedFd,
        room: &RoomParts<'_>,
        token: u64,
        descriptors: Vec<OwnedFd>,
    ) -> Result<()> {
        // The last one is for a standby, which exists only if kernel and standby are forked from a
        // template.
        let started = <[OwnedFd; 4]>::try_from(descriptors)
            .map_err(|_| Error::Child("starting a kernel requires four descriptors".into()))
            .and_then(|[channel, stdout, stderr, _]| start_kernel(room, token, [channel, stdout, stderr]))
            .and_then(|child| Ok((walled::handle(&child)?, child)));
        match started {
            Ok(((leash, handle), child)) => {
                fds::send(keep, &FromShepherd::Started { token }, &[handle.as_fd()])?;
                self.kernels.push(Kernel { token, child, leash });
                Ok(())
            }
            Err(error) => {
                let error = chain(&error);
                fds::send(keep, &FromShepherd::Failed { token, error }, &[])
            }
        }
    }

    /// Reaps ended processes; returns whether the guest is among them.
    fn reap(&mut self, keep: &OwnedFd) -> Result<bool> {
        clear_child_signals(&self.children);
        while let Some((pid, status)) = reap_one() {
            if pid == self.guest.pid {
                return Ok(true);
            }
            if let Some(index) = self.kernels.iter().position(|kernel| kernel.child.pid == pid) {
                let Kernel { token, .. } = self.kernels.swap_remove(index);
                // Its processes must not meet the next kernel.
                let mut spared: Vec<_> = self.kernels.iter().map(|kernel| kernel.child.pid).collect();
                spared.push(self.guest.pid);
                tree::end_own(&spared);
                fds::send(keep, &FromShepherd::Ended { token, status }, &[])?;
            }
        }
        Ok(false)
    }
}

impl RoomParts<'_> {
    fn confine(&self, join: bool) -> Result<Option<OwnedFd>> {
        enter_group(&self.doors)?;
        BareRoom {
            dir: &self.place.dir,
            readable: &self.place.readable,
            user: self.user,
            limits: &self.limits,
            filters: self.filters,
            network: self.network,
        }
        .confine(join)
    }
}

fn start_guest(channel: OwnedFd, room: &RoomParts<'_>) -> Result<Child> {
    spawn(0, None, || {
        let mut open = vec![channel.as_raw_fd()];
        open.extend(room.doors.iter().map(AsRawFd::as_raw_fd));
        fds::close_all_but(&open)?;
        // Orphans of commands are reaped too.
        set_child_subreaper(Some(rustix::process::getpid())).during("collect orphans")?;
        // The room's user cannot enter its directory.
        let opened = walled::is_declared().then(|| open_data(room)).transpose()?;
        let rules = room.confine(false)?;
        hide()?;
        rustix::thread::set_name(c"cellblock-guest").during("name the guest")?;
        let inside = RoomHandles {
            data: opened.map_or_else(|| open_data(room), Ok)?,
            rules,
            dir: Some(room.place.dir.clone()),
            network: room.network,
        };
        init::serve(channel, inside, &room.place.environment)
    })
    .during("start the guest")
}

fn open_data(room: &RoomParts<'_>) -> Result<OwnedFd> {
    let data = room.place.dir.data_source();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(&data, flags, Mode::empty()).during_on("open", &data)
}

fn start_kernel(room: &RoomParts<'_>, token: u64, [channel, stdout, stderr]: [OwnedFd; 3]) -> Result<Child> {
    spawn(0, None, || {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()).during("open /dev/null")?;
        fds::place(null, 0)?;
        fds::place(stdout, 1)?;
        fds::place(stderr, 2)?;
        let mut open = vec![channel.as_raw_fd()];
        open.extend(room.doors.iter().map(AsRawFd::as_raw_fd));
        fds::close_all_but(&open)?;
        rustix::process::setsid().during("make a session")?;
        drop(room.confine(true)?);
        fds::close_all_but(&[channel.as_raw_fd()])?;
        fds::place(channel, super::kernel::CHANNEL)?;
        fds::close_all_but(&[super::kernel::CHANNEL])?;
        Err(room.place.execute(token == FIRST))
    })
    .during("start the kernel")
}
