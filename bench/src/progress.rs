//! Messages of a run while it runs.

/// Prints one line to stderr.
#[expect(clippy::print_stderr, reason = "this program is a command for developers")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
