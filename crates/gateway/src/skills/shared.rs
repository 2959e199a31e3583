//! Skills that the operator shares: read from folders when a server starts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cellblock_artifact::Store;
use cellblock_interpreter::skill::{SkillBundle, SkillError, SkillPackage};
use tokio::task::spawn_blocking;

/// Owner of the references to shared skills in the artifact store.
const OWNER: &str = "operator-skills";
const MANIFEST: &str = "SKILL.md";

/// Reads and stores the skills of folders, each of which is a skill or has a folder per skill.
/// Returns the path with an error.
pub async fn load_shared(
    store: &Store,
    folders: &[PathBuf],
) -> Result<Vec<Arc<SkillBundle>>, (PathBuf, SkillError)> {
    let mut found: Vec<Arc<SkillBundle>> = Vec::new();
    for folder in folders {
        for path in skills_of(folder).map_err(|error| (folder.clone(), error))? {
            let place = path.clone();
            let package = spawn_blocking(move || SkillPackage::from_folder(&place)).await;
            let stored = async {
                let package = package.expect("reading a folder does not panic")?;
                let bundle = SkillBundle::store(store, package).await?;
                store.pin(OWNER, [bundle.sha256]).await?;
                Ok(bundle)
            };
            let bundle = stored.await.map_err(|error| (path.clone(), error))?;
            let name = &bundle.metadata.name;
            if found.iter().any(|other| other.metadata.name == *name) {
                let reason = format!("another shared skill has the name `{name}`; rename one of them");
                return Err((path, SkillError::Invalid(reason)));
            }
            found.push(Arc::new(bundle));
        }
    }
    Ok(found)
}

fn unreadable(source: std::io::Error) -> SkillError {
    SkillError::File {
        action: "read the folder".to_owned(),
        source,
    }
}

/// Returns the folder itself if it is a skill, and otherwise those in it that are, by their names.
fn skills_of(folder: &Path) -> Result<Vec<PathBuf>, SkillError> {
    if is_skill(folder).map_err(unreadable)? {
        return Ok(vec![folder.to_owned()]);
    }
    let mut skills = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !path.is_dir() {
            continue;
        }
        match is_skill(&path) {
            Ok(true) => skills.push(path),
            Ok(false) => {}
            // Such as `lost+found` at the top of a disk.
            Err(error) => tracing::warn!(
                path = %path.display(),
                error = &error as &dyn std::error::Error,
                "left out a folder that cannot be read"
            ),
        }
    }
    if skills.is_empty() {
        return Err(SkillError::Invalid(format!(
            "there is no skill in `{}`: neither it nor a folder in it has a `{MANIFEST}`",
            folder.display()
        )));
    }
    skills.sort();
    Ok(skills)
}

/// Returns whether a folder has a `SKILL.md`, in any case, as in uploads.
fn is_skill(folder: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().eq_ignore_ascii_case(MANIFEST) && entry.path().is_file() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_found_in_any_case_and_a_folder_without_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let reason = skills_of(folder.path()).unwrap_err().to_string();
        assert!(reason.contains("there is no skill in `"), "{reason}");
        let skill = folder.path().join("report");
        std::fs::create_dir_all(folder.path().join("other")).unwrap();
        std::fs::create_dir(&skill).unwrap();
        std::fs::write(skill.join("skill.md"), "").unwrap();
        for path in [folder.path(), &*skill] {
            assert_eq!(skills_of(path).unwrap(), [&*skill]);
        }
    }
}
