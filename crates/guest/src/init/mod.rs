//! The guest: the first process of a room. It reaps orphans, runs commands, and serves files to the
//! host.
//!
//! It is deliberately small: it has one thread, and user code can only cause the allocations for
//! file lists and reads, which are bounded. User code has the same user id, so the guest hides
//! itself from `ptrace` and `/proc` before anything else runs in the room. As the first process of
//! its pid namespace, it cannot be killed from inside.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use cellblock_jail::Result;
use cellblock_jail::error::SyscallResult;
use cellblock_jail::network::NetworkPolicy;
use cellblock_jail::process::{ProcessEnd, child_signals, clear_child_signals, reap_one};
use cellblock_jail::room::RoomHandles;
use cellblock_jail::scratch::RoomDir;
use cellblock_jail::tree;
use cellblock_protocol::{FromGuest, GENERATION, Stream, ToGuest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};

use channel::Channel;
use command::{Command, CommandExit, Order};
use connections::Connections;
use kept::Waiter;
use log::Log;
use path::{Refusal, Roots};
use snapshots::{Differences, Snapshots};

mod channel;
mod command;
mod connections;
mod feed;
mod files;
mod kept;
mod kill;
mod list;
mod log;
mod path;
mod snapshots;
mod stats;
mod streams;
mod warden;

/// Maximum number of output bytes in one frame.
const CHUNK: usize = 64 * 1024;
/// Maximum time that `kill_all` waits for processes to exit.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// First and maximum pause between two looks at a killed process.
const KILL_PAUSE: Duration = Duration::from_micros(50);
const MAX_KILL_PAUSE: Duration = Duration::from_millis(1);

