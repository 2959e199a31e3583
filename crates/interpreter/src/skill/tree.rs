//! The files of an upload, arranged as the tree of a skill.

use std::collections::BTreeMap;

use cellblock_protocol::text::acts;

use super::error::{SkillError, shown};
use super::limits::{MAX_DEPTH, MAX_FILES, MAX_PATH};

/// Name of the file with a skill's instructions.
pub(super) const MANIFEST: &str = "SKILL.md";
/// Parts of paths that version control, editors and archivers add, and that are left out.
const IGNORED: [&str; 4] = [".git", ".DS_Store", "__MACOSX", "__pycache__"];

/// A regular file of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) path: String,
    pub(super) is_executable: bool,
    /// Its place among the entries of the upload.
    pub(super) index: usize,
}

/// Returns whether a file is left out.
pub(super) fn is_ignored(path: &str) -> bool {
    path.split('/').any(|part| IGNORED.contains(&part))
}

/// Checks the paths of files, and makes them paths below the skill's folder, in their order.
pub(super) fn arrange(mut files: Vec<FoundFile>) -> Result<Vec<FoundFile>, SkillError> {
    for file in &files {
        check(&file.path)?;
    }
    files.retain(|file| !is_ignored(&file.path));
    if files.len() > MAX_FILES {
        return Err(SkillError::invalid(format!(
            "the skill has {} files, and can have at most {MAX_FILES}",
            files.len()
        )));
    }
    let manifest = manifest(&files)?;
    let top = files[manifest].path.rfind('/').map_or(0, |slash| slash + 1);
    let top = files[manifest].path[..top].to_owned();
    for file in &mut files {
        let Some(below) = file.path.strip_prefix(&top) else {
            return Err(SkillError::invalid(format!(
                "`{}` is outside the folder `{}`, which has the `{MANIFEST}`; upload one folder",
                shown(&file.path),
                shown(&top)
            )));
        };
        file.path = below.to_owned();
    }
    MANIFEST.clone_into(&mut files[manifest].path);
    distinct(&files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Returns the index of the only `SKILL.md`, which is at the top or in a folder that is.
fn manifest(files: &[FoundFile]) -> Result<usize, SkillError> {
    let is_manifest = |file: &FoundFile| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        name.eq_ignore_ascii_case(MANIFEST)
    };
    let found: Vec<_> = (0..files.len())
        .filter(|index| is_manifest(&files[*index]))
        .collect();
    match found[..] {
        [only] if files[only].path.matches('/').count() <= 1 => Ok(only),
        [only] => Err(SkillError::invalid(format!(
            "`{}` is too deep; it must be at the top of the skill's folder",
            shown(&files[only].path)
        ))),
        [] => Err(SkillError::invalid(format!(
            "there is no `{MANIFEST}`; add one at the top of the skill's folder"
        ))),
        [one, other, ..] => Err(SkillError::invalid(format!(
            "there are {} files `{MANIFEST}`, such as `{}` and `{}`; a skill has exactly one, so upload \
             each skill by itself",
            found.len(),
            shown(&files[one].path),
            shown(&files[other].path)
        ))),
    }
}

/// Rejects a path that could lead out of its folder, or that cannot be shown.
fn check(path: &str) -> Result<(), SkillError> {
    let mut parts = path.split('/');
    let reason = if path.starts_with('/') || path.contains(':') {
        "it must be relative, and without `:`"
    } else if path.contains('\\') {
        "it has a backslash; separate folders with `/`"
    } else if path.chars().any(acts) {
        "it has a control character or an invisible one"
    } else if parts.any(|part| matches!(part, "" | "." | "..")) {
        "it has an empty part, `.` or `..`"
    } else if path.len() > MAX_PATH {
        "it is longer than 255 bytes"
    } else if path.matches('/').count() > MAX_DEPTH {
        "it is deeper than 12 folders"
    } else {
        return Ok(());
    };
    Err(SkillError::invalid(format!(
        "invalid path `{}` in the skill: {reason}",
        shown(path)
    )))
}

/// Rejects files that are the same for some file system, or of which one would be a folder.
fn distinct(files: &[FoundFile]) -> Result<(), SkillError> {
    // Each file and folder by its path in lowercase, with its spelling and whether it is a file.
    let mut seen: BTreeMap<String, (&str, bool)> = BTreeMap::new();
    for file in files {
        let ends = file.path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([file.path.len()]) {
            let (path, is_file) = (&file.path[..end], end == file.path.len());
            let Some((other, was_file)) = seen.insert(path.to_lowercase(), (path, is_file)) else {
                continue;
            };
            let reason = match (other == path, is_file || was_file) {
                (true, false) => continue,
                (true, true) => "is there twice",
                (false, _) => "differs only in the case of its letters",
            };
            return Err(SkillError::invalid(format!(
                "`{}` {reason} (`{}`); rename or remove one of them",
                shown(path),
                shown(other)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(paths: &[&str]) -> Result<Vec<String>, String> {
        let found = paths.iter().enumerate().map(|(index, path)| FoundFile {
            path: (*path).to_owned(),
            is_executable: false,
            index,
        });
        match arrange(found.collect()) {
            Ok(files) => Ok(files.into_iter().map(|file| file.path).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_common_folder_is_left_out_and_so_are_files_of_archivers() {
        let files = [
            "top/b/x.py",
            "top/skill.MD",
            "__MACOSX/top/._b",
            "top/.DS_Store",
            "top/a.txt",
        ];
        assert_eq!(arranged(&files).unwrap(), ["SKILL.md", "a.txt", "b/x.py"]);
        assert_eq!(arranged(&["SKILL.md", "a/b"]).unwrap(), ["SKILL.md", "a/b"]);
    }

    #[test]
    fn exactly_one_skill_is_accepted() {
        for (paths, reason) in [
            (&["a.txt"][..], "there is no `SKILL.md`"),
            (&["a/SKILL.md", "b/SKILL.md"], "there are 2 files"),
            (&["SKILL.md", "a/skill.md"], "there are 2 files"),
            (&["a/b/SKILL.md"], "too deep"),
            (&["a/SKILL.md", "b/x"], "is outside the folder `a/`"),
        ] {
            let error = arranged(paths).unwrap_err();
            assert!(error.contains(reason), "{paths:?}: {error}");
        }
    }

    #[test]
    fn paths_that_could_leave_the_folder_are_rejected() {
        let deep = format!("{}x", "d/".repeat(13));
        let long = "x".repeat(256);
        for path in [
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a//b",
            "a/./b",
            "a/",
            "",
            "c:/x",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
            &deep,
            &long,
        ] {
            let error = arranged(&["SKILL.md", path]).unwrap_err();
            assert!(error.contains("invalid path"), "{path:?}: {error}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn names_that_are_one_file_elsewhere_are_rejected() {
        for (paths, reason) in [
            (&["SKILL.md", "a/x", "A/y"][..], "case"),
            (&["SKILL.md", "a.txt", "A.TXT"], "case"),
            (&["SKILL.md", "a.txt", "a.txt"], "twice"),
            (&["SKILL.md", "a", "a/b"], "twice"),
            (&["SKILL.md", "a/b", "a"], "twice"),
        ] {
            let error = arranged(paths).unwrap_err();
            assert!(error.contains(reason), "{paths:?}: {error}");
        }
    }

    #[test]
    fn too_many_files_are_rejected() {
        let names: Vec<_> = (0..MAX_FILES).map(|number| format!("f{number}")).collect();
        let mut paths: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(
            arranged(&[&["SKILL.md"], &paths[1..]].concat()).unwrap().len(),
            MAX_FILES
        );
        paths.push("SKILL.md");
        let error = arranged(&paths).unwrap_err();
        assert!(
            error.contains("has 501 files, and can have at most 500"),
            "{error}"
        );
    }
}
