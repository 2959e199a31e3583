//! The first process of the keep: it creates and ends rooms, requests kernels from the template,
//! and reaps processes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use cellblock_jail::error::{SyscallResult, chain};
use cellblock_jail::ids::ROOM_USER;
use cellblock_jail::process::{child_signals, clear_child_signals, reap_one, report, spawn};
use cellblock_jail::room::{Room, RoomLimits, Rooms};
use cellblock_jail::seccomp::staged::CompiledFilters;
use cellblock_jail::{Error, Result, fds};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::adopt;
use super::control::{FrozenOrder, Launch, LauncherEvent, LauncherReply, LauncherRequest, Operation};
use super::template::{FromTemplate, Template, ToTemplate, command_environment};
use super::transfer::{self, Move, MoveError, Process};
use crate::init;

/// Minimum lifetime of a template; one that ends sooner counts as failed.
const TEMPLATE_MIN_LIFE: Duration = Duration::from_secs(2);
/// Number of templates that may fail in a row before the next one is delayed.
const TEMPLATE_TRIES: u32 = 3;
/// Duration of that delay; the template starts with the first request after it.
const TEMPLATE_PAUSE: Duration = Duration::from_secs(1);
/// Maximum time in which a frozen template reports to be ready, which takes some milliseconds.
const THAW_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of requests that a template may have at once. More would fill its socket while it
/// imports or forks, and a keep that waits for space in that socket cannot serve other requests. The
/// limit also keeps the descriptors in flight below an ordinary user's maximum.
const AT_TEMPLATE: usize = 16;

/// Channel, stdout, stderr and spare channel of a kernel.
const KERNEL_DESCRIPTORS: usize = 4;

/// The keep's state, owned by this one process.
#[derive(Debug)]
pub(super) struct Keeper<'a> {
    control: &'a OwnedFd,
    launch: &'a Launch,
    filters: &'a CompiledFilters,
    rooms: Rooms<'a>,
    open: HashMap<String, (Room, RoomLimits)>,
    /// Killed rooms that are not yet reaped, by the pid of their init, with the request to answer.
    ending: HashMap<i32, (Room, u64)>,
    /// Rooms whose first process exited on its own, and which the host has not destroyed yet.
    gone: HashSet<String>,
    template: Option<Template>,
    /// Whether the template comes from a file and has not reported to be ready.
    thawing: bool,
    template_started: Instant,
    template_failures: u32,
    /// Error of the last template that could not start.
    template_problem: Option<String>,
    /// Requests sent to the template, by token.
    waiting: HashMap<u64, u64>,
    /// Requests that wait until the template has fewer.
    queued: VecDeque<KernelStart>,
    /// Kernels by pid.
    kernels: HashMap<i32, u64>,
    /// Processes that move kernels, by pid, with the requests that they answer.
    moving: HashMap<i32, u64>,
    last_token: u64,
    children: OwnedFd,
}

/// A request for a kernel.
#[derive(Debug)]
struct KernelStart {
    room: String,
    request: u64,
    descriptors: Vec<OwnedFd>,
}

impl<'a> Keeper<'a> {
    /// Takes over the keep and starts its template.
    pub(super) fn new(
        control: &'a OwnedFd,
        launch: &'a Launch,
        filters: &'a CompiledFilters,
        rooms: Rooms<'a>,
    ) -> Result<Self> {
        let (template, thawing) = match &launch.frozen {
            Some(FrozenOrder::Thaw(place)) => (Template::thaw(launch, place)?, true),
            _ => (Template::start(launch, filters, false)?, false),
        };
        Ok(Self {
            control,
            launch,
            filters,
            rooms,
            open: HashMap::new(),
            ending: HashMap::new(),
            gone: HashSet::new(),
            template: Some(template),
            thawing,
            template_started: Instant::now(),
            template_failures: 0,
            template_problem: None,
            waiting: HashMap::new(),
            queued: VecDeque::new(),
            kernels: HashMap::new(),
            moving: HashMap::new(),
            last_token: 0,
            children: child_signals()?,
        })
    }

