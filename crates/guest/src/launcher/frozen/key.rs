//! The key of a frozen template: a digest of everything that its memory depends on.

use std::os::unix::fs::FileExt;
use std::path::Path;

use cellblock_jail::Error;
use cellblock_jail::error::SyscallResult;

use super::manifest::{FORMAT, checksum};
use super::place::FrozenPlace;
use crate::launcher::control::Launch;
use crate::launcher::template::command_environment;
use crate::launcher::transfer::MoveError;
use crate::launcher::transfer::areas::{Area, AreaBacking};

/// Returns the place of a launch's template below an image's directory, or why it cannot be frozen.
pub fn place(directory: &Path, launch: &Launch) -> Result<FrozenPlace, String> {
    if launch.walled || launch.snapshot {
        return Err("the machine itself is restored from a snapshot".into());
    }
    if launch.image.is_root {
        return Err("the image is a whole root filesystem, whose Python is confined before it starts".into());
    }
    if cellblock_jail::bare::is_wanted(&launch.demands).unwrap_or(true) {
        return Err("the policy disables namespaces, without which there are no templates".into());
    }
    if launch.preload.is_empty() {
        return Err("the image has no libraries to import".into());
    }
    let special = special(std::process::id()).map_err(|error| cellblock_jail::error::chain(&error))?;
    let parts = [
        FORMAT.to_string(),
        directory.display().to_string(),
        launch.image.program().display().to_string(),
        launch.image.flags().join(" "),
        launch.preload.join(" "),
        command_environment(launch).join("\0"),
        crate::bytecode::file_name(),
        rustix::system::uname().release().to_string_lossy().into_owned(),
        rustix::system::uname().version().to_string_lossy().into_owned(),
        processor(),
        std::thread::available_parallelism()
            .map_or(0, std::num::NonZero::get)
            .to_string(),
        special,
    ];
    let mut key = checksum(parts.join("\n").as_bytes());
    key.truncate(32);
    Ok(FrozenPlace {
        directory: directory.to_owned(),
        key,
    })
}

/// Describes what Linux maps into every process: the code that reads clocks, whose address programs
/// keep.
fn special(pid: u32) -> Result<String, Error> {
    let pid = i32::try_from(pid).unwrap_or_default();
    let memory = std::fs::File::open("/proc/self/mem").during("open the own memory")?;
    let mut told = Vec::new();
    for (name, start, end) in special_areas(&own_areas(pid)?) {
        told.push(format!("{name} {}", end - start));
        if name == "[vdso]" {
            let mut code = vec![0; usize::try_from(end - start).unwrap_or_default()];
            memory
                .read_exact_at(&mut code, start)
                .during("read the own memory")?;
            told.push(checksum(&code));
        }
    }
    Ok(told.join(" "))
}

pub(super) fn own_areas(pid: i32) -> Result<Vec<Area>, Error> {
    Area::read(pid).map_err(as_error)
}

/// Describes an obstacle as an error.
pub(super) fn as_error(error: MoveError) -> Error {
    match error {
        MoveError::Obstacle(obstacle) => Error::Child(format!("the template has {obstacle}")),
        MoveError::Failed(error) => error,
    }
}

/// Lists the areas that Linux places anew in each process: name, start and end.
pub(super) fn special_areas(areas: &[Area]) -> Vec<(String, u64, u64)> {
    areas
        .iter()
        .filter_map(|area| match &area.backing {
            AreaBacking::Special(name) if name != "[vsyscall]" => Some((name.clone(), area.start, area.end)),
            _ => None,
        })
        .collect()
}

/// Describes the processor's model and features, on which libraries decide what code to use.
fn processor() -> String {
    use std::arch::x86_64::__cpuid_count;
    // Without the parts that differ between the cores of one processor.
    let masks: [(u32, u32, [u32; 4]); 5] = [
        (0, 0, [u32::MAX; 4]),
        (1, 0, [u32::MAX, 0, u32::MAX, u32::MAX]),
        (7, 0, [u32::MAX; 4]),
        (0xd, 0, [u32::MAX, 0, u32::MAX, 0]),
        (0x8000_0001, 0, [0, 0, u32::MAX, u32::MAX]),
    ];
    let told = masks.map(|(leaf, part, [a, b, c, d])| {
        let found = __cpuid_count(leaf, part);
        format!(
            "{:x} {:x} {:x} {:x}",
            found.eax & a,
            found.ebx & b,
            found.ecx & c,
            found.edx & d
        )
    });
    told.join(",")
}
