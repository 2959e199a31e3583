//! The library locations recorded in a program or shared library.

use object::Endianness;
use object::elf::{DT_RPATH, DT_RUNPATH, DT_SONAME, DynamicTag, FileHeader64};
use object::read::elf::{Dyn, FileHeader};

/// Returns whether these bytes are an ELF file.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Returns the name under which other files request this library.
pub(crate) fn soname(bytes: &[u8]) -> Option<String> {
    let (start, end) = strings(bytes, &[DT_SONAME]).into_iter().next()?;
    String::from_utf8(bytes.get(start..end)?.to_owned()).ok()
}

/// Points the library search path to `$ORIGIN` and the directory `below` it; returns whether there
/// was one to change.
///
/// The new path replaces the old one and is padded with slashes, so that nothing moves.
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

/// Returns the positions in the file of the strings of entries with these tags.
fn strings(bytes: &[u8], tags: &[DynamicTag]) -> Vec<(usize, usize)> {
    let read = || {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, bytes).ok()?;
        let (entries, link) = sections.dynamic(endian, bytes).ok()??;
        let table = sections.strings(endian, bytes, link).ok()?;
        let named = entries.iter().filter(|it| tags.contains(&it.d_tag(endian)));
        let found = named.filter_map(|it| table.get(u32::try_from(it.d_val(endian)).ok()?).ok());
        // The table borrows from `bytes`, so a string's position in the file is the distance
        // between the two.
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
    fn hostile_bytes_are_not_elf_and_stay_unchanged() {
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
