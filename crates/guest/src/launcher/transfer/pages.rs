//! Copies the pages that differ.
//!
//! Both processes are descendants of one template and share what neither has written since. Whether
//! two pages are the same one is known for sure by their physical addresses. Where the host may not
//! see these, a page that one of both has alone is copied, and any other is compared.

use std::os::fd::OwnedFd;

use cellblock_jail::error::SyscallResult;
use cellblock_jail::{Error, Result};
use rustix::io::pread;

use super::areas::{Area, AreaBacking};
use super::tracee::Tracee;

const PAGE: usize = 4096;
/// The same, for addresses.
const STEP: u64 = PAGE as u64;
/// Number of pages that are looked at, and copied, at once: those of a large page.
const PART: usize = 512;

/// Bits of an entry of `pagemap`.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
const ALONE: u64 = 1 << 56;
const ADDRESS: u64 = (1 << 55) - 1;

/// Treatment of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageStep {
    Skip,
    Compare,
    Copy,
}

/// Copies every page of the areas that differs.
pub(in crate::launcher) fn copy(
    from: &Tracee,
    to: &Tracee,
    areas: &[Area],
    shown: Option<&[OwnedFd; 2]>,
) -> Result<()> {
    let own = [pagemap(from.pid)?, pagemap(to.pid)?];
    let pagemaps = shown.unwrap_or(&own);
    let mut entries = [vec![0_u64; PART], vec![0_u64; PART]];
    let mut again = vec![0_u64; PART];
    let mut content = vec![0_u8; PART * PAGE];
    let mut other = vec![0_u8; PART * PAGE];
    for area in areas {
        if matches!(area.backing, AreaBacking::Special(_)) || area.shared {
            continue;
        }
        let mut at = area.start;
        while at < area.end {
            let count = pages_of_part(at, area.end);
            for (pagemap, entries) in pagemaps.iter().zip(&mut entries) {
                read_entries(pagemap, at, &mut entries[..count])?;
            }
            // Linux may move a page to another address, and another page to the one that it had. A
            // page of the copy that did not move while those of the target were read is not
            // mistaken for another.
            read_entries(&pagemaps[0], at, &mut again[..count])?;
            let steps: Vec<_> = (0..count)
                .map(|index| match (entries[0][index], again[index]) {
                    (one, same) if one == same => step(one, entries[1][index], shown.is_some()),
                    _ => PageStep::Copy,
                })
                .collect();
            let new = |entry: &u64| entry & (PRESENT | SWAPPED) == 0;
            if count == PART
                && area.backing == AreaBacking::Memory
                && steps.iter().all(|it| *it == PageStep::Copy)
                && entries[1].iter().all(new)
            {
                to.back_by_large_page(at, PART * PAGE)?;
            }
            let mut first = 0;
            while first < count {
                let kind = steps[first];
                let length = steps[first..].iter().take_while(|step| **step == kind).count();
                let (start, size) = (at + first as u64 * STEP, length * PAGE);
                match kind {
                    PageStep::Skip => {}
                    PageStep::Copy => {
                        from.read(start, &mut content[..size])?;
                        to.write(start, &content[..size])?;
                    }
                    PageStep::Compare => {
                        from.read(start, &mut content[..size])?;
                        to.read(start, &mut other[..size])?;
                        let pairs = content[..size].chunks(PAGE).zip(other[..size].chunks(PAGE));
                        for (index, (one, two)) in pairs.enumerate() {
                            if one != two {
                                to.write(start + index as u64 * STEP, one)?;
                            }
                        }
                    }
                }
                first += length;
            }
            at += count as u64 * STEP;
        }
    }
    Ok(())
}

/// Checks that both have the same content, wherever one of them has pages of its own.
pub(in crate::launcher) fn compare(from: &Tracee, to: &Tracee, areas: &[Area]) -> Result<()> {
    let pagemaps = [pagemap(from.pid)?, pagemap(to.pid)?];
    let size = PART * PAGE;
    let mut contents = [vec![0_u8; size], vec![0_u8; size]];
    let mut entries = [vec![0_u64; PART], vec![0_u64; PART]];
    for area in areas {
        if matches!(area.backing, AreaBacking::Special(_)) || area.shared {
            continue;
        }
        for at in (area.start..area.end).step_by(size) {
            let size = usize::try_from(area.end - at).unwrap_or(size).min(size);
            let count = size / PAGE;
            for (pagemap, entries) in pagemaps.iter().zip(&mut entries) {
                read_entries(pagemap, at, &mut entries[..count])?;
            }
            let pairs = entries[0].iter().zip(&entries[1]).take(count);
            if pairs
                .clone()
                .all(|(one, two)| step(*one, *two, false) == PageStep::Skip)
            {
                continue;
            }
            for (process, content) in [from, to].into_iter().zip(&mut contents) {
                process.read(at, &mut content[..size])?;
            }
            if contents[0][..size] != contents[1][..size] {
                return Err(Error::Child(format!("the memory at {at:x} was not moved")));
            }
        }
    }
    Ok(())
}

