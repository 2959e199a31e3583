//! Branches of a session's history: states that it can go back to, sessions that go on from one, and
//! a state that waits on disk. This code alone moves the whole state of a session.

pub mod checkpoints;
pub(in crate::session) mod dormancy;
pub mod fork;
pub mod hibernate;
