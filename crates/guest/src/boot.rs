//! Becoming a launcher, in the same executable as the host and before its `main` runs.
//!
//! The process backend executes the running program again under another name. A constructor of this
//! crate, which the loader calls before `main` and before any thread exists, recognizes the name
//! and does not return. A program that loads this crate as a shared library, such as an extension
//! module of Python, runs the constructor too late for that and has to name another executable.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{launcher, machine};

/// Whether the constructor was linked into this program and ran.
static RAN: AtomicBool = AtomicBool::new(false);

/// After the constructor with which the standard library prepares itself (99), and before those of
/// other crates.
#[used]
// SAFETY: this section holds pointers to functions, which the loader calls with arguments that
// `boot` need not take.
#[unsafe(link_section = ".init_array.00101")]
static CONSTRUCTOR: extern "C" fn() = boot;

extern "C" fn boot() {
    RAN.store(true, Ordering::Relaxed);
    // Not every C library passes the arguments to constructors.
    let arguments = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let name = arguments.split(|byte| *byte == 0).next().unwrap_or_default();
    let launchers = [launcher::NAME, launcher::FREEZER_NAME];
    let role = if launchers.iter().any(|it| name == it.as_bytes()) {
        launcher::run
    } else if name == launcher::mounter::NAME.as_bytes() {
        launcher::mounter::run
    } else if name == machine::NAME.as_bytes() {
        machine::run
    } else {
        return;
    };
    // As the standard library does before `main`: writing to a closed socket is an error, not the end.
    // SAFETY: it only changes how this process, which has one thread, treats a signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let code = std::panic::catch_unwind(role).unwrap_or(101);
    #[expect(clippy::exit, reason = "a launcher must not return into the host's main")]
    std::process::exit(code);
}

/// Returns whether this program becomes a launcher when it is executed under a launcher's name.
pub fn can_become_launcher() -> bool {
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    RAN.load(Ordering::Relaxed) && file_at(&maps, boot as *const () as usize) == program.to_str()
}

/// The file that is mapped at an address, according to `/proc/self/maps`.
fn file_at(maps: &str, address: usize) -> Option<&str> {
    let hex = |text| usize::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let holds = (hex(start)?..hex(end)?).contains(&address);
        holds.then(|| line.find('/').map(|at| &line[at..])).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0200000 r-xp 00001000 fe:00 1234                       /opt/my app/python3 (deleted)
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f1000000000-7f1000400000 r-xp 00000000 fe:00 99                         /usr/lib/extension.so
";

    #[test]
    fn a_constructor_in_a_shared_library_is_not_taken_for_one_in_the_program() {
        assert_eq!(file_at(MAPS, 0x7f10_0000_0010), Some("/usr/lib/extension.so"));
        assert_eq!(
            file_at(MAPS, 0x55d0_c01f_ffff),
            Some("/opt/my app/python3 (deleted)")
        );
        assert_eq!(file_at(MAPS, 0x7f00_0000_0000), None);
        assert_eq!(file_at(MAPS, 0x55d0_c020_0000), None);
    }

    #[test]
    fn a_program_with_its_own_main_can_become_a_launcher() {
        assert!(can_become_launcher());
    }
}
