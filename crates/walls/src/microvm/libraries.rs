//! Shared libraries of programs, as the host's loader finds them, and executables without what only
//! debuggers read.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Offsets in the header of a 64-bit ELF file.
const PROGRAM_HEADERS: usize = 0x20;
const SECTION_HEADERS: usize = 0x28;
const PROGRAM_HEADER_SIZE: usize = 0x36;
const PROGRAM_HEADER_COUNT: usize = 0x38;
const SECTION_COUNT: usize = 0x3c;

/// Returns the libraries of programs and libraries, and the loader.
pub(super) fn needed(files: &[PathBuf]) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for some in files.chunks(64) {
        // Fails for files that are scripts or static, and still lists the others.
        let output = Command::new("ldd").args(some).env("LC_ALL", "C").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        found.extend(text.lines().filter_map(listed));
    }
    Ok(found)
}

/// Returns the path in a line such as `libm.so.6 => /lib/libm.so.6 (0x00007f)`.
fn listed(line: &str) -> Option<PathBuf> {
    let line = line.strip_prefix('\t')?;
    let (path, _) = line.rsplit_once(" (0x")?;
    let path = path.split_once(" => ").map_or(path, |(_, path)| path);
    path.starts_with('/').then(|| PathBuf::from(path))
}

/// Returns the part of an executable that is loaded: without symbols and lines it is half as large or less.
pub(super) fn stripped(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    if let Some(end) = loaded_end(&bytes) {
        bytes.truncate(end);
        bytes[SECTION_HEADERS..SECTION_HEADERS + 8].fill(0);
        bytes[SECTION_COUNT..SECTION_COUNT + 4].fill(0);
    }
    Ok(bytes)
}

/// Returns where the last segment ends; `None` for what is not a 64-bit little-endian ELF file.
fn loaded_end(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, size: usize| {
        let mut number = [0; 8];
        number[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    };
    let (first, size) = (number(PROGRAM_HEADERS, 8)?, number(PROGRAM_HEADER_SIZE, 2)?);
    let mut end = first.checked_add(size.checked_mul(number(PROGRAM_HEADER_COUNT, 2)?)?)?;
    for header in 0..number(PROGRAM_HEADER_COUNT, 2)? {
        let at = first + header * size;
        end = end.max(number(at + 0x08, 8)?.checked_add(number(at + 0x20, 8)?)?);
    }
    (end <= bytes.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_lists_of_the_loader() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(
            listed("\tlibm.so.6 => /lib/x/libm.so.6 (0x00007f)"),
            path("/lib/x/libm.so.6")
        );
        assert_eq!(listed("\t/lib64/ld.so.2 (0x00007f)"), path("/lib64/ld.so.2"));
        assert_eq!(listed("\tlinux-vdso.so.1 (0x00007f)"), None);
        assert_eq!(listed("\tlibx.so => not found"), None);
        assert_eq!(listed("\tnot a dynamic executable"), None);
    }

    #[test]
    fn a_stripped_program_is_smaller_and_still_runs() {
        let own = std::env::current_exe().unwrap();
        let bytes = stripped(&own).unwrap();
        assert!(bytes.len() < usize::try_from(fs::metadata(&own).unwrap().len()).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        fs::copy(&own, &copy).unwrap();
        fs::write(&copy, &bytes).unwrap();
        let ran = Command::new(&copy).arg("--list").output().unwrap();
        assert!(ran.status.success() && !ran.stdout.is_empty());
        assert!(!needed(&[own]).unwrap().is_empty());
    }
}
