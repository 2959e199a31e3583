//! Handles of sessions: 160 bits that nobody can guess.

use std::fmt::Write as _;

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns a new handle: `prefix`, then 40 hexadecimal digits from the operating system's generator.
pub fn mint(prefix: &str) -> String {
    let mut bytes = [0; 20];
    let mut filled = 0;
    while filled < bytes.len() {
        // The call cannot fail for so few bytes unless it is interrupted.
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty()).unwrap_or(0);
    }
    let mut handle = prefix.to_owned();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(handle, "{byte:02x}");
    }
    handle
}
