//! Moves a copy of a kernel from one room into the kernel of another, for forks of a session.
//!
//! ```text
//! room A                                    room B
//! kernel ──clone──> kept copy (stopped) ──> fresh kernel of the same template (stopped)
//! ```
//!
//! A short-lived process of the keep does this from outside. It only reads the copy, whose kernel
//! goes on undisturbed. The target has its room, its ids, its limits and its filters before the
//! first byte arrives, and makes the system calls that change its mappings itself, below its own
//! filters. Whatever Linux holds for a process beside memory and registers, such as open files, the
//! copy restores in its new room.
//!
//! Everything that is read here is hostile: the memory, the registers and the mappings of the copy.
//! None of it is interpreted beyond the list of mappings, and the worst that it can do is spoil the
//! target.

use std::os::fd::OwnedFd;

use cellblock_jail::Error;
use cellblock_protocol::Obstacle;

#[cfg(target_arch = "x86_64")]
pub(super) mod areas;
#[cfg(target_arch = "x86_64")]
mod mappings;
#[cfg(target_arch = "x86_64")]
pub(super) mod pages;
#[cfg(target_arch = "x86_64")]
pub(super) mod tracee;

/// Number of the channel of a fresh kernel.
#[cfg(target_arch = "x86_64")]
const CHANNEL: u32 = 3;

/// Result of a step of a move.
type MoveResult<T> = Result<T, MoveError>;

/// Reason that a copy was not moved.
#[derive(Debug)]
pub(super) enum MoveError {
    /// The copy has something that cannot be moved.
    Obstacle(Obstacle),
    /// A step failed.
    Failed(Error),
}

impl From<Obstacle> for MoveError {
    fn from(obstacle: Obstacle) -> Self {
        Self::Obstacle(obstacle)
    }
}

impl From<Error> for MoveError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A process of a room: its pid in the keep, and in its room.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) pidfd: OwnedFd,
    pub(super) inside: u32,
}

/// Source and target of a move.
#[derive(Debug)]
pub(super) struct Move {
    /// The kept copy.
    pub(super) from: Process,
    /// The fresh kernel.
    pub(super) to: Process,
    /// Number of the socket on which the copy waits. The target gets its own channel there.
    pub(super) socket: u32,
    /// The `pagemap` files of both, if the host may see physical addresses.
    pub(super) pagemaps: Option<[OwnedFd; 2]>,
}

/// Moves the copy. The target continues as the copy, or is killed if this fails.
#[cfg(target_arch = "x86_64")]
pub(super) fn run(order: &Move) -> MoveResult<()> {
    use areas::{Area, Plan};
    use tracee::Tracee;

    let from = Tracee::seize(&order.from, false)?;
    let mut to = Tracee::seize(&order.to, true)?;
    let (from, registers) = from.stop_on(order.socket)?;
    to = to.stop_on(CHANNEL)?.0;
    if from.filters()? != to.filters()? {
        return Err(Obstacle::OwnFilter.into());
    }
    from.check_thread_id(&registers, order.from.inside)?;
    let areas = Area::read(order.from.pid)?;
    mappings::adapt(&mut to, &areas)?;
    let there = Area::read(order.to.pid)?;
    let rest = Plan::of(&areas, &there)?;
    if !rest.is_empty() {
        return Err(Error::Child("the mappings of both kernels still differ".into()).into());
    }
    pages::copy(&from, &to, &areas, order.pagemaps.as_ref())?;
    if cfg!(debug_assertions) {
        // Every test proves it.
        pages::compare(&from, &to, &areas)?;
    }
    to.set_thread_id(&registers, order.to.inside)?;
    to.place_socket(order.socket)?;
    to.become_copy_of(&from, &registers)?;
    // The copy first, so that it waits again before its kernel goes on.
    from.let_go();
    to.let_go();
    Ok(())
}

/// Says that this machine is not known.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(_order: &Move) -> MoveResult<()> {
    Err(Obstacle::UnknownProcessor.into())
}
