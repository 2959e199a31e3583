//! What each fuzz target checks: functions that take any bytes and must return.
//!
//! They are apart from the targets so that the kept corpus is replayed by `cargo test --workspace`
//! with the stable compiler (`tests/corpus.rs`). Each asserts more than that nothing panics: round
//! trips, bounds, and text that no terminal obeys.

mod chart;
mod drawn;
mod frames;
mod output;
mod picture;
// The command is no library, so the file that makes text harmless for a terminal is compiled from
// where it is.
#[path = "../../../crates/cli/src/sanitize.rs"]
mod sanitize;
mod terminal;
mod text;

use cellblock_interpreter::output::fuzz;
use cellblock_protocol::{FromGuest, FromKernel, ToGuest, ToKernel};

/// A target's name, which is also that of its corpus, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 11] = [
    ("chart", chart::whole),
    ("frame_from_guest", frame_from_guest),
    ("frame_from_kernel", frame_from_kernel),
    ("frame_to_sandbox", frame_to_sandbox),
    ("image_manifest", image_manifest),
    ("output", output::whole),
    ("output_dataframe", fuzz::dataframe),
    ("output_figure", output::figure),
    ("output_image", picture::check),
    ("requirement", requirement),
    ("terminal", terminal::check),
];

/// Runs one target on one input; the name is one of [`TARGETS`].
pub fn run(target: &str, data: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    let (_, check) = found.expect("a fuzz target calls a check of its own name");
    check(data);
}

/// Frames from a guest, and the names of the files that it lists.
fn frame_from_guest(data: &[u8]) {
    frames::check::<FromGuest>(data);
    let Some(frame) = frames::repaired::<FromGuest>(data) else {
        return;
    };
    if let FromGuest::Files { files, skipped, .. } = frame.message {
        for path in files.iter().map(|it| &it.path) {
            cellblock_interpreter::session::fuzz_file_name(path);
        }
        for path in skipped.iter().flat_map(|it| [&it.path, &it.reason]) {
            cellblock_interpreter::session::fuzz_file_name(path);
        }
    }
}

fn frame_from_kernel(data: &[u8]) {
    frames::check::<FromKernel>(data);
}

/// What the host sends comes from a trusted party, but the guest must not fall over it.
fn frame_to_sandbox(data: &[u8]) {
    frames::check::<ToGuest>(data);
    frames::check::<ToKernel>(data);
}

fn requirement(data: &[u8]) {
    cellblock_image::layer::fuzz_requirement(data);
}

fn image_manifest(data: &[u8]) {
    cellblock_image::fuzz_manifest(data);
}
