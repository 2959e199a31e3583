//! Turns the calling process into a frozen template.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use cellblock_jail::error::SyscallResult;
use cellblock_jail::{Error, Result};

use super::key;
use super::manifest::{FileStamp, FrozenManifest, FrozenPart, PartSource};
use super::place::FrozenPlace;
use super::stub::{ANY, CallTable, LOADER, LOADER_SIZE, PARKING, PARKING_SIZE};
use super::{CONTROL, DIRECTORY};

/// End of the addresses of a process.
const ADDRESSES: u64 = 0x7fff_ffff_f000;
/// Size that the C library registers at least for restartable sequences.
const RESTARTABLE: u32 = 32;
/// Later sizes.
const RESTARTABLE_SIZES: [u32; 4] = [RESTARTABLE, 64, 96, 128];
const UNREGISTER: i32 = 1;
/// `asm/prctl.h`
const ARCH_SET_FS: u64 = 0x1002;

/// Becomes the template of this place, or of its draft; returns only if that fails.
///
/// The caller is a child of the keep with one thread, and its control socket is at its number.
pub(in crate::launcher) fn become_frozen(place: &FrozenPlace, is_draft: bool) -> Error {
    match prepare(place, is_draft) {
        Ok((table, _open)) => table.run(),
        Err(error) => error,
    }
}

fn prepare(place: &FrozenPlace, is_draft: bool) -> Result<(CallTable, Vec<OwnedFd>)> {
    let directory = Path::new(DIRECTORY);
    let path = if is_draft {
        place.draft(directory)
    } else {
        place.manifest(directory)
    };
    let manifest = FrozenManifest::read(File::open(&path).during_on("open", &path)?, &place.key)?;
    let memory = open(&place.memory(directory), manifest.memory.as_ref())?;
    let files = manifest.files.iter();
    let files: Vec<_> = files
        .map(|file| open(Path::new(&file.path), Some(&file.stamp)))
        .collect::<Result<_>>()?;
    let program = open(Path::new(&manifest.program), None)?;
    let mut table = CallTable::default();
    clear(&mut table, &manifest)?;
    for part in &manifest.parts {
        map(&mut table, part, &memory, &files)?;
    }
    restore(&mut table, &manifest, &program);
    forget_restartable()?;
    table.finish(&manifest.thread);
    let mut open = files;
    open.extend([memory, program]);
    Ok((table, open))
}

/// Opens a file if it is still the one that was mapped.
fn open(path: &Path, stamp: Option<&FileStamp>) -> Result<OwnedFd> {
    let file = File::open(path).during_on("open", path)?;
    let found = file.metadata().during_on("look at", path)?;
    if stamp.is_none_or(|stamp| *stamp == FileStamp::of(&found)) {
        return Ok(file.into());
    }
    Err(Error::Child(format!("`{}` has changed", path.display())))
}

/// Unmaps everything, and moves what Linux maps itself to where the template knows it.
fn clear(table: &mut CallTable, manifest: &FrozenManifest) -> Result<()> {
    let areas = key::own_areas(std::process::id().cast_signed())?;
    let special = key::special_areas(&areas);
    let sizes = |list: &[(String, u64, u64)]| -> Vec<(String, u64)> {
        list.iter()
            .map(|(name, start, end)| (name.clone(), end - start))
            .collect()
    };
    let total: u64 = sizes(&special).iter().map(|it| it.1).sum();
    if sizes(&special) != sizes(&manifest.special) || total > PARKING_SIZE {
        return Err(Error::Child("this Linux maps other code for its clocks".into()));
    }
    let flags = u64::from((libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED).cast_unsigned());
    let mut parked = PARKING;
    for (_, start, end) in &special {
        let size = end - start;
        table.call(libc::SYS_mremap, [*start, size, size, flags, parked, 0], parked);
        parked += size;
    }
    for (start, end) in [(0, LOADER), (LOADER + LOADER_SIZE, ADDRESSES)] {
        table.call(libc::SYS_munmap, [start, end - start, 0, 0, 0, 0], 0);
    }
    parked = PARKING;
    for (_, start, end) in &manifest.special {
        let size = end - start;
        table.call(libc::SYS_mremap, [parked, size, size, flags, *start, 0], *start);
        parked += size;
    }
    Ok(())
}

