//! Patches in the form that models write best: context instead of line numbers.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: new.txt          lines after `+`
//! *** Update File: main.py       ( @@ line to search for ...   lines after ` `, `+` or `-` ... ) ...
//! *** Delete File: old.txt
//! *** End Patch
//! ```
//!
//! [`read_patch`] reads a patch of several files, [`read_sections`] and [`read_added`] the part of one
//! file, and [`apply`] changes a file's text.

mod apply;
mod reader;

pub use apply::apply;
pub use reader::{
    FilePatch, LineKind, MAX_FILES, MAX_PATCH, PatchAction, PatchLine, PatchMistake, PatchSection,
    read_added, read_patch, read_sections,
};
