//! Handles of sessions: 160 bits that nobody can guess.

use std::fmt::Write as _;

use cellblock_sandbox::random_bytes;

/// Returns a new handle: `prefix`, then 40 hexadecimal digits from the operating system's generator.
pub fn mint(prefix: &str) -> String {
    let mut handle = prefix.to_owned();
    for byte in random_bytes::<20>() {
        // Writing to a string does not fail.
        let _ = write!(handle, "{byte:02x}");
    }
    handle
}
