//! Kept contents: one anonymous file that only the guest has open.
//!
//! User code cannot reach it: it has no path, and the guest hides its descriptors. Its pages count
//! as memory of the sandbox.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::{Errno, pread, pwrite};

/// Number of bytes that are copied at once.
const PART: usize = 256 * 1024;
/// Extents start at multiples of this, so that freeing one frees whole pages.
const PAGE: u64 = 4096;

/// A content in the arena. The arena takes it back when its last owner releases it.
pub(super) type Content = Rc<Extent>;

/// A part of the arena.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extent {
    offset: u64,
    length: u64,
}

impl Extent {
    /// Returns the length of the content in bytes.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }
}

/// The anonymous file, with the parts of it that are free.
#[derive(Debug)]
pub(super) struct Arena {
    file: OwnedFd,
    /// Free parts below the end, by their offset.
    free: BTreeMap<u64, u64>,
    end: u64,
}

impl Arena {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self {
            file: memfd_create(c"cellblock-files", MemfdFlags::CLOEXEC)?,
            free: BTreeMap::new(),
            end: 0,
        })
    }

    /// Copies the whole content of a file that has `length` bytes. A file that has another length
    /// is an error of the kind `AGAIN`.
    pub(super) fn take_in(&mut self, file: &OwnedFd, length: u64) -> Result<Content, Errno> {
        let offset = self.reserve(length.next_multiple_of(PAGE));
        let copied = copy(file, 0, &self.file, offset, length).and_then(|copied| {
            let more = read(file, &mut [0], length)?;
            if copied == length && more == 0 {
                Ok(())
            } else {
                Err(Errno::AGAIN)
            }
        });
        let content = Rc::new(Extent { offset, length });
        match copied {
            Ok(()) => Ok(content),
            Err(error) => {
                self.release(content);
                Err(error)
            }
        }
    }

    /// Writes a content into an empty file.
    pub(super) fn put_out(&self, content: &Content, file: &OwnedFd) -> Result<(), Errno> {
        match copy(&self.file, content.offset, file, 0, content.length)? {
            copied if copied == content.length => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    /// Tells whether a file has just this content.
    pub(super) fn equals(&self, content: &Content, file: &OwnedFd) -> Result<bool, Errno> {
        let length = usize::try_from(content.length).map_or(PART, |length| length.clamp(1, PART));
        let (mut kept, mut there) = (vec![0; length], vec![0; length]);
        let mut done = 0;
        while done < content.length {
            let wanted = usize::try_from(content.length - done).map_or(length, |left| left.min(length));
            let got = read(&self.file, &mut kept[..wanted], content.offset + done)?;
            let found = read(file, &mut there[..got], done)?;
            if got == 0 || found == 0 || kept[..found] != there[..found] {
                return Ok(false);
            }
            done += found as u64;
        }
        Ok(read(file, &mut [0], content.length)? == 0)
    }

    /// Appends a part of a content to a buffer.
    pub(super) fn read(
        &self,
        content: &Content,
        from: u64,
        length: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let start = into.len();
        into.resize(start + usize::try_from(length).map_err(|_| Errno::FBIG)?, 0);
        let mut done = 0;
        while done < length {
            let place = start + usize::try_from(done).unwrap_or(usize::MAX);
            match read(&self.file, &mut into[place..], content.offset + from + done)? {
                0 => return Err(Errno::IO),
                more => done += more as u64,
            }
        }
        Ok(())
    }

    /// Writes bytes of contents that arrive one after the other, without gaps. Nothing else may be
    /// in the arena.
    pub(super) fn append(&mut self, at: u64, mut part: &[u8]) -> Result<(), Errno> {
        let mut at = at;
        while !part.is_empty() {
            match rustix::io::retry_on_intr(|| pwrite(&self.file, part, at))? {
                0 => return Err(Errno::NOSPC),
                more => (part, at) = (&part[more..], at + more as u64),
            }
        }
        Ok(())
    }

    /// Returns the next content of those.
    pub(super) fn appended(&mut self, length: u64) -> Content {
        let offset = self.end;
        self.end += length;
        Rc::new(Extent { offset, length })
    }

    /// Gives up one ownership of a content, and frees its memory with the last.
    pub(super) fn release(&mut self, content: Content) {
        let Ok(extent) = Rc::try_unwrap(content) else {
            return;
        };
        let length = extent.length.next_multiple_of(PAGE);
        if length == 0 {
            return;
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // At worst the memory is freed with the sandbox.
        let _ = fallocate(&self.file, hole, extent.offset, length);
        let (mut offset, mut length) = (extent.offset, length);
        if let Some((&before, &size)) = self.free.range(..offset).next_back()
            && before + size == offset
        {
            self.free.remove(&before);
            (offset, length) = (before, length + size);
        }
        if let Some(size) = self.free.remove(&(offset + length)) {
            length += size;
        }
        if offset + length == self.end {
            self.end = offset;
        } else {
            self.free.insert(offset, length);
        }
    }

    /// Returns the offset of the first free part that is large enough.
    fn reserve(&mut self, length: u64) -> u64 {
        let fit = self.free.iter().find(|(_, size)| **size >= length);
        let Some((&offset, &size)) = fit.filter(|_| length > 0) else {
            let offset = self.end;
            self.end += length;
            return offset;
        };
        self.free.remove(&offset);
        if size > length {
            self.free.insert(offset + length, size - length);
        }
        offset
    }
}

/// Copies up to `length` bytes, and returns how many there were.
fn copy(from: &OwnedFd, at: u64, to: &OwnedFd, start: u64, length: u64) -> Result<u64, Errno> {
    let size = usize::try_from(length).map_or(PART, |length| length.min(PART));
    let mut part = vec![0; size];
    let mut done = 0;
    while done < length {
        let wanted = usize::try_from(length - done).map_or(size, |left| left.min(size));
        let got = read(from, &mut part[..wanted], at + done)?;
        if got == 0 {
            break;
        }
        let mut written = 0;
        while written < got {
            match pwrite(to, &part[written..got], start + done + written as u64) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        done += got as u64;
    }
    Ok(done)
}

fn read(file: &OwnedFd, part: &mut [u8], offset: u64) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| pread(file, &mut *part, offset))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    fn file(content: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file.into()
    }

    fn content(arena: &Arena, kept: &Content) -> Vec<u8> {
        let file = file(b"");
        arena.put_out(kept, &file).unwrap();
        let mut file = std::fs::File::from(file);
        let mut content = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn the_space_of_a_released_content_is_used_again() {
        let mut arena = Arena::new().unwrap();
        let contents: Vec<Vec<u8>> = (1..6_u8).map(|n| vec![n; usize::from(n) * 3000]).collect();
        let mut kept: Vec<_> = contents
            .iter()
            .map(|it| arena.take_in(&file(it), it.len() as u64).unwrap())
            .collect();
        let end = arena.end;
        let shared = Rc::clone(&kept[1]);
        arena.release(kept.remove(1));
        assert_eq!(content(&arena, &shared), contents[1], "it has another owner");
        arena.release(shared);
        arena.release(kept.remove(1));
        assert_eq!(arena.free.len(), 1, "neighbors become one: {:?}", arena.free);
        let again = arena.take_in(&file(&[9; 14_000]), 14_000).unwrap();
        assert_eq!(arena.end, end);
        assert_eq!(content(&arena, &again), [9; 14_000]);
        for (kept, expected) in kept.iter().zip([&contents[0], &contents[3], &contents[4]]) {
            assert_eq!(&content(&arena, kept), expected);
        }
        for each in kept {
            arena.release(each);
        }
        arena.release(again);
        assert_eq!((arena.end, arena.free.len()), (0, 0));
    }

    #[test]
    fn a_file_with_another_length_than_announced_is_rejected() {
        let mut arena = Arena::new().unwrap();
        for length in [2, 4] {
            assert_eq!(arena.take_in(&file(b"abc"), length), Err(Errno::AGAIN));
        }
        assert_eq!(arena.end, 0);
        let empty = arena.take_in(&file(b""), 0).unwrap();
        assert_eq!(content(&arena, &empty), b"");
    }
}
