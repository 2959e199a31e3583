//! The members that a layer has had so far.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// Bytes of a digest that are kept: nobody finds two names for which they are the same.
const KEPT: usize = 16;

/// A set of paths, of which it keeps digests: millions of long names, which are small in a
/// compressed layer, would take gigabytes.
#[derive(Debug, Default)]
pub(super) struct MemberSet(HashSet<[u8; KEPT]>);

impl MemberSet {
    /// Adds a path.
    pub(super) fn insert(&mut self, path: &Path) {
        self.0.insert(digest(path));
    }

    /// Returns whether a path was added.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.0.contains(&digest(path))
    }
}

fn digest(path: &Path) -> [u8; KEPT] {
    let mut kept = [0; KEPT];
    kept.copy_from_slice(&Sha256::digest(path.as_os_str().as_bytes())[..KEPT]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of this process's memory.
    fn memory() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<usize>().unwrap() << 10
    }

    #[test]
    fn long_names_take_as_little_memory_as_short_ones() {
        let mut members = MemberSet::default();
        let long = "x".repeat(4000);
        let name = |number: usize| format!("{long}/{number}");
        let before = memory();
        for number in 0..100_000 {
            members.insert(Path::new(&name(number)));
        }
        // The names have 400 MB; other tests of this process use memory, too.
        assert!(memory().saturating_sub(before) < 200 << 20);
        assert!(members.contains(Path::new(&name(0))) && members.contains(Path::new(&name(99_999))));
        assert!(!members.contains(Path::new(&name(100_000))));
    }
}
