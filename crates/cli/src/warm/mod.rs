//! Warm hosts: a process in the background that keeps the image's template and a few sandboxes,
//! from which `cellblock run` takes one.
//!
//! ```text
//! cellblock run ── <home>/warm/<key>/socket ── host ── template ┄ sandboxes, one for each run
//! ```
//!
//! Only the sandbox is the host's. The command reads its arguments and inputs, owns the session and
//! the store, installs packages and prints, as it does without a host: its interpreter has the
//! remote backend over the socket. So results are the same, except that the image's libraries are
//! imported already.
//!
//! `cellblock serve --warm` takes each of its sandboxes in the same way ([`backend`]); the Python
//! client starts it so.
//!
//! A host is like that of a session (`session/mod.rs`): its directory, lock, socket, log and end
//! are the same. Its id is a [`key`] of everything that must agree: the program file, the image and
//! the policy. A command of another version looks elsewhere, and the old host ends when it is idle.
//! If a host is missing, hangs or refuses, the run goes on by itself.

pub(crate) mod attach;
pub(crate) mod backend;
pub(crate) mod hint;
pub(crate) mod key;
pub(crate) mod memory;
pub(crate) mod setting;