/// Lists the ranges of pages that a process has itself, whatever is mapped there. Gaps of at most
/// `gap` bytes belong to them.
pub(in crate::launcher) fn own_ranges(pid: i32, start: u64, end: u64, gap: u64) -> Result<Vec<(u64, u64)>> {
    let pagemap = pagemap(pid)?;
    let mut entries = vec![0_u64; PART];
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut at = start;
    while at < end {
        let count = pages_of_part(at, end);
        let entries = &mut entries[..count];
        read_entries(&pagemap, at, entries)?;
        for entry in entries {
            if is_own(*entry) {
                match ranges.last_mut() {
                    Some(last) if at - last.1 <= gap => last.1 = at + STEP,
                    _ => ranges.push((at, at + STEP)),
                }
            }
            at += STEP;
        }
    }
    Ok(ranges)
}

/// Returns whether a page is not one of a file that is mapped there.
fn is_own(entry: u64) -> bool {
    entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0
}

/// Decides what to do with a page, by its entries in both.
fn step(one: u64, two: u64, shown: bool) -> PageStep {
    if !is_own(one) && !is_own(two) {
        // Untouched, or unchanged content of one file.
        PageStep::Skip
    } else if one & two & PRESENT == 0 {
        PageStep::Copy
    } else if shown && one & ADDRESS != 0 && two & ADDRESS != 0 {
        if one & ADDRESS == two & ADDRESS {
            PageStep::Skip
        } else {
            PageStep::Copy
        }
    } else if (one | two) & (ALONE | OF_FILE) != 0 {
        PageStep::Copy
    } else {
        PageStep::Compare
    }
}

fn pagemap(pid: i32) -> Result<OwnedFd> {
    let path = format!("/proc/{pid}/pagemap");
    Ok(std::fs::File::open(&path).during_on("open", &path)?.into())
}

fn read_entries(pagemap: &OwnedFd, at: u64, entries: &mut [u64]) -> Result<()> {
    let mut bytes = vec![0; entries.len() * 8];
    let read = pread(pagemap, &mut *bytes, at / STEP * 8).during("read the pages of a kernel")?;
    if read != bytes.len() {
        return Err(Error::Child("read the pages of a kernel: it has ended".into()));
    }
    for (entry, bytes) in entries.iter_mut().zip(bytes.chunks_exact(8)) {
        *entry = u64::from_ne_bytes(bytes.try_into().expect("chunks have 8 bytes"));
    }
    Ok(())
}

/// Returns how many pages of an area are looked at from an address on: at most to where the next
/// large page can begin.
fn pages_of_part(at: u64, end: u64) -> usize {
    let part = PART as u64;
    let pages = ((end - at) / STEP).min(part - at / STEP % part);
    usize::try_from(pages).unwrap_or(PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_area_end_where_large_pages_begin() {
        let large = PART as u64 * STEP;
        let end = 4 * large + STEP;
        assert_eq!(pages_of_part(large - 3 * STEP, end), 3);
        assert_eq!(pages_of_part(large, end), PART);
        assert_eq!(pages_of_part(4 * large, end), 1);
    }

    #[test]
    fn only_what_is_surely_the_same_page_is_skipped() {
        let page = |address: u64| PRESENT | address;
        for (one, two, shown, expected) in [
            (0, 0, false, PageStep::Skip),
            (page(1) | OF_FILE, page(1) | OF_FILE, false, PageStep::Skip),
            (page(1) | OF_FILE, 0, true, PageStep::Skip),
            (page(1), page(1), true, PageStep::Skip),
            (page(1), page(2), true, PageStep::Copy),
            // The host may not see addresses after all.
            (page(0), page(0), true, PageStep::Compare),
            (page(0), page(0), false, PageStep::Compare),
            (page(0) | ALONE, page(0), false, PageStep::Copy),
            (page(0), page(0) | ALONE, false, PageStep::Copy),
            (page(0), page(0) | OF_FILE, false, PageStep::Copy),
            (page(1), 0, true, PageStep::Copy),
            (0, page(1), true, PageStep::Copy),
            (SWAPPED, SWAPPED, true, PageStep::Copy),
            (SWAPPED, page(1), false, PageStep::Copy),
        ] {
            assert_eq!(step(one, two, shown), expected, "{one:x} {two:x} {shown}");
        }
    }
}
