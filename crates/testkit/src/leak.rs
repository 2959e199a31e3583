//! Counts what sandboxes could leave behind on the host, and tells what is left.
//!
//! A leak test asks an [`LeakOwner`] for a [`Count`] before, does its work, and waits until there
//! is no more than that. Only what belongs to the owner counts: other programs of the machine make
//! and end processes, namespaces and control groups meanwhile.

mod ancestry;
mod find;
mod own;

pub use own::{Count, LeakOwner, LeakReport};

#[cfg(test)]
mod tests;
