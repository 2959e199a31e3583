//! Skills of this machine's user, which the command line keeps in the artifact store.

use std::sync::Arc;

use cellblock_artifact::{ArtifactId, Store, VersionSeries};
use cellblock_settings::clock;
use serde::{Deserialize, Serialize};

use super::bundle::{SessionSkill, SkillBundle};
use super::error::SkillError;
use super::package::SkillPackage;

/// Series of skills in the store.
const SERIES: [&str; 2] = ["skills", "local"];

/// A version of a skill in a library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibrarySkill {
    /// Name of the skill.
    pub name: String,
    /// Description of what it does, and of when to use it.
    pub description: String,
    /// Number of the version, from 1.
    pub version: u64,
    /// Archive of the version.
    pub sha256: ArtifactId,
    /// Size of all files.
    pub bytes: u64,
    /// Number of files.
    pub files: usize,
    /// Time at which it was added, in milliseconds since 1970.
    pub added_unix_ms: u64,
}

/// Skills by their names, each in versions.
#[derive(Clone, Debug)]
pub struct SkillLibrary {
    store: Store,
}

impl SkillLibrary {
    /// Returns the library in a store.
    pub const fn new(store: Store) -> Self {
        Self { store }
    }

    /// Adds a version of a skill. One that equals the current version is not added again.
    pub async fn add(&self, package: SkillPackage) -> Result<LibrarySkill, SkillError> {
        let bundle = SkillBundle::store(&self.store, package).await?;
        let name = bundle.metadata.name.clone();
        let series = self.series(&name);
        let before: Option<LibrarySkill> = series.head().await?;
        if let Some(before) = before.as_ref().filter(|before| before.sha256 == bundle.sha256) {
            return Ok(before.clone());
        }
        let mut skill = LibrarySkill {
            name,
            description: bundle.metadata.description.clone(),
            version: before.map_or(1, |before| before.version + 1),
            sha256: bundle.sha256,
            bytes: bundle.bytes(),
            files: bundle.files.len(),
            added_unix_ms: clock::unix_millis(),
        };
        skill.added_unix_ms = series
            .append(skill.sha256, skill.added_unix_ms, |unix_ms| LibrarySkill {
                added_unix_ms: unix_ms,
                ..skill.clone()
            })
            .await?;
        let moved = series.move_head(|before: Option<LibrarySkill>| {
            // Of two that are added at the same time, the later one is the current version.
            let newer = before.filter(|before| before.added_unix_ms > skill.added_unix_ms);
            newer.unwrap_or_else(|| skill.clone())
        });
        Ok(moved.await?)
    }

    /// Returns the current versions of all skills, by their names.
    pub async fn all(&self) -> Result<Vec<LibrarySkill>, SkillError> {
        let mut skills = Vec::new();
        for name in self.store.series_below(&SERIES).await? {
            skills.extend(self.find(&name).await?);
        }
        Ok(skills)
    }

    /// Returns the current version of a skill.
    pub async fn find(&self, name: &str) -> Result<Option<LibrarySkill>, SkillError> {
        Ok(self.series(name).head().await?)
    }

    /// Returns the versions of a skill, the oldest first.
    pub async fn versions(&self, name: &str) -> Result<Vec<LibrarySkill>, SkillError> {
        Ok(self.series(name).versions().await?)
    }

    /// Removes a skill with all its versions. Returns whether there was one.
    pub async fn remove(&self, name: &str) -> Result<bool, SkillError> {
        Ok(self.series(name).remove().await?)
    }

    /// Opens a version for a session.
    pub async fn open(&self, skill: &LibrarySkill) -> Result<SessionSkill, SkillError> {
        let bundle = SkillBundle::open(&self.store, skill.sha256).await?;
        let version = skill.version.to_string();
        Ok(SessionSkill::stored(&skill.name, version, Arc::new(bundle)))
    }

    fn series(&self, name: &str) -> VersionSeries {
        let [root, owner] = SERIES;
        self.store.series(&[root, owner, name])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &std::path::Path, body: &str) -> SkillPackage {
        let manifest = format!("---\nname: report\ndescription: Writes.\n---\n{body}");
        std::fs::write(folder.join("SKILL.md"), manifest).unwrap();
        SkillPackage::from_folder(folder).unwrap()
    }

    #[tokio::test]
    async fn changed_skills_become_versions_and_equal_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let skill = folder.path().join("skill");
        std::fs::create_dir(&skill).unwrap();
        let library = SkillLibrary::new(Store::local(folder.path().join("store")).unwrap());
        for (body, version) in [("one", 1), ("one", 1), ("two", 2), ("one", 3)] {
            let added = library.add(package(&skill, body)).await.unwrap();
            assert_eq!(added.version, version, "{body}");
        }
        let found = library.find("report").await.unwrap().unwrap();
        assert_eq!(library.all().await.unwrap(), std::slice::from_ref(&found));
        let versions = library.versions("report").await.unwrap();
        let numbers: Vec<_> = versions.iter().map(|it| it.version).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let opened = library.open(&versions[1]).await.unwrap();
        assert!(opened.bundle.instructions().await.unwrap().ends_with("two"));
        assert_eq!((&*opened.version, &*opened.folder()), ("2", "/skills/report"));
        assert!(library.remove("report").await.unwrap());
        assert!(!library.remove("report").await.unwrap());
        assert_eq!(library.find("report").await.unwrap(), None);
    }
}
