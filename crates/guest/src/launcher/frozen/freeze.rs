//! Writes a stopped template to files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use cellblock_jail::error::SyscallResult;
use cellblock_jail::{Error, Result};

use super::key::as_error;
use super::manifest::{
    CopiedRange, FileStamp, FrozenManifest, FrozenPart, LAYOUT, MappedFile, PartSource, ThreadState,
};
use super::place::ClaimedFiles;
use super::stub::{LOADER, LOADER_SIZE};
use super::{CONTROL, key};
use crate::launcher::transfer::Process;
use crate::launcher::transfer::areas::{Area, AreaBacking};
use crate::launcher::transfer::pages::own_ranges;
use crate::launcher::transfer::tracee::{Registers, Tracee};

/// Largest gap between written pages that is part of the memory's file, too: each additional mapping
/// makes every fork slower.
const GAP: u64 = 16 * PAGE;
const PAGE: u64 = 4096;
/// Maximum size of the memory's file.
const MAX_MEMORY: u64 = 4 << 30;
const CHUNK: usize = 1 << 20;

/// Writes a template that waits in its `poll` for the first message.
pub(super) fn write(process: &Process, key: &str, files: &ClaimedFiles) -> Result<()> {
    let tracee = Tracee::seize(process, true)?;
    let (tracee, registers) = tracee.stop_on(CONTROL).map_err(as_error)?;
    tracee
        .check_thread_id(&registers, process.inside)
        .map_err(as_error)?;
    check_descriptors(process.pid)?;
    let areas = key::own_areas(process.pid)?;
    if areas
        .iter()
        .any(|area| area.start < LOADER + LOADER_SIZE && area.end > LOADER)
    {
        return Err(Error::Child(
            "the template's memory is where the loader would be".into(),
        ));
    }
    let stack = areas.iter().find(|area| area.backing == AreaBacking::Stack);
    let scratch = stack
        .map(|stack| stack.start)
        .ok_or_else(|| Error::Child("the template has no stack".into()))?;
    let signals = signals(&tracee, scratch)?;
    let end_of_heap = tracee.must("find the end of the heap", libc::SYS_brk, [0; 6])?;
    let program = fs::read_link(format!("/proc/{}/exe", process.pid)).during("find the interpreter")?;
    let mut manifest = FrozenManifest {
        key: key.to_owned(),
        program: program.display().to_string(),
        special: key::special_areas(&areas),
        layout: layout(process.pid, end_of_heap)?,
        auxiliary: words(
            &fs::read(format!("/proc/{}/auxv", process.pid)).during("read the auxiliary vector")?,
        ),
        thread: thread(&tracee, &registers)?,
        signals,
        ..FrozenManifest::default()
    };
    let mut writer = MemoryWriter {
        tracee: &tracee,
        file: &files.memory,
        next: 0,
    };
    let flags = flags(process.pid)?;
    for area in &areas {
        let flags = flags.get(&area.start).map_or("", String::as_str);
        writer.add(area, flags, &mut manifest)?;
    }
    files.memory.set_len(writer.next).during("write frozen memory")?;
    files.memory.sync_all().during("keep frozen memory")?;
    let written = files.memory.metadata().during("look at frozen memory")?;
    manifest.memory = Some(FileStamp::of(&written));
    manifest.write(&files.manifest)
}

/// Checks that it has no open files but those that every template has.
fn check_descriptors(pid: i32) -> Result<()> {
    let path = format!("/proc/{pid}/fd");
    for entry in fs::read_dir(&path).during_on("list", &path)?.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        if number.is_none_or(|number: u32| number > CONTROL) {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            return Err(Error::Child(format!(
                "a library of the image left `{}` open",
                target.display()
            )));
        }
    }
    Ok(())
}

