//! The glibc that a program needs.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::FileHeader as _;

/// Fails if a program needs a glibc newer than this one.
pub(super) fn check(program: &Path, oldest: (u32, u32)) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| format!("read `{}`", program.display()))?;
    let needed = needed(&bytes).context("read which symbols the program needs")?;
    if needed > oldest {
        let ((major, minor), (oldest_major, oldest_minor)) = (needed, oldest);
        bail!(
            "`{}` needs glibc {major}.{minor}; a release must run with {oldest_major}.{oldest_minor}",
            program.display()
        );
    }
    eprintln!("needs glibc {}.{}", needed.0, needed.1);
    Ok(())
}

/// Returns the newest version of glibc that a symbol of these bytes names.
fn needed(bytes: &[u8]) -> Result<(u32, u32)> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let (libraries, link) = sections
        .gnu_verneed(endian, bytes)?
        .context("it needs no version of anything")?;
    let names = sections.strings(endian, bytes, link)?;
    let mut newest = None;
    for library in libraries {
        for version in library?.1 {
            let name = version?.name(endian, names)?;
            newest = newest.max(glibc(&String::from_utf8_lossy(name)));
        }
    }
    newest.context("it needs no glibc")
}

/// Reads `GLIBC_2.28`. Other libraries have other names for their versions.
fn glibc(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("GLIBC_")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(glibc("GLIBC_2.9") < glibc("GLIBC_2.28"));
        assert_eq!(glibc("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!([glibc("GCC_3.0"), glibc("GLIBC_PRIVATE")], [None, None]);
    }

    #[test]
    fn a_program_that_needs_a_newer_glibc_is_rejected() {
        let this = std::env::current_exe().unwrap();
        let (major, minor) = needed(&std::fs::read(&this).unwrap()).unwrap();
        check(&this, (major, minor)).unwrap();
        let error = check(&this, (major, minor - 1)).unwrap_err().to_string();
        assert!(
            error.contains(&format!("needs glibc {major}.{minor};")),
            "{error}"
        );
    }
}
