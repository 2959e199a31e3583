//! Containers that are at hand, their sandboxes and their turns at the processors.

mod cores;
mod live;
pub(crate) mod memory;
pub(crate) mod room;
#[cfg(test)]
mod tests;

pub(crate) use cores::Slot;
pub use live::Containers;
pub(crate) use live::{ContainerState, HeldContainer, LiveContainer};
