//! Programs that people would use instead, with the image's interpreter and libraries.

mod ipykernel;
mod process;
mod wrapped;

pub(crate) use ipykernel::{IpykernelPart, IpykernelProbe, start as start_ipykernel};
pub(crate) use process::{PeerProgram, ProcessProbe};
pub(crate) use wrapped::PythonLauncher;
