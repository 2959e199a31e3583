//! Patches of several files.

use std::collections::HashSet;

use super::args::{MAX_CONTENT, PatchArgs};
use super::reply::{PatchChange, PatchResult, PatchedFile, Reply, WorkbenchRefusal};
use super::tools::PATCH;
use super::{Hint, Workbench, checked, refusal_of_file};
use crate::error::Result;
use crate::session::{FileAction, FileChange, PatchCause, PatchRefused};
use crate::toolset::diff::{FilePatch, PatchAction, apply, read_patch};

/// The folder of relative paths.
const WORKSPACE: &str = "/workspace";

/// A file of a patch, with the name that the patch gives it.
struct NamedChange {
    named: String,
    change: PatchChange,
    path: String,
    action: FileAction,
}

impl Workbench {
    /// Changes all files of a patch, or none of them.
    pub async fn apply_patch(&self, args: PatchArgs) -> Result<Reply<PatchResult>> {
        match read(&args.patch) {
            Ok(files) => self.change_files(files).await,
            Err(refusal) => Ok(Err(*refusal)),
        }
    }

    /// Changes all files of a patch that is read already, or none of them.
    pub(in crate::toolset) async fn change_files(&self, files: Vec<FilePatch>) -> Result<Reply<PatchResult>> {
        let read = match named(files) {
            Ok(read) => read,
            Err(refusal) => return Ok(Err(*refusal)),
        };
        let mut changes = Vec::with_capacity(read.len());
        let mut names = Vec::with_capacity(read.len());
        let mut files = Vec::with_capacity(read.len());
        for file in read {
            names.push(file.named);
            files.push(PatchedFile {
                file_path: file.path.clone(),
                change: file.change,
            });
            changes.push(FileChange {
                path: file.path,
                action: file.action,
            });
        }
        let patched = self.shared.session.patch_files(changes, MAX_CONTENT).await?;
        Ok(match patched {
            Ok(()) => Ok(PatchResult {
                success: true,
                files,
                hint: Hint::patched(),
            }),
            Err(refused) => Err(refusal(&names, refused)),
        })
    }
}

/// Reads a patch.
fn read(patch: &str) -> std::result::Result<Vec<FilePatch>, Box<WorkbenchRefusal>> {
    read_patch(patch).map_err(|mistake| {
        Box::new(WorkbenchRefusal::new(
            mistake.words("patch"),
            Hint::invalid_call(PATCH),
        ))
    })
}

/// Checks the paths of a patch, each of which it may have once.
fn named(files: Vec<FilePatch>) -> std::result::Result<Vec<NamedChange>, Box<WorkbenchRefusal>> {
    let mut paths = HashSet::new();
    let mut named = Vec::with_capacity(files.len());
    for file in files {
        let path = if file.path.starts_with('/') {
            checked(&file.path)?
        } else {
            checked(&format!("{WORKSPACE}/{}", file.path))?
        };
        if !paths.insert(path.clone()) {
            let error = "the patch has this file twice; send all its sections together";
            return Err(Box::new(WorkbenchRefusal::of_file(
                &file.path,
                error,
                Hint::patch_failed(),
            )));
        }
        let (change, action) = match file.action {
            PatchAction::Create(text) => (PatchChange::Created, FileAction::Create(text.into_bytes())),
            PatchAction::Delete => (PatchChange::Deleted, FileAction::Delete),
            PatchAction::Update(sections) => {
                let update = move |content: &[u8]| {
                    let text = std::str::from_utf8(content)
                        .ok()
                        .filter(|text| !text.contains('\0'));
                    let text = text.ok_or("the file is not text in UTF-8")?;
                    apply(&sections, text).map(String::into_bytes)
                };
                (PatchChange::Updated, FileAction::Update(Box::new(update)))
            }
        };
        named.push(NamedChange {
            named: file.path,
            change,
            path,
            action,
        });
    }
    Ok(named)
}

fn refusal(names: &[String], refused: PatchRefused) -> WorkbenchRefusal {
    let path = names.get(refused.index).map_or("", String::as_str);
    let mut refusal = match refused.cause {
        PatchCause::File(file) => WorkbenchRefusal {
            hint: Hint::patch_failed(),
            ..refusal_of_file(path, "Patch failed", &file)
        },
        PatchCause::Exists => WorkbenchRefusal::of_file(
            path,
            "Patch failed: the file exists already; use `*** Update File: `",
            Hint::patch_failed(),
        ),
        PatchCause::Content(problem) => {
            WorkbenchRefusal::of_file(path, format!("Patch failed: {problem}"), Hint::patch_failed())
        }
        PatchCause::TooMuch { limit } => WorkbenchRefusal::of_file(
            path,
            format!(
                "Patch failed: its files have more than {limit} bytes together, before and after; send \
                 several smaller patches"
            ),
            Hint::patch_failed(),
        ),
    };
    if !refused.changed.is_empty() {
        let changed = refused.changed.join(", ");
        refusal.error = format!(
            "{}; these files are changed and could not be put back: {changed}",
            refusal.error
        );
        refusal.hint = Hint::patch_left();
    }
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(patch: &str) -> WorkbenchRefusal {
        let files = read(&format!("*** Begin Patch\n{patch}\n*** End Patch"));
        *files.and_then(|files| named(files).map(drop)).unwrap_err()
    }

    #[test]
    fn paths_outside_the_sandboxs_folders_are_refused() {
        for path in [
            "/etc/passwd",
            "../etc/passwd",
            "a/../../b",
            "/workspace/../etc/passwd",
            "/tmp/data/a.csv",
            "a/",
            ".",
        ] {
            let told = refused(&format!("*** Delete File: {path}"));
            assert!(told.error.starts_with("Invalid path"), "{path}: {}", told.error);
        }
    }

    #[test]
    fn a_file_is_in_a_patch_once() {
        let told = refused("*** Delete File: a\n*** Delete File: /workspace/./a");
        assert!(told.error.contains("twice"), "{}", told.error);
        assert_eq!(told.file_path.as_deref(), Some("/workspace/./a"));
    }

    #[test]
    fn files_that_stay_changed_are_named() {
        let told = refusal(
            &["a".to_owned()],
            PatchRefused {
                index: 0,
                cause: PatchCause::Exists,
                changed: vec!["/workspace/b".to_owned()],
            },
        );
        assert!(
            told.error.ends_with("could not be put back: /workspace/b"),
            "{}",
            told.error
        );
        assert_eq!(told.hint, Hint::patch_left());
    }
}
