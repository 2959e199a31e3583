//! Containers that are at hand, their sandboxes and their turns at the processors.

mod cores;
mod live;
pub(crate) mod memory;
pub(crate) mod room;

pub(crate) use cores::Slot;
pub use live::Containers;
pub(crate) use live::{HeldContainer, Live, State};
