//! Floors of the promises, given by the kernel of this machine: the least that each promise could cost.

mod copy;
mod echo;
mod fork;
mod namespaces;

pub(crate) use copy::CopyProbe;
pub(crate) use echo::{Echo, EchoMessage, EchoProbe};
pub(crate) use fork::{ForkProbe, ForkWorkload, start as start_fork};
pub(crate) use namespaces::{NamespaceProbe, ROLE, serve as serve_namespaces, start as start_namespaces};

/// In the names of series.
pub(crate) const WHO: &str = "floor";
