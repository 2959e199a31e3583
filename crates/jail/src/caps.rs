//! Dropping privileges for good.

use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::error::{Result, SyscallResult};
use crate::walled;

/// Empties every capability set, the bounding set included, and sets `no_new_privs`.
pub fn drop_all() -> Result<()> {
    drop_bounding();
    match rustix::thread::clear_ambient_capability_set() {
        // gVisor has no ambient capabilities.
        Err(rustix::io::Errno::INVAL) if walled::is_declared() => {}
        cleared => cleared.during("clear the ambient capabilities")?,
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).during("drop capabilities")?;
    rustix::thread::set_no_new_privs(true).during("set no_new_privs")
}

/// Empties the bounding set as far as the caller's privileges permit.
pub(crate) fn drop_bounding() {
    for number in 0..64_u64 {
        let Some(capability) = CapabilitySet::from_bits(1 << number) else {
            break;
        };
        // The kernel returns an error for a capability that it does not know; nothing needs
        // dropping then.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
}