fn thread(tracee: &Tracee, registers: &Registers) -> Result<ThreadState> {
    let mut extended = tracee.read_extended()?;
    // `fxsave`, without what is behind it.
    extended.resize(64, 0);
    if let Some(own) = extended.get_mut(58..) {
        own.fill(0);
    }
    let it = registers;
    Ok(ThreadState {
        // It begins the system call again in which it waits.
        registers: vec![
            it.r8,
            it.r9,
            it.r10,
            it.r11,
            it.r12,
            it.r13,
            it.r14,
            it.r15,
            it.rdi,
            it.rsi,
            it.rbp,
            it.rbx,
            it.rdx,
            it.orig_rax,
            it.rcx,
            it.rsp,
            it.rip - 2,
            it.eflags,
        ],
        extended,
        blocked: tracee.read_mask()?,
        base: it.fs_base,
        robust_list: tracee.robust_list()?,
        restartable: tracee.restartable()?,
        id_at: Tracee::thread_id_at(registers),
    })
}

/// Reads the signals that have handlers or are ignored.
fn signals(tracee: &Tracee, scratch: u64) -> Result<Vec<(i32, [u64; 4])>> {
    let mut all = Vec::new();
    for number in (1..=64).filter(|number| ![libc::SIGKILL, libc::SIGSTOP].contains(number)) {
        let arguments = [u64::from(number.unsigned_abs()), 0, scratch, 8, 0, 0];
        tracee.must("read a signal's action", libc::SYS_rt_sigaction, arguments)?;
        let mut action = [0; 32];
        tracee.read(scratch, &mut action)?;
        let [handler, flags, restorer, mask] = words(&action)[..] else {
            continue;
        };
        if handler != 0 {
            all.push((number, [handler, flags, restorer, mask]));
        }
    }
    Ok(all)
}

/// Reads where Linux keeps code, data, heap, stack, arguments and environment.
fn layout(pid: i32, end_of_heap: u64) -> Result<[u64; LAYOUT]> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).during_on("read", &path)?;
    // Behind the name, which may contain anything, comes the third field.
    let fields: Vec<_> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let field = |number: usize| -> Result<u64> {
        let found = fields.get(number - 3).and_then(|field| field.trim().parse().ok());
        found.ok_or_else(|| Error::Child(format!("read `{path}`: it lacks field {number}")))
    };
    Ok([
        field(26)?,
        field(27)?,
        field(45)?,
        field(46)?,
        field(47)?,
        end_of_heap,
        field(28)?,
        field(48)?,
        field(49)?,
        field(50)?,
        field(51)?,
    ])
}

/// Reads what Linux knows of each mapping, by its start.
fn flags(pid: i32) -> Result<HashMap<u64, String>> {
    let path = format!("/proc/{pid}/smaps");
    let text = fs::read(&path).during_on("read", &path)?;
    let (mut flags, mut start) = (HashMap::new(), 0);
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(found) = line.strip_prefix("VmFlags: ") {
            flags.insert(start, found.to_owned());
        } else if let Some((first, _)) = line.split_once('-')
            && let Ok(first) = u64::from_str_radix(first, 16)
        {
            start = first;
        }
    }
    Ok(flags)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let (whole, _) = bytes.as_chunks();
    whole.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

/// Appends the content of memory to a file.
struct MemoryWriter<'a> {
    tracee: &'a Tracee,
    file: &'a File,
    next: u64,
}

