//! A disk that is soon full.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A file system of a few megabytes.
pub(crate) struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    pub(crate) fn new(path: &'a Path, bytes: u64) -> Self {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"])
            .arg(path)
            .status();
        assert!(mounted.unwrap().success());
        Self(path)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}