/// Serves the host until it closes the channel. The room ends on return.
///
/// `environment` is the base environment of commands, as `NAME=value`.
pub fn serve(channel: OwnedFd, inside: RoomHandles, environment: &[String]) -> Result<()> {
    let mut guest = Guest {
        channel: Channel::new(channel),
        roots: Roots::open(inside.data, inside.dir.as_ref()).during("open the room's directories")?,
        rules: inside.rules,
        dir: inside.dir,
        network: inside.network,
        children: child_signals()?,
        commands: Vec::new(),
        waiters: Vec::new(),
        connections: Connections::default(),
        snapshots: Snapshots::default(),
        stopped: Vec::new(),
        environment: environment
            .iter()
            .filter_map(|variable| variable.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    };
    guest.channel.send(
        &FromGuest::Hello {
            generation: GENERATION,
        },
        &[],
    )?;
    guest.run()
}

#[derive(Debug)]
struct Guest {
    channel: Channel,
    roots: Roots,
    rules: Option<OwnedFd>,
    /// Directory of a room without namespaces. In this case the guest is not the room's first
    /// process, and its file systems are the machine's.
    dir: Option<RoomDir>,
    network: NetworkPolicy,
    children: OwnedFd,
    commands: Vec<Command>,
    waiters: Vec<Waiter>,
    connections: Connections,
    snapshots: Snapshots,
    /// Processes that a rollback has stopped.
    stopped: Vec<i32>,
    environment: BTreeMap<String, String>,
}

impl Guest {
    fn run(&mut self) -> Result<()> {
        loop {
            let (host, child) = self.wait()?;
            if child {
                self.reap();
            }
            self.pump()?;
            self.answer_waiters()?;
            self.pump_connections()?;
            if host {
                let Some((message, blobs)) = self.channel.receive()? else {
                    return Ok(());
                };
                self.answer(message, &blobs)?;
            }
        }
    }

    fn wait(&self) -> Result<(bool, bool)> {
        let mut polled = vec![
            PollFd::new(&self.channel, PollFlags::IN),
            PollFd::new(&self.children, PollFlags::IN),
        ];
        for command in &self.commands {
            polled.extend(
                command
                    .pipes()
                    .map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)),
            );
            polled.extend(
                command
                    .feed
                    .waiting()
                    .map(|pipe| PollFd::new(pipe, PollFlags::OUT)),
            );
        }
        polled.extend(self.connections.awaited());
        let left = self.commands.iter().filter_map(Command::left);
        let nearest = left.chain(self.patience()).min();
        let timeout = nearest.map(|left| Timespec::try_from(left).unwrap_or_default());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).during("wait for work"),
        }
        Ok((!polled[0].revents().is_empty(), !polled[1].revents().is_empty()))
    }

    fn answer(&mut self, message: ToGuest, blobs: &[Vec<u8>]) -> Result<()> {
        match message {
            ToGuest::Interrupt { pid } => {
                // Pid 1 is this process, and processes outside the room have no pid here.
                let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1);
                if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
                }
                Ok(())
            }
            ToGuest::KillStopped => {
                kill::each(&std::mem::take(&mut self.stopped));
                Ok(())
            }
            ToGuest::KillAll { request, except } => {
                let done = self.kill_all(&except);
                self.finish(request, done)
            }
            ToGuest::Exec {
                exec,
                argv,
                cwd,
                env,
                inherit,
                timeout_ms,
                input,
                keep,
                terminal,
            } => {
                let order = Order {
                    argv,
                    cwd: self.dir.as_ref().map_or(cwd.clone().into(), |dir| dir.real(&cwd)),
                    env: self.environment_of(env, inherit),
                    timeout: Duration::from_millis(timeout_ms),
                    input,
                    terminal,
                };
                if keep.is_some() && !order.cwd.is_dir() {
                    // Its warden would only find that out once the host believes that it has started.
                    let reason = format!("its working directory `{cwd}` does not exist");
                    return self.refuse(exec, Refusal::new("start", reason));
                }
                self.exec(exec, &order, keep)
            }
            ToGuest::Stop { .. }
            | ToGuest::Signal { .. }
            | ToGuest::Input { .. }
            | ToGuest::Resize { .. }
            | ToGuest::Output { .. }
            | ToGuest::Forget { .. } => self.answer_about_command(&message, blobs),
            ToGuest::Ports { .. }
            | ToGuest::Connect { .. }
            | ToGuest::Listen { .. }
            | ToGuest::Accept { .. }
            | ToGuest::Receive { .. }
            | ToGuest::Send { .. }
            | ToGuest::HangUp { .. } => self.answer_about_connection(&message, blobs),
            ToGuest::List {
                request,
                root,
                since,
                max_files,
            } => self.list(request, &root, since, max_files),
            ToGuest::Read {
                request,
                path,
                offset,
                length,
            } => self.read(request, &path, offset, length),
            ToGuest::Write {
                request,
                path,
                mode,
                append,
                keep,
                expect,
            } => {
                let content = blobs.first().map_or(&[][..], Vec::as_slice);
                let done = if append {
                    files::append(&self.roots, &path, mode, content)
                } else {
                    files::replace(&self.roots, &path, mode, files::Terms { keep, expect }, content)
                };
                self.finish(request, done)
            }
            ToGuest::Remove { request, path } => {
                let done = files::remove(&self.roots, &path);
                self.finish(request, done)
            }
            ToGuest::Save { .. }
            | ToGuest::Restore { .. }
            | ToGuest::RollBack { .. }
            | ToGuest::Changes { .. }
            | ToGuest::ReadSnapshot { .. }
            | ToGuest::WriteSnapshot { .. }
            | ToGuest::Discard { .. } => self.answer_about_snapshot(&message, blobs),
            ToGuest::Stats { request } => self
                .channel
                .send(&stats::message(request, self.has_file_systems()), &[]),
        }
    }

    fn answer_about_snapshot(&mut self, message: &ToGuest, blobs: &[Vec<u8>]) -> Result<()> {
        match *message {
            ToGuest::Save {
                request,
                snapshot,
                limit,
            } => self.save(request, snapshot, limit),
            ToGuest::Restore { request, snapshot } => {
                let done = self.snapshots.restore(&self.roots, snapshot);
                self.finish(request, done)
            }
            ToGuest::RollBack {
                request,
                snapshot,
                needed,
                ref except,
            } => {
                let done = self.roll_back(snapshot, needed, except);
                self.finish(request, done)
            }
            ToGuest::Changes {
                request,
                snapshot,
                most,
            } => match self.snapshots.changes(&self.roots, snapshot, most) {
                Ok(Differences { found, total, .. }) => {
                    let changes = FromGuest::Changes {
                        request,
                        found,
                        total,
                    };
                    self.channel.send(&changes, &[])
                }
                Err(refusal) => self.refuse(request, refusal),
            },
            ToGuest::ReadSnapshot {
                request,
                snapshot,
                offset,
                length,
            } => match self.snapshots.read(snapshot, offset, length) {
                Ok((part, eof)) => {
                    let stamp = None;
                    self.channel
                        .send(&FromGuest::Content { request, eof, stamp }, &[&part])
                }
                Err(refusal) => self.refuse(request, refusal),
            },
            ToGuest::WriteSnapshot {
                request,
                snapshot,
                last,
            } => {
                let part = blobs.first().map_or(&[][..], Vec::as_slice);
                let done = self.snapshots.write(snapshot, part, last);
                self.finish(request, done)
            }
            ToGuest::Discard { request, snapshot } => {
                self.snapshots.remove(snapshot);
                self.finish(request, Ok(()))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the room's directories are file systems with limits of their own.
    fn has_file_systems(&self) -> bool {
        self.dir.as_ref().is_none_or(RoomDir::is_usual)
    }

    /// Returns the variables of a command, which may come on top of those of every command.
    fn environment_of(&self, own: BTreeMap<String, String>, inherit: bool) -> Vec<(String, String)> {
        let mut all = if inherit {
            self.environment.clone()
        } else {
            BTreeMap::new()
        };
        all.extend(own);
        all.into_iter().collect()
    }

    fn list(&mut self, request: u64, root: &str, since: Option<u64>, most: u32) -> Result<()> {
        let stamp = list::stamp();
        match list::list(&self.roots, root, since.unwrap_or(0), most) {
            Ok(listing) => self.channel.send(&listing.into_message(request, stamp), &[]),
            Err(refusal) => self.refuse(request, refusal),
        }
    }

    fn save(&mut self, request: u64, snapshot: u64, limit: u64) -> Result<()> {
        if let Err(refusal) = self.keeps_snapshots() {
            return self.refuse(request, refusal);
        }
        match self.snapshots.save(&self.roots, snapshot, limit) {
            Ok(saved) => self.channel.send(
                &FromGuest::Saved {
                    request,
                    files: saved.files,
                    bytes: saved.bytes,
                },
                &[],
            ),
            Err(refusal) => self.refuse(request, refusal),
        }
    }

    fn read(&mut self, request: u64, path: &str, offset: u64, length: u64) -> Result<()> {
        match files::read(&self.roots, path, offset, length) {
            Ok((content, eof, stamp)) => {
                let stamp = Some(stamp);
                self.channel
                    .send(&FromGuest::Content { request, eof, stamp }, &[&content])
            }
            Err(refusal) => self.refuse(request, refusal),
        }
    }

    fn exec(&mut self, exec: u64, order: &Order, keep: Option<String>) -> Result<()> {
        if order.argv.is_empty() {
            return self.refuse(exec, Refusal::new("argv", "command is empty"));
        }
        if order.terminal.is_some() && !self.has_file_systems() {
            // They would be terminals of the machine.
            let reason =
                "a sandbox without namespaces has no terminals of its own; start it without a terminal";
            return self.refuse(exec, Refusal::new("start", reason));
        }
        match Command::start(exec, order, self.rules.as_ref().map(AsFd::as_fd)) {
            Ok(mut command) => {
                command.log = keep.map(|path| Log::new(&self.roots, path));
                if command.log.is_some() {
                    self.channel.send(&FromGuest::Started { exec }, &[])?;
                }
                self.commands.push(command);
                Ok(())
            }
            Err(error) => self.refuse(exec, Refusal::new("start", cellblock_jail::error::chain(&error))),
        }
    }

    /// Kills every process of the room except this one, the spared ones and kept commands, and
    /// waits until none of them runs any more.
    fn kill_all(&mut self, except: &[u32]) -> std::result::Result<(), Refusal> {
        kill::each(&std::mem::take(&mut self.stopped));
        let deadline = std::time::Instant::now() + KILL_LIMIT;
        let mut pause = KILL_PAUSE;
        loop {
            // Because the guest is the first process of its pid namespace, -1 reaches all others
            // but not itself. Without a namespace it reaches only its own descendants; a kernel is
            // ended by its parent.
            let wardens = self.wardens();
            let none_left = match (self.dir.is_some(), except) {
                (false, []) if wardens.is_empty() => kill::all(),
                (false, spared) => kill::all_but(spared, &wardens),
                (true, _) => tree::end_own(&wardens),
            };
            self.reap();
            if none_left {
                return Ok(());
            }
            if std::time::Instant::now() > deadline {
                return Err(Refusal::new("busy", "processes did not end"));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(MAX_KILL_PAUSE);
        }
    }

    /// Stops them, and makes the files equal to a snapshot, unless the process that has to go on
    /// with these is gone.
    fn roll_back(&mut self, snapshot: u64, needed: u32, except: &[u32]) -> std::result::Result<(), Refusal> {
        self.keeps_snapshots()?;
        if !kill::can_go_on(needed) {
            let reason = "the process that goes on has ended, or was stopped or sent a signal";
            return Err(Refusal::new("gone", reason));
        }
        match kill::stop_all_but(except, &self.wardens()) {
            Some(stopped) => self.stopped.extend(stopped),
            None => self.kill_all(except)?,
        }
        self.snapshots.restore(&self.roots, snapshot)
    }

    /// Refuses where other rooms' processes share the file systems.
    fn keeps_snapshots(&self) -> std::result::Result<(), Refusal> {
        if self.dir.is_none() {
            return Ok(());
        }
        let reason = "a sandbox without namespaces keeps no snapshots of its files";
        Err(Refusal::new("unsupported", reason))
    }

    fn reap(&mut self) {
        clear_child_signals(&self.children);
        while let Some((pid, _)) = reap_one() {
            if let Some(command) = self.commands.iter_mut().find(|command| command.warden() == pid) {
                command.hear_end();
            }
        }
    }

    /// Sends output of commands to the host, kills overdue wardens with their commands, and reports
    /// the commands that have ended.
    fn pump(&mut self) -> Result<()> {
        for command in &mut self.commands {
            if command.left().is_some_and(|left| left.is_zero()) {
                command.give_up();
            }
            command.feed.flush();
            let ended = command.ended.is_some();
            // What stderr has before stdout is read comes after all that stdout had by then.
            let errors = match &command.stderr {
                Some(pipe) if is_ready(pipe)? => {
                    let bytes = ioctl_fionread(pipe).during("look at a command's output")?;
                    Some(usize::try_from(bytes).unwrap_or(CHUNK).clamp(1, CHUNK))
                }
                _ => None,
            };
            for (stream, pipe) in [
                (Stream::Stdout, &mut command.stdout),
                (Stream::Stderr, &mut command.stderr),
            ] {
                let Some(open) = pipe else { continue };
                let most = match stream {
                    Stream::Stdout => Some(CHUNK),
                    Stream::Stderr => errors,
                };
                match most.map_or(Ok(None), |most| read_ready(open, most))? {
                    // Another process that holds it open got it from the command, but is not part
                    // of it.
                    None if ended => *pipe = None,
                    None => {}
                    Some(chunk) if chunk.is_empty() => *pipe = None,
                    Some(chunk) => {
                        let exec = command.number;
                        if let Some(log) = &mut command.log {
                            log.push(stream, &chunk);
                        } else {
                            self.channel
                                .send(&FromGuest::Stream { exec, stream }, &[&chunk])?;
                        }
                    }
                }
            }
            if let (Some(ended), false) = (command.is_over(), command.reported) {
                self.channel.send(&exited(command.number, ended), &[])?;
                command.reported = true;
            }
        }
        self.commands
            .retain(|command| command.is_over().is_none() || command.log.is_some());
        Ok(())
    }

    fn finish(&mut self, request: u64, done: Result<(), Refusal>) -> Result<()> {
        match done {
            Ok(()) => self.channel.send(&FromGuest::Ok { request }, &[]),
            Err(refusal) => self.refuse(request, refusal),
        }
    }

    fn refuse(&mut self, request: u64, refusal: Refusal) -> Result<()> {
        let message = FromGuest::Error {
            request,
            code: refusal.code.to_owned(),
            message: refusal.message,
        };
        self.channel.send(&message, &[])
    }
}

fn exited(exec: u64, ended: CommandExit) -> FromGuest {
    let (ending, timed_out, leaked) = match ended {
        CommandExit::Told(verdict) => (
            ProcessEnd::from_status(verdict.status),
            verdict.timed_out,
            verdict.leaked,
        ),
        // The process that killed the warden wanted to end the command.
        CommandExit::Untold => (ProcessEnd::Signaled(libc::SIGKILL), false, true),
    };
    let (code, signal) = match ending {
        ProcessEnd::Exited(code) => (Some(code), None),
        ProcessEnd::Signaled(signal) => (None, Some(signal)),
        ProcessEnd::Unknown => (None, None),
    };
    FromGuest::Exited {
        exec,
        code,
        signal,
        timed_out,
        leaked,
    }
}

/// Whether a pipe or terminal has data, or is at its end.
fn is_ready(pipe: &OwnedFd) -> Result<bool> {
    let mut polled = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).during("look at a command's output")?;
    Ok(!polled[0].revents().is_empty())
}

/// Reads once from a pipe or terminal, at most so many bytes: `None` if it has no data yet, empty at
/// its end.
fn read_ready(pipe: &OwnedFd, most: usize) -> Result<Option<Vec<u8>>> {
    if !is_ready(pipe)? {
        return Ok(None);
    }
    let mut chunk = vec![0; most];
    let read = match rustix::io::read(pipe, &mut chunk) {
        // Nobody has the other end of the terminal any more.
        Err(Errno::IO) => 0,
        Err(Errno::AGAIN) => return Ok(None),
        read => read.during("read a command's output")?,
    };
    chunk.truncate(read);
    Ok(Some(chunk))
}