impl MemoryWriter<'_> {
    /// Adds the parts of an area.
    fn add(&mut self, area: &Area, flags: &str, manifest: &mut FrozenManifest) -> Result<()> {
        let has = |flag: &str| flags.split(' ').any(|it| it == flag);
        // Not copied by forks, of a device, of large pages, or watched by a process.
        if ["dc", "io", "pf", "ht", "um", "uw"].iter().any(|flag| has(flag))
            && !matches!(area.backing, AreaBacking::Special(_))
        {
            return Err(Error::Child(format!(
                "the template has an unusual mapping ({flags})"
            )));
        }
        let plain = |start, end, source| FrozenPart {
            start,
            end,
            protection: area.protection,
            source,
        };
        let rest = match &area.backing {
            AreaBacking::Special(name) if name.starts_with("[v") => return Ok(()),
            AreaBacking::Special(name) => {
                return Err(Error::Child(format!("the template has a mapping of `{name}`")));
            }
            AreaBacking::File { path, .. } => {
                let writes = area.shared && area.protection & libc::PROT_WRITE != 0;
                if writes || path.ends_with(" (deleted)") {
                    return Err(Error::Child(format!("the template has a mapping of `{path}`")));
                }
                Some(file_index(manifest, path)?)
            }
            AreaBacking::Memory | AreaBacking::Stack if area.shared => {
                return Err(Error::Child("the template shares memory".into()));
            }
            AreaBacking::Memory | AreaBacking::Stack => None,
        };
        let source = |start: u64, copied: Vec<CopiedRange>| match rest {
            Some(index) => PartSource::File {
                index,
                offset: area.offset + (start - area.start),
                shared: area.shared,
            },
            None => anonymous(area, flags, copied),
        };
        // Keys that Linux clears in each child, and takes away when memory is short.
        let own = if area.shared || has("wf") || has("dp") {
            Vec::new()
        } else {
            own_ranges(self.tracee.pid, area.start, area.end, GAP)?
        };
        if area.backing == AreaBacking::Stack {
            // A mapped file does not grow.
            let copied = own.iter().map(|(start, end)| self.copy(*start, *end));
            let source = source(area.start, copied.collect::<Result<_>>()?);
            manifest.parts.push(plain(area.start, area.end, source));
            return Ok(());
        }
        let mut at = area.start;
        for (start, end) in own {
            if at < start {
                manifest.parts.push(plain(at, start, source(at, Vec::new())));
            }
            let offset = self.copy(start, end)?.offset;
            manifest
                .parts
                .push(plain(start, end, PartSource::Memory { offset }));
            at = end;
        }
        if at < area.end {
            manifest.parts.push(plain(at, area.end, source(at, Vec::new())));
        }
        Ok(())
    }

    /// Appends a range of memory. Pages without content take no space.
    fn copy(&mut self, start: u64, end: u64) -> Result<CopiedRange> {
        let range = CopiedRange {
            start,
            length: end - start,
            offset: self.next,
        };
        self.next += range.length;
        if self.next > MAX_MEMORY {
            return Err(Error::Child(format!(
                "the template's memory is larger than {} GiB",
                MAX_MEMORY >> 30
            )));
        }
        let mut content = vec![0; CHUNK];
        let mut at = start;
        while at < end {
            let size = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let part = content.get_mut(..size).unwrap_or_default();
            self.tracee.read(at, part)?;
            for (index, page) in part.chunks(4096).enumerate() {
                if page.iter().any(|byte| *byte != 0) {
                    let offset = range.offset + (at - start) + index as u64 * PAGE;
                    self.file
                        .write_all_at(page, offset)
                        .during("write frozen memory")?;
                }
            }
            at += size as u64;
        }
        Ok(range)
    }
}

fn anonymous(area: &Area, flags: &str, copied: Vec<CopiedRange>) -> PartSource {
    // `linux/mman.h`: its own kind of mapping, in place of a private one.
    const MAP_DROPPABLE: i32 = 8;
    let has = |flag: &str| flags.split(' ').any(|it| it == flag);
    let mut kind = libc::MAP_ANONYMOUS
        | if has("dp") {
            MAP_DROPPABLE
        } else {
            libc::MAP_PRIVATE
        };
    if has("nr") {
        kind |= libc::MAP_NORESERVE;
    }
    if area.backing == AreaBacking::Stack {
        kind |= libc::MAP_GROWSDOWN;
    }
    let advice = [
        ("wf", libc::MADV_WIPEONFORK),
        ("hg", libc::MADV_HUGEPAGE),
        ("nh", libc::MADV_NOHUGEPAGE),
    ];
    PartSource::Anonymous {
        flags: kind,
        advice: advice
            .iter()
            .filter(|(flag, _)| has(flag) && !has("dp"))
            .map(|it| it.1)
            .collect(),
        copied,
    }
}

/// Returns the index of a mapped file, which is added if it is new.
fn file_index(manifest: &mut FrozenManifest, path: &str) -> Result<usize> {
    // Mappings of one file follow each other.
    if let Some(index) = manifest.files.iter().rposition(|file| file.path == path) {
        return Ok(index);
    }
    let found = fs::metadata(path).during_on("look at", path)?;
    manifest.files.push(MappedFile {
        path: path.to_owned(),
        stamp: FileStamp::of(&found),
    });
    Ok(manifest.files.len() - 1)
}
