//! Makes the mappings of the target equal to those of the copy.

use std::os::unix::fs::FileExt;

use cellblock_jail::Error;
use cellblock_jail::error::SyscallResult;
use cellblock_protocol::Obstacle;

use super::MoveResult;
use super::areas::{Area, AreaBacking, Plan, heap_end};
use super::tracee::Tracee;

/// Longest path of a mapped file.
const MAX_PATH: usize = 4000;

/// Adapts the target.
pub(super) fn adapt(to: &mut Tracee, wanted: &[Area]) -> MoveResult<()> {
    let mut there = Area::read(to.pid)?;
    if let (Some(end), Some(own)) = (heap_end(wanted), heap_end(&there))
        && end != own
    {
        let reached = to.must("move the end of the heap", libc::SYS_brk, [end, 0, 0, 0, 0, 0])?;
        if reached != end {
            return Err(Error::Child("the heap does not fit into the other sandbox".into()).into());
        }
        there = Area::read(to.pid)?;
    }
    let plan = Plan::of(wanted, &there)?;
    for (start, end) in &plan.gone {
        to.must(
            "unmap memory",
            libc::SYS_munmap,
            [*start, end - start, 0, 0, 0, 0],
        )?;
    }
    for area in &plan.new {
        map(to, area, &there)?;
    }
    for area in &plan.protect {
        let arguments = [area.start, area.end - area.start, protection(area), 0, 0, 0];
        to.must("protect memory", libc::SYS_mprotect, arguments)?;
    }
    Ok(())
}

fn protection(area: &Area) -> u64 {
    u64::from(area.protection.cast_unsigned())
}

fn map(to: &Tracee, area: &Area, there: &[Area]) -> MoveResult<()> {
    let stack = there.iter().find(|area| area.backing == AreaBacking::Stack);
    let mut flags = libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE;
    let (mut file, mut offset) = (u64::MAX, 0);
    match &area.backing {
        AreaBacking::Memory | AreaBacking::Stack => {
            flags |= libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            if area.backing == AreaBacking::Stack && stack.is_some_and(|stack| area.end <= stack.start) {
                flags |= libc::MAP_GROWSDOWN;
            }
        }
        AreaBacking::File { path, .. } => {
            file = open(to, path, stack)?;
            offset = area.offset;
        }
        AreaBacking::Special(_) => return Err(Obstacle::UnusualMapping.into()),
    }
    let flags = u64::from(flags.cast_unsigned());
    let arguments = [
        area.start,
        area.end - area.start,
        protection(area),
        flags,
        file,
        offset,
    ];
    to.must("map memory", libc::SYS_mmap, arguments)?;
    if file != u64::MAX {
        to.must("close a file", libc::SYS_close, [file, 0, 0, 0, 0, 0])?;
    }
    Ok(())
}

/// Lets the target open a file in its own room. Whether that is the same file is compared afterward.
fn open(to: &Tracee, path: &str, stack: Option<&Area>) -> MoveResult<u64> {
    let Some(stack) = stack.filter(|_| path.len() < MAX_PATH && path.starts_with('/')) else {
        return Err(Obstacle::MappedFile.into());
    };
    // The lowest page of its stack, which is overwritten later.
    let mut text = path.as_bytes().to_vec();
    text.push(0);
    to.memory
        .write_all_at(&text, stack.start)
        .during("write a path")?;
    let flags = u64::from((libc::O_RDONLY | libc::O_CLOEXEC).cast_unsigned());
    let here = i64::from(libc::AT_FDCWD).cast_unsigned();
    match to.call(libc::SYS_openat, [here, stack.start, flags, 0, 0, 0])? {
        Ok(file) => Ok(file),
        Err(_) => Err(Obstacle::MissingMapping.into()),
    }
}
