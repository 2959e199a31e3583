//! Hosts: processes that outlive a command. `cellblock session start` leaves one behind, `cellblock
//! tools call` works in it; a warm host ([`warm`](crate::warm)) is another.
//!
//! Behind each session stands a host process of its own (`cellblock session host`, hidden): it owns
//! the sandbox and serves a Unix socket in the session's directory below `<home>/sessions/`. A
//! process per session, rather than one daemon for all or the HTTP server, because then there is
//! nothing to install, start, watch or upgrade: a session's memory, limits, crash and end are its
//! own, `stop` is the end of a process, and after a crash the kernel itself says that the session
//! is over, because its lock is free. The price is one launcher with its keep per session. A server
//! that answers many users over HTTP is another face of the same interpreter.
//!
//! ```text
//! <home>/sessions/lock        held while a session's directory is made or removed
//! <home>/sessions/<id>/lock   held by the host from before it exists until it ends;
//!                             the host's process id is in it
//!                     socket  of the caller's user alone
//!                     plan    what was asked for
//!                     log     what the host writes to stderr
//! ```
//!
//! Only their owner can enter the directories, the socket checks the user again, and the id is
//! random. A host ends on request, by SIGTERM, and after its idle time without a request; then it
//! closes its sandbox and removes its directory. The next command that looks sweeps the directory
//! of a host that was killed.

pub(crate) mod client;
pub(crate) mod host;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod spawn;
pub(crate) mod toolbox;
pub(crate) mod wire;
