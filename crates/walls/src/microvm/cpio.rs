//! The archive from which a kernel makes its first file tree.

use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_755;
const DEVICE: u32 = 0o020_600;

/// An archive in the `newc` form.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds a directory and those above it.
    pub(super) fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.directories.contains(path) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        self.directories.insert(path.to_owned());
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// Adds an executable file.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_matches('/');
        if let Some(above) = Path::new(path).parent().and_then(Path::to_str) {
            self.directory(above);
        }
        self.entry(path, FILE, (0, 0), content);
    }

    /// Adds a character device.
    pub(super) fn device(&mut self, path: &str, number: (u32, u32)) {
        self.entry(path, DEVICE, number, &[]);
    }

    /// Returns the finished archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let name = u32::try_from(path.len() + 1).unwrap_or(u32::MAX);
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_its_directories_once_and_aligned_entries() {
        let mut archive = Archive::default();
        archive.file("/bin/x", b"abc");
        archive.file("/bin/y", b"");
        archive.device("dev", (1, 3));
        let bytes = archive.finish();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(text.matches("070701").count(), 5);
        assert_eq!(text.matches("bin\0").count(), 1);
        assert!(text.contains("bin/x\0abc\0"), "{text:?}");
        assert_eq!(bytes.len() % 4, 0);
    }
}
