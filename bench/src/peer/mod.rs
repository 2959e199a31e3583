//! What people would use instead, with the image's interpreter and libraries.

mod ipykernel;
mod process;
mod wrapped;

pub(crate) use ipykernel::{IpykernelProbe, Part, start as start_ipykernel};
pub(crate) use process::{ProcessProbe, Program};
pub(crate) use wrapped::Wrapped;
