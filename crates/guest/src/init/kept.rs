//! Commands whose output is kept: processes that live beside cells.

use std::ops::Range;
use std::time::{Duration, Instant};

use cellblock_jail::Result;
use cellblock_protocol::{FromGuest, TerminalSize, ToGuest};
use rustix::process::Signal;

use super::Guest;
use super::command::Command;
use super::path::Refusal;

/// Maximum number of requests that wait for output; further ones are answered at once. Each of the
/// processes that a session may run has one for its output and one for its end, and some have
/// several clients.
const WAITERS: usize = 256;

/// A request for output that is not there yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    request: u64,
    exec: u64,
    offset: u64,
    length: u64,
    until: Instant,
}

impl Waiter {
    pub(super) fn new(request: u64, exec: u64, range: Range<u64>, wait_ms: u64) -> Self {
        let now = Instant::now();
        Self {
            request,
            exec,
            offset: range.start,
            length: range.end - range.start,
            until: now.checked_add(Duration::from_millis(wait_ms)).unwrap_or(now),
        }
    }
}

impl Guest {
    /// Answers a message about a command that was started before.
    pub(super) fn answer_about_command(&mut self, message: &ToGuest, blobs: &[Vec<u8>]) -> Result<()> {
        match *message {
            ToGuest::Stop { exec, kill } => {
                let signal = if kill { libc::SIGKILL } else { libc::SIGINT };
                // It may have ended meanwhile.
                let _ = self.signal(exec, signal);
                Ok(())
            }
            ToGuest::Signal {
                request,
                exec,
                signal,
            } => {
                let done = self.signal(exec, signal);
                self.finish(request, done)
            }
            ToGuest::Input { request, exec, close } => {
                let bytes = blobs.first().map_or(&[][..], Vec::as_slice);
                let done = self.input(exec, bytes, close);
                self.finish(request, done)
            }
            ToGuest::Resize { request, exec, size } => {
                let done = self.resize(exec, size);
                self.finish(request, done)
            }
            ToGuest::Output {
                request,
                exec,
                offset,
                length,
                wait_ms,
            } => self.output(Waiter::new(
                request,
                exec,
                offset..offset.saturating_add(length),
                wait_ms,
            )),
            ToGuest::Forget { exec } => {
                self.forget(exec);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the wardens of kept commands that run.
    pub(super) fn wardens(&self) -> Vec<i32> {
        let kept = self.commands.iter().filter(|command| command.log.is_some());
        kept.filter(|command| command.ended.is_none())
            .map(Command::warden)
            .collect()
    }

    fn kept(&mut self, exec: u64) -> std::result::Result<&mut Command, Refusal> {
        let found = self.commands.iter_mut().find(|command| command.number == exec);
        found.ok_or_else(|| Refusal::new("not_found", "there is no such command"))
    }

    pub(super) fn signal(&mut self, exec: u64, signal: i32) -> std::result::Result<(), Refusal> {
        let signal = Signal::from_named_raw(signal)
            .ok_or_else(|| Refusal::new("signal", format!("{signal} is not the number of a signal")))?;
        let command = self.kept(exec)?;
        if command.ended.is_some() {
            return Err(Refusal::new("ended", "it has ended"));
        }
        command.signal(signal);
        Ok(())
    }

    pub(super) fn input(&mut self, exec: u64, bytes: &[u8], close: bool) -> std::result::Result<(), Refusal> {
        self.kept(exec)?.feed.push(bytes, close)
    }

    pub(super) fn resize(&mut self, exec: u64, size: TerminalSize) -> std::result::Result<(), Refusal> {
        self.kept(exec)?.feed.resize(size)
    }

    /// Answers now if there is output, if there will be none, or if nobody wants to wait.
    pub(super) fn output(&mut self, waiter: Waiter) -> Result<()> {
        if self.waiters.len() < WAITERS && waiter.until > Instant::now() && self.has_to_wait(&waiter) {
            self.waiters.push(waiter);
            return Ok(());
        }
        self.answer_waiter(&waiter)
    }

    /// Answers the requests that need not wait any longer.
    pub(super) fn answer_waiters(&mut self) -> Result<()> {
        let now = Instant::now();
        let waiters = std::mem::take(&mut self.waiters);
        let (waiting, ready): (Vec<_>, Vec<_>) = waiters
            .into_iter()
            .partition(|waiter| waiter.until > now && self.has_to_wait(waiter));
        self.waiters = waiting;
        ready.iter().try_for_each(|waiter| self.answer_waiter(waiter))
    }

    /// Returns the time until the next of them is answered in any case.
    pub(super) fn patience(&self) -> Option<Duration> {
        let nearest = self.waiters.iter().map(|waiter| waiter.until).min();
        nearest.map(|until| until.saturating_duration_since(Instant::now()))
    }

    fn has_to_wait(&self, waiter: &Waiter) -> bool {
        let command = self.commands.iter().find(|command| command.number == waiter.exec);
        command.is_some_and(|command| {
            let total = command.log.as_ref().map(|log| log.total);
            command.is_over().is_none() && total.is_some_and(|total| total <= waiter.offset)
        })
    }

    fn answer_waiter(&mut self, waiter: &Waiter) -> Result<()> {
        let request = waiter.request;
        let found = self.kept(waiter.exec).and_then(|command| {
            let log = command.log.as_ref();
            let log = log.ok_or_else(|| Refusal::new("not_kept", "its output is not kept"))?;
            let part = log.read(waiter.offset, waiter.length);
            let end = part.offset + part.bytes.len() as u64;
            let message = FromGuest::Output {
                request,
                offset: part.offset,
                total: log.total,
                eof: command.is_over().is_some() && end == log.total,
                stderr: part.errors.iter().map(|part| [part.start, part.end]).collect(),
            };
            Ok((message, part.bytes))
        });
        match found {
            Ok((message, bytes)) => self.channel.send(&message, &[&bytes]),
            Err(refusal) => self.refuse(request, refusal),
        }
    }

    /// Drops a command's output; one that runs is killed, and dropped at its end.
    pub(super) fn forget(&mut self, exec: u64) {
        let Some(command) = self.commands.iter_mut().find(|command| command.number == exec) else {
            return;
        };
        command.signal(Signal::KILL);
        if let Some(log) = command.log.take() {
            log.remove(&self.roots);
        }
    }
}
