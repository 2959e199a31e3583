//! Bytecode of the kernel package, which an image's Python compiles once, in a sandbox of its own.
//!
//! The host keeps it in a file per package, in a directory per image; the launcher writes it beside
//! the sources. Python then starts without compiling, which is half of its start. A file that does
//! not belong to the package, or is damaged, is not used.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::kernel_package::{self, ROOT};

/// Code for the image's Python that writes the bytecode to its standard output.
pub const COMPILE: &str = include_str!("compile.py");

/// Size of the checksum at the beginning of a file.
const CHECKSUM: usize = 32;

/// Returns the name of the file with this package's bytecode.
pub fn file_name() -> String {
    let mut hasher = Sha256::new();
    for (path, content) in kernel_package::modules() {
        hasher.update(path.as_os_str().as_bytes());
        hasher.update([0]);
        hasher.update(content.len().to_le_bytes());
        hasher.update(content);
    }
    let digest: [u8; CHECKSUM] = hasher.finalize().into();
    digest[..16]
        .iter()
        .fold(String::new(), |name, byte| format!("{name}{byte:02x}"))
}

/// Returns the content of the file called `name` from the output of [`COMPILE`].
pub fn seal(name: &str, compiled: &[u8]) -> Vec<u8> {
    [checksum(name, compiled).as_slice(), compiled].concat()
}

/// Lists the compiled modules of a directory by their paths inside a sandbox; nothing if it has
/// none for this package. Removes a damaged file, so that the next start compiles again.
pub(crate) fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let name = file_name();
    let path = directory.join(&name);
    let Ok(content) = fs::read(&path) else {
        return Vec::new();
    };
    open(&name, &content).unwrap_or_else(|| {
        let _ = fs::remove_file(&path);
        Vec::new()
    })
}

fn open(name: &str, content: &[u8]) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let (sum, compiled) = content.split_at_checked(CHECKSUM)?;
    if sum != checksum(name, compiled) {
        return None;
    }
    unpack(compiled)
}

/// Returns whether this is the complete bytecode of the package: every module once, and nothing else.
pub fn is_complete(compiled: &[u8]) -> bool {
    unpack(compiled).is_some()
}

fn unpack(compiled: &[u8]) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let mut rest = compiled;
    let mut next = || {
        let (length, after) = rest.split_first_chunk()?;
        let (block, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        rest = after;
        Some(block)
    };
    let tag = std::str::from_utf8(next()?).ok()?;
    if !tag.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-') {
        return None;
    }
    let mut missing: HashSet<_> = kernel_package::modules().into_iter().map(|it| it.0).collect();
    let mut files = Vec::with_capacity(missing.len());
    while !missing.is_empty() {
        let path = Path::new(ROOT).join(OsStr::from_bytes(next()?));
        if !missing.remove(&path) {
            return None;
        }
        let cached = format!("__pycache__/{}.{tag}.pyc", path.file_stem()?.to_str()?);
        files.push((path.with_file_name(cached), next()?.to_vec()));
    }
    rest.is_empty().then_some(files)
}

fn checksum(name: &str, compiled: &[u8]) -> [u8; CHECKSUM] {
    Sha256::new()
        .chain_update(name)
        .chain_update(compiled)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the compiler's output, with the name of each module in place of its bytecode.
    fn compiled() -> Vec<u8> {
        let mut blocks = vec![b"cpython-313".to_vec()];
        for (path, _) in kernel_package::modules() {
            let name = path.strip_prefix(ROOT).unwrap().as_os_str().as_bytes().to_vec();
            blocks.extend([name.clone(), name]);
        }
        let framed = blocks.iter().map(|block| {
            let length = u32::try_from(block.len()).unwrap().to_le_bytes();
            [length.as_slice(), block].concat()
        });
        framed.collect::<Vec<_>>().concat()
    }

    #[test]
    fn bytecode_is_placed_where_python_searches_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let name = file_name();
        fs::write(directory.path().join(&name), seal(&name, &compiled())).unwrap();
        let files = files(directory.path());
        let template = Path::new("/opt/cellblock/cellblock_kernel/boot/__pycache__/template.cpython-313.pyc");
        let found = files.iter().find(|(path, _)| path == template).unwrap();
        assert_eq!(found.1, b"cellblock_kernel/boot/template.py");
        assert_eq!(files.len(), kernel_package::modules().len());
    }

    #[test]
    fn damaged_bytecode_is_not_used_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let name = file_name();
        let path = directory.path().join(&name);
        let sealed = seal(&name, &compiled());
        let mut changed = sealed.clone();
        changed[CHECKSUM + 40] ^= 1;
        let of_another_package = seal("0123", &compiled());
        for damaged in [
            &changed[..],
            &sealed[..sealed.len() / 2],
            b"",
            &of_another_package,
        ] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(files(directory.path()), []);
            assert!(!path.exists());
        }
    }

    #[test]
    fn bytecode_of_other_modules_is_not_used() {
        let text = compiled();
        assert!(is_complete(&text));
        assert!(!is_complete(&text[..text.len() - 1]));
        assert!(!is_complete(&[&text[..], b"\0\0\0\0"].concat()));
        let outside =
            String::from_utf8(text)
                .unwrap()
                .replacen("cellblock_kernel/boot", "../../ellblock_kernel", 1);
        assert!(!is_complete(outside.as_bytes()));
        assert!(!is_complete(
            &compiled()
                .iter()
                .map(|it| if *it == b'-' { b'/' } else { *it })
                .collect::<Vec<_>>()
        ));
    }
}
