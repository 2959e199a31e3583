//! The mappings of a process, and how those of another one differ from them.

use cellblock_jail::Error;
use cellblock_jail::error::SyscallResult;
use cellblock_protocol::Obstacle;

use super::MoveResult;

/// Maximum size of a list of mappings, which Linux limits to 65,530.
const MAX_LIST: usize = 32 * 1024 * 1024;

/// Source of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::launcher) enum AreaBacking {
    /// Memory of the process, including its heap.
    Memory,
    /// Its stack, which grows.
    Stack,
    /// A file: its device and inode, as Linux writes them, and its path.
    File { id: String, path: String },
    /// Something of Linux itself.
    Special(String),
}

/// A range of addresses with one backing and one protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::launcher) struct Area {
    pub(in crate::launcher) start: u64,
    pub(in crate::launcher) end: u64,
    pub(in crate::launcher) protection: i32,
    pub(in crate::launcher) shared: bool,
    pub(in crate::launcher) offset: u64,
    pub(in crate::launcher) backing: AreaBacking,
    pub(in crate::launcher) is_heap: bool,
}

impl Area {
    /// Reads the mappings of a process.
    pub(in crate::launcher) fn read(pid: i32) -> MoveResult<Vec<Self>> {
        let path = format!("/proc/{pid}/maps");
        let list = std::fs::read(&path).during_on("read", &path)?;
        if list.len() > MAX_LIST {
            return Err(Obstacle::TooManyMappings.into());
        }
        let list = String::from_utf8_lossy(&list);
        let areas: Result<_, Error> = list
            .lines()
            .map(|line| {
                Self::parse(line).ok_or_else(|| Error::Child(format!("read `{path}`: an unknown form")))
            })
            .collect();
        Ok(areas?)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(6, ' ');
        let (start, end) = parts.next()?.split_once('-')?;
        let permissions = parts.next()?.as_bytes();
        let offset = parts.next()?;
        let (device, inode) = (parts.next()?, parts.next()?);
        let path = parts.next().unwrap_or_default().trim_start();
        let number = |text| u64::from_str_radix(text, 16).ok();
        let mut protection = libc::PROT_NONE;
        for (letter, bit) in permissions
            .iter()
            .zip([libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC])
        {
            if *letter != b'-' {
                protection |= bit;
            }
        }
        let backing = if inode != "0" {
            AreaBacking::File {
                id: format!("{device} {inode}"),
                path: path.to_owned(),
            }
        } else if path.is_empty() || path == "[heap]" || path.starts_with("[anon") {
            AreaBacking::Memory
        } else if path == "[stack]" {
            AreaBacking::Stack
        } else {
            AreaBacking::Special(path.to_owned())
        };
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            protection,
            shared: permissions.get(3) == Some(&b's'),
            offset: number(offset)?,
            backing,
            is_heap: path == "[heap]",
        })
    }

    /// Returns the part between two addresses.
    fn part(&self, start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            offset: self.offset + (start - self.start),
            ..self.clone()
        }
    }

    /// Returns whether the same is mapped at an address in both.
    fn agrees(&self, other: &Self, at: u64) -> bool {
        let memory = |area: &Self| matches!(area.backing, AreaBacking::Memory | AreaBacking::Stack);
        if self.shared != other.shared {
            return false;
        }
        if memory(self) || memory(other) {
            return memory(self) && memory(other);
        }
        match (&self.backing, &other.backing) {
            (AreaBacking::File { id: one, .. }, AreaBacking::File { id: two, .. }) => {
                one == two && self.offset + (at - self.start) == other.offset + (at - other.start)
            }
            (one, two) => one == two && (self.start, self.end) == (other.start, other.end),
        }
    }

    /// Returns whether its content can be moved.
    fn check(&self) -> MoveResult<()> {
        if self.shared && self.protection & libc::PROT_WRITE != 0 {
            return Err(Obstacle::SharedMemory.into());
        }
        match &self.backing {
            AreaBacking::File { path, .. } if path.ends_with(" (deleted)") => {
                Err(Obstacle::RemovedMapping.into())
            }
            AreaBacking::File { path, .. }
                if ["/workspace/", "/tmp/", "/dev/"]
                    .iter()
                    .any(|root| path.starts_with(root)) =>
            {
                Err(Obstacle::MappedFile.into())
            }
            _ if self.shared => Err(Obstacle::SharedMapping.into()),
            _ => Ok(()),
        }
    }
}

/// Steps that make the mappings of one process equal to another's.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::launcher) struct Plan {
    /// Ranges to unmap.
    pub(in crate::launcher) gone: Vec<(u64, u64)>,
    /// Areas to map, and whether they are below the stack.
    pub(in crate::launcher) new: Vec<Area>,
    /// Areas whose protection changes.
    pub(in crate::launcher) protect: Vec<Area>,
}

