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
        for path in skills_of(folder).map_err(|source| (folder.clone(), unreadable(source)))? {
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
fn skills_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    if folder.join(MANIFEST).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let mut skills = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join(MANIFEST).is_file() {
            skills.push(path);
        }
    }
    skills.sort();
    Ok(skills)
}
