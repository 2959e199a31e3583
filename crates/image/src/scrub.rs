//! Removing the builder's own paths from a copied interpreter, so that no sandbox reads them.

use std::env;
use std::fs;
use std::path::Path;

use super::copy::PYTHON_IN_SANDBOX;
use super::digest::walk;
use super::elf;
use super::error::{IoResultExt, Result};

/// Replaces the prefix of the original installation, and the builder's home, in the copy at `root`.
pub(crate) fn scrub(root: &Path, prefix: &Path) -> Result<()> {
    let home = env::var_os("HOME")
        .map(std::path::PathBuf::from)
        .filter(|it| it.is_absolute());
    let home = home
        .map(|it| format!("{}/", it.to_string_lossy()))
        .filter(|it| it.len() > "/opt/".len());
    // Paths that every machine has reveal nothing about the builder's.
    let prefix = Some(prefix).filter(|it| *it != "/usr" && *it != "/usr/local" && *it != "/");
    let prefix = prefix.map(|it| it.to_string_lossy().into_owned());
    walk(root, &mut |path, kind| {
        if !kind.is_file() {
            return Ok(());
        }
        let old = fs::read(path).at("read", path)?;
        let mut new = old.clone();
        let is_elf = elf::is_elf(&old);
        if is_elf {
            let is_extension = path.parent().is_some_and(|it| it.ends_with("lib-dynload"));
            elf::point_run_path(&mut new, if is_extension { "/../../../lib" } else { "/../lib" });
        }
        let replace = |bytes: Vec<u8>, old: &str, new: &str| {
            if is_elf {
                in_place(bytes, old)
            } else {
                in_text(bytes, old, new)
            }
        };
        if let Some(prefix) = &prefix {
            new = replace(new, prefix, PYTHON_IN_SANDBOX);
        }
        let names_paths = path
            .file_name()
            .is_some_and(|it| it.to_string_lossy().starts_with("_sysconfig"));
        if let Some(home) = home.as_ref().filter(|_| is_elf || names_paths) {
            new = replace(new, home, "/opt/");
        }
        if new != old {
            fs::write(path, new).at("write", path)?;
        }
        Ok(())
    })
}

fn in_text(bytes: Vec<u8>, old: &str, new: &str) -> Vec<u8> {
    let places = places(&bytes, old.as_bytes());
    if places.is_empty() {
        return bytes;
    }
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for place in places {
        replaced.extend_from_slice(&bytes[at..place]);
        replaced.extend_from_slice(new.as_bytes());
        at = place + old.len();
    }
    replaced.extend_from_slice(&bytes[at..]);
    replaced
}

/// Replaces all of a path except its last component with slashes, which moves no byte.
///
/// A linker lets strings share their ends: the version in `/home/ann/3.13.0` may be that of
/// `sys.version`.
fn in_place(mut bytes: Vec<u8>, old: &str) -> Vec<u8> {
    const SHOWN: &[u8] = b"/opt";
    let hidden = old.rfind('/').unwrap_or(0);
    if hidden < SHOWN.len() {
        return bytes;
    }
    for place in places(&bytes, old.as_bytes()) {
        let found = &mut bytes[place..place + hidden];
        found.fill(b'/');
        found[..SHOWN.len()].copy_from_slice(SHOWN);
    }
    bytes
}

fn places(bytes: &[u8], sought: &[u8]) -> Vec<usize> {
    if sought.is_empty() {
        return Vec::new();
    }
    memchr::memmem::find_iter(bytes, sought).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_change_their_length_but_programs_do_not() {
        let bytes = || b"x=/home/ann/py/lib;/home/ann/py".to_vec();
        assert_eq!(
            in_text(bytes(), "/home/ann/py", "/opt/python"),
            b"x=/opt/python/lib;/opt/python"
        );
        assert_eq!(
            in_place(bytes(), "/home/ann/py"),
            b"x=/opt//////py/lib;/opt//////py"
        );
        assert_eq!(in_place(bytes(), "/home/"), b"x=/opt//ann/py/lib;/opt//ann/py");
        assert_eq!(in_place(bytes(), "/py"), bytes());
        assert_eq!(in_text(bytes(), "", "/opt"), bytes());
    }
}
