//! Memory of the calling process.

use std::fs;

/// Returns freed memory to the system: an allocator keeps it for itself otherwise, for as long as
/// something small lives behind it.
///
/// Another allocator would also be that of the launcher and the guest, which are the same
/// executable as the host.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` takes the allocator's own locks and changes no memory that is in use;
    // glibc permits it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the number of bytes of this process that are in memory.
pub fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocations that fill a hundred MiB, of which few stay.
    #[test]
    #[cfg(target_env = "gnu")]
    fn freed_memory_is_returned_although_some_of_it_is_in_use() {
        const COUNT: usize = 100 << 10;
        let before = resident().unwrap();
        let mut all: Vec<Option<Vec<u8>>> = (0..COUNT).map(|_| Some(vec![1; 1024])).collect();
        let full = resident().unwrap();
        assert!(full > before + (64 << 20), "{before} {full}");
        let kept: Vec<_> = all.iter_mut().step_by(1024).map(Option::take).collect();
        all.clear();
        give_back();
        let after = resident().unwrap();
        assert!(after < before + (32 << 20), "{before} {full} {after}");
        assert!(kept.iter().all(Option::is_some));
    }
}
