//! What a program or shared library says about where its libraries are.

use object::Endianness;
use object::elf::{DT_RPATH, DT_RUNPATH, DT_SONAME, DynamicTag, FileHeader64};
use object::read::elf::{Dyn, FileHeader};

/// Whether these bytes are an ELF file.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// The name by which others ask for this library.
pub(crate) fn soname(bytes: &[u8]) -> Option<String> {
    let (start, end) = strings(bytes, &[DT_SONAME]).into_iter().next()?;
    String::from_utf8(bytes.get(start..end)?.to_owned()).ok()
}

/// Points the library search path at `$ORIGIN` and what is `below` it; says whether there was one to change.
///
/// The new path takes the place of the old one and is filled up with slashes, so that nothing moves.
pub(crate) fn point_run_path(bytes: &mut [u8], below: &str) -> bool {
    const ORIGIN: &[u8] = b"$ORIGIN";
    let mut changed = false;
    for (start, end) in strings(bytes, &[DT_RUNPATH, DT_RPATH]) {
        if let Some(old) = bytes.get_mut(start..end)
            && old.len() >= ORIGIN.len() + below.len()
        {
            old.fill(b'/');
            old[..ORIGIN.len()].copy_from_slice(ORIGIN);
            let tail = old.len() - below.len();
            old[tail..].copy_from_slice(below.as_bytes());
            changed = true;
        }
    }
    changed
}

/// Where in the file the strings are that entries with these tags name.
fn strings(bytes: &[u8], tags: &[DynamicTag]) -> Vec<(usize, usize)> {
    let read = || {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, bytes).ok()?;
        let (entries, link) = sections.dynamic(endian, bytes).ok()??;
        let table = sections.strings(endian, bytes, link).ok()?;
        let named = entries.iter().filter(|it| tags.contains(&it.d_tag(endian)));
        let found = named.filter_map(|it| table.get(u32::try_from(it.d_val(endian)).ok()?).ok());
        // The table borrows from `bytes`, so a string's place in the file is the distance between the two.
        Some(
            found
                .map(|it| (it.as_ptr().addr() - bytes.as_ptr().addr(), it.len()))
                .collect::<Vec<_>>(),
        )
    };
    read()
        .unwrap_or_default()
        .into_iter()
        .map(|(start, length)| (start, start + length))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_bytes_are_no_elf_and_change_nothing() {
        for bytes in [
            b"".to_vec(),
            b"\x7fELF".to_vec(),
            b"\x7fELF\x02\x01\x01".repeat(40),
        ] {
            let mut changed = bytes.clone();
            assert!(!point_run_path(&mut changed, "/x"));
            assert_eq!(soname(&bytes), None);
            assert_eq!(changed, bytes);
        }
    }
}
