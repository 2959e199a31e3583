//! Outputs and files that could not be kept after their cell had run: notes instead of errors,
//! because a client that gets an error runs the code again.

use std::error::Error as StdError;

use crate::error::Error;
use crate::output::why_unkept;

/// Maximum number of outputs that a note names.
const NAMED: usize = 8;

/// An output that could not be kept.
#[derive(Debug)]
pub(super) struct UnkeptOutput {
    /// Its name and size, as far as they are known.
    pub(super) what: String,
    pub(super) error: Error,
}

/// The reason why a file was not stored.
#[derive(Debug)]
pub(super) struct UnstoredFile {
    pub(super) reason: String,
    /// Whether to try it again after the next cell or command.
    pub(super) again: bool,
}

impl From<String> for UnstoredFile {
    fn from(reason: String) -> Self {
        let again = false;
        Self { reason, again }
    }
}

impl UnstoredFile {
    /// Describes a file that the host could not write.
    pub(super) fn by_host(path: &str, bytes: u64, error: &(dyn StdError + 'static)) -> Self {
        tracing::warn!(error, path, "could not keep a file");
        let reason = format!(
            "it has {bytes} bytes and could not be stored: {}; it is still in the sandbox and is \
             collected again after the next cell or command: free space on the host first",
            why_unkept(error)
        );
        Self { reason, again: true }
    }
}

/// Returns the note about outputs that could not be kept.
pub(super) fn note(unkept: &[UnkeptOutput]) -> Option<String> {
    let first = unkept.first()?;
    let mut named: Vec<_> = unkept.iter().take(NAMED).map(|it| it.what.clone()).collect();
    let more = unkept.len() - named.len();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    Some(format!(
        "the code ran, but not everything that it displayed could be stored, because {}: {}. Do not run \
         the code again: free space on the host, then display the values again",
        why_unkept(&first.error),
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_note_names_outputs_with_the_reason_and_no_path_of_the_host() {
        assert_eq!(note(&[]), None);
        let full = || io::Error::new(io::ErrorKind::StorageFull, "/var/lib/secret is full");
        let unkept: Vec<_> = (0..=NAMED)
            .map(|number| UnkeptOutput {
                what: format!("`df{number}` (image/png, 5 bytes)"),
                error: Error::Spool(full()),
            })
            .collect();
        let note = note(&unkept).unwrap();
        for part in [
            "the host's disk is full: `df0` (image/png, 5 bytes), ",
            "`df7` (image/png, 5 bytes), 1 more.",
            "Do not run the code again",
        ] {
            assert!(note.contains(part), "`{part}` is not in: {note}");
        }
        assert!(!note.contains("secret"), "{note}");

        let file = UnstoredFile::by_host("/workspace/a", 7, &full());
        assert!(
            file.again && file.reason.starts_with("it has 7 bytes"),
            "{file:?}"
        );
        assert!(!file.reason.contains("secret"), "{file:?}");
    }
}