impl Plan {
    pub(in crate::launcher) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Compares the mappings that are wanted with those that exist. Both are sorted.
    pub(in crate::launcher) fn of(wanted: &[Area], there: &[Area]) -> MoveResult<Self> {
        let mut plan = Self::default();
        let mut edges: Vec<u64> = wanted
            .iter()
            .chain(there)
            .flat_map(|area| [area.start, area.end])
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let (mut one, mut two) = (wanted.iter().peekable(), there.iter().peekable());
        for range in edges.windows(2) {
            let (start, end) = (range[0], range[1]);
            while one.next_if(|area| area.end <= start).is_some() {}
            while two.next_if(|area| area.end <= start).is_some() {}
            let want = one.peek().copied().filter(|area| area.start <= start);
            let have = two.peek().copied().filter(|area| area.start <= start);
            match (want, have) {
                (Some(want), Some(have)) if want.agrees(have, start) => {
                    if want.protection != have.protection {
                        extend(&mut plan.protect, want.part(start, end));
                    }
                }
                (want, have) => {
                    if [want, have]
                        .iter()
                        .flatten()
                        .any(|area| matches!(area.backing, AreaBacking::Special(_)))
                    {
                        return Err(Obstacle::UnusualMapping.into());
                    }
                    if let Some(want) = want {
                        want.check()?;
                        extend(&mut plan.new, want.part(start, end));
                    }
                    if have.is_some() {
                        match plan.gone.last_mut() {
                            Some(last) if last.1 == start => last.1 = end,
                            _ => plan.gone.push((start, end)),
                        }
                    }
                }
            }
        }
        Ok(plan)
    }
}

/// Adds an area, to the last one if it continues that.
fn extend(areas: &mut Vec<Area>, area: Area) {
    if let Some(last) = areas.last_mut()
        && last.end == area.start
        && last.protection == area.protection
        && last.backing == area.backing
        && (matches!(area.backing, AreaBacking::Memory | AreaBacking::Stack)
            || last.offset + (last.end - last.start) == area.offset)
    {
        last.end = area.end;
    } else {
        areas.push(area);
    }
}

/// Returns the end of the heap.
pub(in crate::launcher) fn heap_end(areas: &[Area]) -> Option<u64> {
    areas
        .iter()
        .filter(|area| area.is_heap)
        .map(|area| area.end)
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::transfer::MoveError;

    fn areas(text: &str) -> Vec<Area> {
        text.lines()
            .map(|line| Area::parse(line.trim()).unwrap())
            .collect()
    }

    fn obstacle(wanted: &str) -> Obstacle {
        match Plan::of(&areas(wanted), &[]) {
            Err(MoveError::Obstacle(obstacle)) => obstacle,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn equal_lists_need_no_steps_however_they_are_split() {
        let one = areas("1000-3000 rw-p 00000000 00:00 0 \n3000-5000 r-xp 00001000 fd:01 7   /opt/lib.so");
        let two = areas(
            "1000-2000 rw-p 00000000 00:00 0 [heap]\n2000-3000 rw-p 00000000 00:00 0\n\
             3000-4000 r-xp 00001000 fd:01 7 /opt/lib.so\n4000-5000 r-xp 00002000 fd:01 7 /opt/lib.so",
        );
        assert!(Plan::of(&one, &two).unwrap().is_empty());
        assert!(Plan::of(&two, &one).unwrap().is_empty());
        assert_eq!(heap_end(&two), Some(0x2000));
    }

    #[test]
    fn what_differs_is_unmapped_mapped_and_protected() {
        let wanted = areas(
            "1000-3000 rw-p 00000000 00:00 0\n4000-5000 r--p 00000000 00:00 0\n\
             6000-8000 r-xp 00003000 fd:01 7 /opt/lib.so",
        );
        let there = areas(
            "2000-3000 rw-p 00000000 00:00 0\n4000-5000 rw-p 00000000 00:00 0\n\
             6000-9000 rw-p 00000000 00:00 0",
        );
        let plan = Plan::of(&wanted, &there).unwrap();
        assert_eq!(plan.gone, [(0x6000, 0x9000)]);
        let ranges = |areas: &[Area]| {
            areas
                .iter()
                .map(|area| (area.start, area.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(ranges(&plan.new), [(0x1000, 0x2000), (0x6000, 0x8000)]);
        assert_eq!(ranges(&plan.protect), [(0x4000, 0x5000)]);
    }

    #[test]
    fn a_mapping_that_cannot_be_moved_is_named() {
        for (line, named) in [
            (
                "1000-2000 rw-s 00000000 00:01 9 /dev/zero (deleted)",
                Obstacle::SharedMemory,
            ),
            ("1000-2000 r--s 00000000 fd:01 9 /opt/x", Obstacle::SharedMapping),
            (
                "1000-2000 r--p 00000000 00:20 9 /workspace/x",
                Obstacle::MappedFile,
            ),
            (
                "1000-2000 r--p 00000000 00:20 9 /memfd:x (deleted)",
                Obstacle::RemovedMapping,
            ),
            (
                "1000-2000 r--p 00000000 00:00 0 [uprobes]",
                Obstacle::UnusualMapping,
            ),
        ] {
            assert_eq!(obstacle(line), named, "{line}");
        }
    }
}