    /// Serves until the host closes the socket.
    pub(super) fn serve(mut self) -> Result<()> {
        loop {
            let (from_host, from_template, child) = self.wait()?;
            if child {
                self.reap()?;
            }
            if from_template {
                self.hear_template()?;
            } else if self.thawing && self.template_started.elapsed() > THAW_LIMIT {
                self.replace_template()?;
            }
            self.start_queued()?;
            if from_host {
                let Some((request, descriptors)) = fds::receive::<LauncherRequest>(self.control)? else {
                    return Ok(());
                };
                self.answer(&request, descriptors)?;
            }
        }
    }

    fn wait(&self) -> Result<(bool, bool, bool)> {
        let mut polled = vec![
            PollFd::new(self.control, PollFlags::IN),
            PollFd::new(&self.children, PollFlags::IN),
        ];
        if let Some(template) = &self.template {
            polled.push(PollFd::new(&template.socket, PollFlags::IN));
        }
        let thaw = self
            .thawing
            .then(|| THAW_LIMIT.saturating_sub(self.template_started.elapsed()) + Duration::from_millis(1));
        let timeout = [self.pause(), thaw]
            .into_iter()
            .flatten()
            .min()
            .map(|left| Timespec::try_from(left).unwrap_or_default());
        loop {
            match poll(&mut polled, timeout.as_ref()) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).during("wait for work"),
            }
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        Ok((ready[0], ready.get(2).copied().unwrap_or(false), ready[1]))
    }

    fn answer(&mut self, request: &LauncherRequest, descriptors: Vec<OwnedFd>) -> Result<()> {
        let result = match &request.operation {
            Operation::CreateRoom { room, slot, limits } => {
                return match self.create_room(room, *slot, limits, descriptors) {
                    Ok(()) => {
                        let init = self.open[room].0.init.pidfd.as_ref().map(AsFd::as_fd);
                        self.reply(request.id, Ok(LauncherReply::Done), init.as_slice())
                    }
                    Err(error) => self.reply(request.id, Err(chain(&error)), &[]),
                };
            }
            Operation::StartKernel { room } => {
                self.queued.push_back(KernelStart {
                    room: room.clone(),
                    request: request.id,
                    descriptors,
                });
                return self.start_queued();
            }
            Operation::AdoptKernel { room, pid } => match self.adopt_kernel(room, *pid) {
                Ok((kernel, pidfd)) => {
                    return self.reply(request.id, Ok(LauncherReply::Kernel { kernel }), &[pidfd.as_fd()]);
                }
                Err(error) => Err(chain(&error)),
            },
            Operation::FindProcess { room, pid } => {
                let found = self.open.get(room).map(|(room, _)| adopt::find(room, *pid));
                match found {
                    Some(Ok((_, pidfd))) => {
                        return self.reply(request.id, Ok(LauncherReply::Done), &[pidfd.as_fd()]);
                    }
                    Some(Err(error)) => Err(chain(&error)),
                    None => Err(format!("no room `{room}`")),
                }
            }
            Operation::MoveKernel {
                room,
                pid,
                socket,
                into,
                target,
            } => match self.move_kernel(request.id, (room, *pid, *socket), (into, *target), descriptors) {
                Ok(()) => return Ok(()),
                Err(error) => Err(chain(&error)),
            },
            Operation::MountData { room, name } => self
                .mount_data(room, name, &descriptors)
                .map(|()| LauncherReply::Done)
                .map_err(|error| chain(&error)),
            Operation::DestroyRoom { room: name } => match self.open.remove(name) {
                Some((room, _)) if self.gone.remove(name) => return self.finish(&room, request.id),
                Some((room, _)) => {
                    room.init.kill();
                    self.ending.insert(room.init.pid, (room, request.id));
                    return Ok(());
                }
                None => Ok(LauncherReply::Done),
            },
            Operation::Usage { room } => match self.open.get(room) {
                Some((room, _)) => Ok(LauncherReply::Usage(room.usage())),
                None => Err(format!("no room `{room}`")),
            },
            Operation::NameHost { name } => self
                .name_host(name)
                .map(|()| LauncherReply::Done)
                .map_err(|error| format!("set the host name `{name}`: {}", chain(&error))),
        };
        self.reply(request.id, result, &[])
    }

    /// Sets the host name of all rooms: of those that are open, and through the keep's own of those to come.
    fn name_host(&self, name: &str) -> Result<()> {
        rustix::system::sethostname(name.as_bytes()).during("set the keep's host name")?;
        self.open.values().try_for_each(|(room, _)| room.name_host(name))
    }

    fn create_room(
        &mut self,
        name: &str,
        slot: u32,
        limits: &RoomLimits,
        descriptors: Vec<OwnedFd>,
    ) -> Result<()> {
        let [channel] = <[OwnedFd; 1]>::try_from(descriptors)
            .map_err(|_| Error::Child("creating a room requires one descriptor".into()))?;
        let keep_open = [channel.as_raw_fd()];
        let environment = command_environment(self.launch);
        let room = self.rooms.create(name, slot, limits, &keep_open, |inside| {
            init::serve(channel, inside, &environment)
        })?;
        self.open.insert(name.to_owned(), (room, limits.clone()));
        Ok(())
    }

    /// Sends as many queued requests as the template may have.
    fn start_queued(&mut self) -> Result<()> {
        // If thawing fails, these requests wait for the template that imports.
        if self.thawing || self.pause().is_some_and(|left| !left.is_zero()) {
            return Ok(());
        }
        if self.template.is_none() && !self.queued.is_empty() {
            self.start_template();
        }
        while self.waiting.len() < AT_TEMPLATE {
            let Some(start) = self.queued.pop_front() else {
                break;
            };
            if let Err(error) = self.start_kernel(&start) {
                self.reply(start.request, Err(chain(&error)), &[])?;
            }
        }
        Ok(())
    }

    /// Returns how long queued requests still wait for the next template; `None` if none waits for
    /// one. Zero once the time has passed: it may pass while another request is answered, and
    /// nothing else would wake this process.
    fn pause(&self) -> Option<Duration> {
        let left = TEMPLATE_PAUSE.saturating_sub(self.template_started.elapsed());
        (self.template.is_none() && !self.queued.is_empty()).then_some(left)
    }

    fn start_kernel(&mut self, start: &KernelStart) -> Result<()> {
        let KernelStart {
            room,
            request,
            descriptors,
        } = start;
        let Some((room, limits)) = self.open.get(room).filter(|_| !self.gone.contains(room)) else {
            return Err(Error::Child(format!("room `{room}` is gone")));
        };
        if descriptors.len() != KERNEL_DESCRIPTORS {
            return Err(Error::Child(
                "the kernel's channels did not arrive: too many open files; raise the limit (`ulimit -n`)"
                    .into(),
            ));
        }
        let Some(template) = &self.template else {
            return Err(Error::Child(
                "the template has ended and cannot be restarted yet; try again later".into(),
            ));
        };
        self.last_token += 1;
        let doors = room.doors()?;
        let ask = ToTemplate::Spawn {
            token: self.last_token,
            user: ROOM_USER,
            own_id: self.launch.ids.is_own(),
            rules: room.rules.is_some(),
            limits: limits.process.clone(),
            network: limits.network,
        };
        let mut sent: Vec<BorrowedFd<'_>> = room.namespaces.iter().map(AsFd::as_fd).collect();
        sent.extend(descriptors.iter().map(AsFd::as_fd));
        sent.extend(room.rules.iter().map(AsFd::as_fd));
        sent.extend(doors.iter().map(AsFd::as_fd));
        fds::send(&template.socket, &ask, &sent)?;
        self.waiting.insert(self.last_token, *request);
        Ok(())
    }

    /// The pid comes from inside the room: it may name any process of the room, but no other.
    fn adopt_kernel(&mut self, room: &str, pid: u32) -> Result<(u64, OwnedFd)> {
        let Some((room, _)) = self.open.get(room) else {
            return Err(Error::Child(format!("no room `{room}`")));
        };
        let (pid, pidfd) = adopt::find(room, pid)?;
        self.last_token += 1;
        self.kernels.insert(pid, self.last_token);
        if let Some(template) = &self.template {
            // A process that has just ended leaves its children to this one, which reports their
            // ends itself.
            let _ = fds::send(&template.socket, &ToTemplate::Adopt { pid }, &[]);
        }
        Ok((self.last_token, pidfd))
    }

    /// Starts a process that moves a kernel and answers the request: it may take a while. Pids come
    /// from inside the rooms: each may name any process of its room, but no other.
    fn move_kernel(
        &mut self,
        request: u64,
        (room, pid, socket): (&str, u32, u32),
        (into, target): (&str, u32),
        descriptors: Vec<OwnedFd>,
    ) -> Result<()> {
        let find = |name: &str, inside| {
            let Some((room, _)) = self.open.get(name) else {
                return Err(Error::Child(format!("no room `{name}`")));
            };
            let (pid, pidfd) = adopt::find(room, inside)?;
            Ok(Process { pid, pidfd, inside })
        };
        let order = Move {
            from: find(room, pid)?,
            to: find(into, target)?,
            socket,
            pagemaps: <[OwnedFd; 2]>::try_from(descriptors).ok(),
        };
        let mover = spawn(0, None, || {
            let mut open = vec![
                self.control.as_raw_fd(),
                order.from.pidfd.as_raw_fd(),
                order.to.pidfd.as_raw_fd(),
            ];
            open.extend(order.pagemaps.iter().flatten().map(AsRawFd::as_raw_fd));
            fds::close_all_but(&open)?;
            let moved = match transfer::run(&order) {
                Ok(()) => Ok(LauncherReply::Done),
                Err(MoveError::Obstacle(obstacle)) => Ok(LauncherReply::Immovable(obstacle)),
                Err(MoveError::Failed(error)) => Err(chain(&error)),
            };
            self.reply(request, moved, &[])
        })
        .during("start what moves a kernel")?;
        self.moving.insert(mover.pid, request);
        Ok(())
    }

    fn mount_data(&self, room: &str, name: &str, descriptors: &[OwnedFd]) -> Result<()> {
        let Some((room, _)) = self.open.get(room).filter(|_| !self.gone.contains(room)) else {
            return Err(Error::Child(format!("room `{room}` is gone")));
        };
        let [mount] = descriptors else {
            return Err(Error::Child("the mount did not arrive".into()));
        };
        room.mount_data(mount, name)
    }

    fn hear_template(&mut self) -> Result<()> {
        let Some(template) = &self.template else {
            return Ok(());
        };
        let Some((message, _)) = fds::receive::<FromTemplate>(&template.socket)? else {
            return self.replace_template();
        };
        self.hear(message)?;
        self.start_queued()
    }

    fn hear(&mut self, message: FromTemplate) -> Result<()> {
        match message {
            FromTemplate::Ready { failed, import_ms } => {
                self.thawing = false;
                self.tell(&LauncherEvent::TemplateReady { failed, import_ms })
            }
            FromTemplate::Spawned { token, pid } => {
                self.kernels.insert(pid, token);
                self.rooms.trees.give_way(rustix::process::Pid::from_raw(pid));
                let Some(request) = self.waiting.remove(&token) else {
                    return Ok(());
                };
                let opened = rustix::process::Pid::from_raw(pid)
                    .ok_or(rustix::io::Errno::SRCH)
                    .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()));
                match opened {
                    Ok(pidfd) => self.reply(
                        request,
                        Ok(LauncherReply::Kernel { kernel: token }),
                        &[pidfd.as_fd()],
                    ),
                    Err(_) => self.reply(
                        request,
                        Err("the kernel exited while it was starting".into()),
                        &[],
                    ),
                }
            }
            FromTemplate::Failed { token, error } => match self.waiting.remove(&token) {
                Some(request) => self.reply(request, Err(format!("fork a kernel: {error}")), &[]),
                None => Ok(()),
            },
            FromTemplate::Still { .. } => Ok(()),
            FromTemplate::Broken { error } => {
                self.template_problem = Some(error);
                Ok(())
            }
            FromTemplate::Ended { pid, status } => self.kernel_ended(pid, status),
        }
    }

    /// Starts another template. Kernels survive their template; only its unanswered requests are
    /// lost.
    fn replace_template(&mut self) -> Result<()> {
        let Some(template) = self.template.take() else {
            return Ok(());
        };
        template.child.kill();
        for request in std::mem::take(&mut self.waiting).into_values() {
            self.reply(
                request,
                Err("the template exited before it forked the kernel; try again".into()),
                &[],
            )?;
        }
        if std::mem::take(&mut self.thawing) {
            let reason = self.template_problem.take();
            let reason = reason.unwrap_or_else(|| "it ended before it was ready".into());
            self.tell(&LauncherEvent::NotThawed { reason })?;
            self.start_template();
            return self.start_queued();
        }
        let failed = self.template_started.elapsed() < TEMPLATE_MIN_LIFE;
        self.template_failures = if failed { self.template_failures + 1 } else { 0 };
        self.tell(&LauncherEvent::TemplateEnded)?;
        if self.template_failures < TEMPLATE_TRIES {
            self.start_template();
        } else {
            report(
                "launcher: the template repeatedly exited immediately after its start; delaying the next one",
            );
            let reason = self.template_problem.take();
            let reason =
                reason.unwrap_or_else(|| "the template repeatedly exited immediately after its start".into());
            self.tell(&LauncherEvent::TemplateFailed { reason })?;
        }
        self.start_queued()
    }

    /// Starts a template. A machine may lack processes or memory only temporarily, so a failure
    /// must not end running kernels.
    fn start_template(&mut self) {
        self.template_started = Instant::now();
        match Template::start(self.launch, self.filters, false) {
            Ok(template) => self.template = Some(template),
            Err(error) => {
                let problem = chain(&error);
                report(&format!("launcher: {problem}"));
                self.template_problem = Some(problem);
            }
        }
    }

    fn kernel_ended(&mut self, pid: i32, status: i32) -> Result<()> {
        match self.kernels.remove(&pid) {
            Some(kernel) => self.tell(&LauncherEvent::KernelEnded { kernel, status }),
            None => Ok(()),
        }
    }

    /// Reaps every child that has ended: rooms, templates, and orphans.
    fn reap(&mut self) -> Result<()> {
        clear_child_signals(&self.children);
        while let Some((pid, status)) = reap_one() {
            if let Some((room, request)) = self.ending.remove(&pid) {
                self.finish(&room, request)?;
            } else if let Some(request) = self.moving.remove(&pid) {
                if status != 0 {
                    self.reply(
                        request,
                        Err("what moved a kernel ended before it was done".into()),
                        &[],
                    )?;
                }
            } else if let Some(room) = self.room_of(pid) {
                self.gone.insert(room);
            } else {
                self.kernel_ended(pid, status)?;
            }
        }
        Ok(())
    }

    /// Returns the room whose first process has just ended. Pids are reused, so rooms that no
    /// longer have one are ignored.
    fn room_of(&self, pid: i32) -> Option<String> {
        let mut open = self.open.iter();
        open.find(|(name, (room, _))| room.init.pid == pid && !self.gone.contains(*name))
            .map(|(name, _)| name.clone())
    }

    fn finish(&self, room: &Room, request: u64) -> Result<()> {
        let result = self.rooms.remove_groups(room).map(|()| LauncherReply::Done);
        self.reply(request, result.map_err(|error| chain(&error)), &[])
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
