//! Sandboxes: creating them, keeping them warm, limiting and ending them.
//!
//! - [`backend::Backend`] creates a [`backend::Sandbox`]; [`backend::process::ProcessBackend`] does
//!   so with Linux mechanisms.
//! - [`Pool`](pool::Pool) keeps sandboxes with running kernels ready and provides them as
//!   [`Lease`](pool::Lease)s.
//!
//! ```text
//! image ──> backend ──> sandbox (guest) ──> kernel ──> lease, for one session, then destroyed
//! ```
//!
//! This crate transports frames and does not know what a cell means; the interpreter crate does.

pub mod alarm;
pub mod backend;
pub mod channel;
pub mod error;
pub mod guest;
pub mod incoming;
pub mod limits;
pub mod outbox;
pub mod pool;
mod random;
mod shortage;

pub use cellblock_jail as jail;
pub use error::{Error, Result};
pub use limits::Limits;
pub use random::random_bytes;