fn map(table: &mut CallTable, part: &FrozenPart, memory: &OwnedFd, files: &[OwnedFd]) -> Result<()> {
    let length = part.end - part.start;
    let (flags, file, offset) = match &part.source {
        PartSource::Memory { offset } => (libc::MAP_PRIVATE, number(memory), *offset),
        PartSource::File {
            index,
            offset,
            shared,
        } => {
            let file = files
                .get(*index)
                .ok_or_else(|| Error::Child("a file is missing".into()))?;
            let kind = if *shared {
                libc::MAP_SHARED
            } else {
                libc::MAP_PRIVATE
            };
            (kind, number(file), *offset)
        }
        PartSource::Anonymous { flags, .. } => (*flags, u64::MAX, 0),
    };
    let flags = u64::from((flags | libc::MAP_FIXED).cast_unsigned());
    let protection = u64::from(part.protection.cast_unsigned());
    let arguments = [part.start, length, protection, flags, file, offset];
    table.call(libc::SYS_mmap, arguments, part.start);
    if let PartSource::Anonymous { advice, copied, .. } = &part.source {
        for advice in advice {
            let advice = u64::from(advice.cast_unsigned());
            // Without it, memory is larger or slower, except for keys.
            let result = if advice == u64::from(libc::MADV_WIPEONFORK.cast_unsigned()) {
                0
            } else {
                ANY
            };
            table.call(libc::SYS_madvise, [part.start, length, advice, 0, 0, 0], result);
        }
        for range in copied {
            let arguments = [number(memory), range.start, range.length, range.offset, 0, 0];
            table.call(libc::SYS_pread64, arguments, range.length);
        }
    }
    Ok(())
}

fn number(file: &OwnedFd) -> u64 {
    u64::from(file.as_raw_fd().unsigned_abs())
}

/// Restores what Linux knows of the process and its thread.
fn restore(table: &mut CallTable, manifest: &FrozenManifest, program: &OwnedFd) {
    let auxiliary = table.keep(&manifest.auxiliary);
    // `struct prctl_mm_map`.
    let mut layout = manifest.layout.to_vec();
    let size = manifest.auxiliary.len() as u64 * 8;
    layout.extend([auxiliary, size | number(program) << 32]);
    let at = table.keep(&layout);
    let (set, map) = (
        u64::from(libc::PR_SET_MM.unsigned_abs()),
        u64::from(libc::PR_SET_MM_MAP.unsigned_abs()),
    );
    let size = layout.len() as u64 * 8;
    table.call(libc::SYS_prctl, [set, map, at, size, 0, 0], 0);
    let after = u64::from(CONTROL) + 1;
    table.call(libc::SYS_close_range, [after, u32::MAX.into(), 0, 0, 0, 0], 0);
    let thread = &manifest.thread;
    table.call(libc::SYS_arch_prctl, [ARCH_SET_FS, thread.base, 0, 0, 0, 0], 0);
    table.call(libc::SYS_set_tid_address, [thread.id_at, 0, 0, 0, 0, 0], ANY);
    table.store(thread.id_at, std::process::id());
    let (list, length) = thread.robust_list;
    table.call(libc::SYS_set_robust_list, [list, length, 0, 0, 0, 0], 0);
    let (restartable, length, signature) = thread.restartable;
    if restartable != 0 {
        let arguments = [restartable, length.into(), 0, signature.into(), 0, 0];
        table.call(libc::SYS_rseq, arguments, 0);
    }
    for signal in (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)) {
        let action = manifest.signals.iter().find(|it| it.0 == signal);
        let action = table.keep(&action.map_or([0; 4], |it| it.1));
        let arguments = [u64::from(signal.unsigned_abs()), action, 0, 8, 0, 0];
        table.call(libc::SYS_rt_sigaction, arguments, 0);
    }
    let name = table.keep(&name(Path::new(&manifest.program)));
    let set = u64::from(libc::PR_SET_NAME.unsigned_abs());
    table.call(libc::SYS_prctl, [set, name, 0, 0, 0, 0], 0);
}

/// Returns the name of a process that executes a program.
fn name(program: &Path) -> [u64; 2] {
    let mut bytes = [0; 16];
    let name = program.file_name().unwrap_or_default().as_encoded_bytes();
    for (to, from) in bytes.iter_mut().zip(name).take(15) {
        *to = *from;
    }
    let (words, _) = bytes.as_chunks();
    let mut both = words.iter().map(|word| u64::from_ne_bytes(*word));
    [both.next().unwrap_or_default(), both.next().unwrap_or_default()]
}

/// Lets Linux forget this process's area of restartable sequences: it would write to it after it is
/// unmapped.
fn forget_restartable() -> Result<()> {
    let symbol = |name: &str| -> Option<*const libc::c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the call reads the name, which outlives it.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found.cast_const())
    };
    let (Some(offset), Some(size)) = (symbol("__rseq_offset"), symbol("__rseq_size")) else {
        // A C library that does not register one.
        return Ok(());
    };
    let base: u64;
    // SAFETY: the C library's thread begins with its own address; both symbols are its constants of
    // these types.
    let (offset, size) = unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) base, options(nostack, readonly, preserves_flags));
        (offset.cast::<isize>().read(), size.cast::<u32>().read())
    };
    if size == 0 {
        return Ok(());
    }
    let area = base.wrapping_add_signed(i64::try_from(offset).unwrap_or_default());
    let signature = 0x5305_3053_u32;
    let forgotten = RESTARTABLE_SIZES.iter().any(|size| {
        // SAFETY: the call takes numbers; without its area, this thread only loses a shortcut.
        unsafe { libc::syscall(libc::SYS_rseq, area, *size, UNREGISTER, signature) == 0 }
    });
    if forgotten {
        return Ok(());
    }
    Err(std::io::Error::last_os_error()).during("unregister restartable sequences")
}
