//! Sandboxes whose whole state, with all processes, is in files of the host.

use super::{BoxFuture, Kernel, Sandbox};
use crate::error::{Error, Result};

/// A sandbox with a running kernel, for one user. Dropping it destroys it: nothing returns to the pool.
#[derive(Debug)]
pub struct Lease {
    /// The sandbox.
    pub sandbox: Box<dyn Sandbox>,
    /// Its kernel.
    pub kernel: Kernel,
}

/// A sandbox that has no processes: its state is in files that nobody but this program's user can
/// read, and that only this value names. Dropping it removes them.
pub trait DormantSandbox: Send + Sync + std::fmt::Debug {
    /// Returns the size of the files in bytes.
    fn bytes(&self) -> u64;

    /// Restores the sandbox with its kernel, and removes the files. After an error, the state is lost.
    fn wake(self: Box<Self>) -> BoxFuture<'static, Result<Lease>>;
}

/// The result of making a sandbox dormant.
#[derive(Debug)]
pub enum Suspension {
    /// It is.
    Dormant(Box<dyn DormantSandbox>),
    /// It goes on, for this reason.
    Refused(Box<Lease>, Error),
}

/// A sandbox that was branched.
#[derive(Debug)]
pub struct SandboxBranches {
    /// The sandbox itself, which goes on.
    pub own: Lease,
    /// Sandboxes that begin with its state, or why there are none.
    pub branches: Result<Vec<Lease>>,
}
