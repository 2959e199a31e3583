//! Sandboxes: creating them, keeping them warm, limiting and ending them.
//!
//! - [`backend::Backend`] creates a [`backend::Sandbox`]; [`backend::process::ProcessBackend`] does
//! so with Linux mechanisms.
//! - [`Pool`](pool::Pool) keeps sandboxes with running kernels ready and provides them as
//! [`Lease`](pool::Lease)s.
//!
//! ```text
//! image ──> backend ──> sandbox (guest) ──> kernel ──> lease, for one session, then destroyed
//! ```
//!
//! This crate transports frames and does not know what a cell means; the interpreter crate does.

use std::sync::atomic::{AtomicBool, Ordering};

pub mod backend;
pub mod channel;
pub mod error;
pub mod guest;
pub mod incoming;
pub mod limits;
pub mod pool;

pub use cellblock_jail as jail;
pub use error::{Error, Result};
pub use limits::Limits;

static BOOTED: AtomicBool = AtomicBool::new(false);

/// Lets this program serve as its own launcher. Call it as the first statement of `main`, before any thread exists.
///
/// The process backend starts a copy of the running executable under another name; in that copy this call does not return.
pub fn boot() {
    cellblock_guest::boot();
    BOOTED.store(true, Ordering::Relaxed);
}

/// Whether [`boot`] was called.
pub(crate) fn booted() -> bool {
    BOOTED.load(Ordering::Relaxed)
}
