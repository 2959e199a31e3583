//! Templates of keys, as they are kept: each is a volume with an archive for each build, and an index.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use cellblock_interpreter::artifact::{ArtifactDescription, ArtifactId, Kind};
use cellblock_interpreter::hosting::{Owner, ShelfError};
use cellblock_interpreter::volume::{SessionVolume, VolumeFile, VolumeManifest};
use serde::{Deserialize, Serialize};

use super::super::error::{Answer, Problem};
use super::super::snapshot::{DEFAULT_TAG, SnapshotLabel};
use super::super::state::E2b;
use super::super::volumes::{self, problem as volume_problem};

/// Prefix of the volumes of templates.
pub(in super::super) const TEMPLATE_VOLUME: &str = "e2b-template-";
/// File of a volume with the index.
const INDEX: &str = "template.json";
/// Maximum number of builds of a template that are kept, and of its tags.
const MAX_BUILDS: usize = 16;
const MAX_TAGS: usize = 64;
/// Maximum size of an index. A session of the key can write its volume, too.
const MAX_INDEX: u64 = 4 << 20;
/// Maximum length of a name, which is part of the name of a volume.
const MAX_NAME: usize = 48;

/// The builds of a template, and its tags.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct TemplateIndex {
    pub(super) tags: BTreeMap<String, TagRecord>,
    pub(super) builds: BTreeMap<String, BuildRecord>,
}

/// Build that a tag names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TagRecord {
    pub(super) build: String,
    /// In milliseconds since 1970.
    pub(super) assigned_ms: u64,
}

/// Result of a build, in addition to its archive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct BuildRecord {
    pub(in super::super) envs: BTreeMap<String, String>,
    pub(in super::super) workdir: String,
    pub(in super::super) start: Option<String>,
    pub(in super::super) ready: Option<String>,
    /// Version of Python for which its packages are, such as `3.13`.
    pub(super) python: String,
    /// In milliseconds since 1970.
    pub(super) created_ms: u64,
    pub(super) bytes: u64,
}

/// A template that sandboxes begin from.
#[derive(Clone, Debug)]
pub(in super::super) struct BuiltTemplate {
    pub(in super::super) archive: ArtifactId,
    pub(in super::super) record: BuildRecord,
}

/// A template as it is kept.
#[derive(Debug)]
pub(super) struct KeptTemplate {
    pub(super) index: TemplateIndex,
    manifest: VolumeManifest,
}

/// Returns whether clients may name a template so.
pub(in super::super) fn is_template_name(name: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-_.".contains(&it);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_part) && !name.starts_with('.')
}

impl TemplateIndex {
    /// Adds a build under tags, which name no other one any more.
    pub(super) fn add(&mut self, id: &str, record: BuildRecord, tags: &[String], now_ms: u64) -> Answer<()> {
        self.builds.insert(id.to_owned(), record);
        self.assign(id, tags, now_ms)
    }

    /// Assigns tags to a build.
    pub(super) fn assign(&mut self, id: &str, tags: &[String], now_ms: u64) -> Answer<()> {
        for tag in tags {
            let record = TagRecord {
                build: id.to_owned(),
                assigned_ms: now_ms,
            };
            self.tags.insert(tag.clone(), record);
        }
        if self.tags.len() > MAX_TAGS {
            return Err(Problem::invalid(format!(
                "`tags`: the template has {} tags, the limit is {MAX_TAGS}; remove some",
                self.tags.len()
            )));
        }
        self.forget();
        if self.builds.len() > MAX_BUILDS {
            return Err(Problem::invalid(format!(
                "the template has {} builds with tags, the limit is {MAX_BUILDS}; remove the tags of some",
                self.builds.len()
            )));
        }
        Ok(())
    }

    /// Drops builds that no tag names.
    pub(super) fn forget(&mut self) {
        let tags = &self.tags;
        self.builds
            .retain(|id, _| tags.values().any(|tag| tag.build == *id));
    }
}

impl KeptTemplate {
    /// Returns the build that a tag names.
    pub(super) fn tagged(&self, tag: &str) -> Option<(&str, BuiltTemplate)> {
        let id = &self.index.tags.get(tag)?.build;
        let record = self.index.builds.get(id)?.clone();
        let archive = self.manifest.0.get(&archive_name(id))?.sha256;
        Some((id, BuiltTemplate { archive, record }))
    }
}

impl E2b {
    /// Returns the build of a key's template that a name such as `app:v2` means, unless there is no such
    /// template.
    pub(in super::super) async fn built(&self, owner: &Owner, text: &str) -> Answer<Option<BuiltTemplate>> {
        let label = SnapshotLabel::new(text);
        let Some(kept) = self.kept_template(owner, label.name()).await? else {
            return Ok(None);
        };
        let tag = label.tag();
        let Some((_, built)) = kept.tagged(tag) else {
            let tags: Vec<_> = kept.index.tags.keys().map(String::as_str).collect();
            return Err(Problem::not_found(format!(
                "template '{text}' not found: its tags are `{}`, and `{tag}` is not one of them",
                tags.join("`, `")
            )));
        };
        let python = self.python();
        if built.record.python != python {
            return Err(Problem::new(
                StatusCode::CONFLICT,
                format!(
                    "template '{text}' was built with Python {}, and this server's image has {python} now; \
                     build it again",
                    built.record.python
                ),
            ));
        }
        Ok(Some(built))
    }

    /// Returns whether a key has a template with this name, and with the tag if that is named.
    pub(in super::super) async fn has_template(&self, owner: &Owner, text: &str) -> Answer<bool> {
        let label = SnapshotLabel::new(text);
        let kept = self.kept_template(owner, label.name()).await?;
        Ok(kept.is_some_and(|it| !text.contains(':') || it.index.tags.contains_key(label.tag())))
    }

    /// Returns a key's template.
    pub(super) async fn kept_template(&self, owner: &Owner, name: &str) -> Answer<Option<KeptTemplate>> {
        let (true, Some(volumes)) = (is_template_name(name), &self.host.volumes) else {
            return Ok(None);
        };
        let volume = match volumes.read(owner, &volume_name(name)).await {
            Ok(volume) => volume,
            Err(ShelfError::Missing(_)) => return Ok(None),
            Err(error) => return Err(volume_problem(error)),
        };
        let index = self.read_index(&volume.manifest).await?;
        Ok(index.map(|index| KeptTemplate {
            index,
            manifest: volume.manifest,
        }))
    }

    /// Returns the templates of a key by their names.
    pub(super) async fn kept_templates(&self, owner: &Owner) -> Answer<Vec<(String, KeptTemplate)>> {
        let Some(volumes) = &self.host.volumes else {
            return Ok(Vec::new());
        };
        let mut kept = Vec::new();
        for volume in volumes.list(owner).await.map_err(volume_problem)? {
            if let Some(name) = volume.name.strip_prefix(TEMPLATE_VOLUME)
                && let Some(template) = self.kept_template(owner, name).await?
            {
                kept.push((name.to_owned(), template));
            }
        }
        Ok(kept)
    }

    /// Changes the index of a template, and adds an archive. It is changed whole or not at all, also
    /// without the client.
    pub(super) async fn change_template(
        &self,
        owner: &Owner,
        name: &str,
        archive: Option<(String, VolumeFile)>,
        change: impl FnOnce(&mut TemplateIndex) -> Answer<()> + Send + 'static,
    ) -> Answer<()> {
        let (e2b, owner, name) = (self.clone(), owner.clone(), name.to_owned());
        let changing = self.host.tasks.spawn(async move {
            let kept = volumes::shelf(&e2b)?.clone();
            let volume_name = volume_name(&name);
            let _turn = e2b.builds.saving.lock().await;
            let writer = e2b.host.mint("template");
            let volume = kept.write(&owner, &volume_name, &writer).await;
            let volume = volume.map_err(volume_problem)?;
            let (keeper, is_new) = (volume.keeper.clone(), volume.revision == 0);
            let changed = e2b.save_index(volume, archive, change).await;
            if let Some(keeper) = keeper {
                keeper.release(true).await;
            }
            if changed.is_err()
                && is_new
                && let Err(error) = kept.remove(&owner, &volume_name).await
            {
                tracing::warn!(%error, template = name, "remove a template without builds");
            }
            changed
        });
        changing
            .await
            .map_err(|error| Problem::internal("save a template", &error))?
    }

    async fn save_index(
        &self,
        volume: SessionVolume,
        archive: Option<(String, VolumeFile)>,
        change: impl FnOnce(&mut TemplateIndex) -> Answer<()> + Send,
    ) -> Answer<()> {
        let failed = |error: &(dyn std::error::Error + 'static)| Problem::internal("save a template", error);
        let keeper = volume
            .keeper
            .ok_or_else(|| Problem::invalid("the template is read-only"))?;
        let before = volume.manifest;
        let mut index = self.read_index(&before).await?.unwrap_or_default();
        change(&mut index)?;
        let mut after = before.clone();
        after
            .0
            .extend(archive.map(|(build, file)| (archive_name(&build), file)));
        let known: Vec<_> = index.builds.keys().map(|id| archive_name(id)).collect();
        after.0.retain(|name, _| known.contains(name));
        let json = encoded(&index)?;
        let bytes = json.len() as u64;
        let about = ArtifactDescription {
            kind: Kind::File,
            media_type: "application/json".to_owned(),
            origin: None,
        };
        let sha256 = self.host.interpreter.store().put(json, &about).await;
        let file = VolumeFile {
            mode: 0o600,
            bytes,
            sha256: sha256.map_err(|error| failed(&error))?,
        };
        after.0.insert(INDEX.to_owned(), file);
        if after.bytes() > volume.max_bytes {
            return Err(Problem::new(
                StatusCode::INSUFFICIENT_STORAGE,
                format!(
                    "the builds of the template have {} bytes, the limit `volumes.max_bytes` is {}; remove \
                     tags of old builds, or make the template smaller",
                    after.bytes(),
                    volume.max_bytes
                ),
            ));
        }
        let saved = keeper.save(&before, &after).await;
        saved
            .map(drop)
            .map_err(|reason| volume_problem(ShelfError::Full(reason)))
    }

    /// Removes a template with its builds. Returns whether there was one.
    pub(in super::super) async fn remove_template(&self, owner: &Owner, name: &str) -> Answer<bool> {
        let (true, Some(volumes)) = (is_template_name(name), &self.host.volumes) else {
            return Ok(false);
        };
        match volumes.remove(owner, &volume_name(name)).await {
            Ok(()) => Ok(true),
            Err(ShelfError::Missing(_)) => Ok(false),
            Err(error) => Err(volume_problem(error)),
        }
    }

    /// Returns the version of Python in sandboxes, without the number of the patch.
    pub(super) fn python(&self) -> String {
        let version = self.host.interpreter.python_version();
        version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
    }

    async fn read_index(&self, manifest: &VolumeManifest) -> Answer<Option<TemplateIndex>> {
        const ACTION: &str = "read a template";
        let Some(file) = manifest.0.get(INDEX) else {
            return Ok(None);
        };
        if file.bytes > MAX_INDEX {
            return Err(Problem::invalid(format!(
                "`{INDEX}` of the template has {} bytes, the limit is {MAX_INDEX}; delete the template, and \
                 build it again",
                file.bytes
            )));
        }
        let json = self.host.interpreter.store().get(file.sha256).await;
        let json = json.map_err(|error| Problem::internal(ACTION, &error))?;
        let index = serde_json::from_slice(&json).map_err(|error| {
            Problem::invalid(format!(
                "`{INDEX}` of the template is not valid: {error}; delete the template, and build it again"
            ))
        })?;
        Ok(Some(index))
    }
}

/// Encodes an index, unless it is one that could not be read again.
fn encoded(index: &TemplateIndex) -> Answer<Vec<u8>> {
    let json = serde_json::to_vec(index).map_err(|error| Problem::internal("save a template", &error))?;
    if json.len() as u64 > MAX_INDEX {
        return Err(Problem::invalid(format!(
            "the variables and commands of the template's builds have {} bytes, the limit is {MAX_INDEX}; \
             shorten them, or remove tags of old builds",
            json.len()
        )));
    }
    Ok(json)
}

fn volume_name(template: &str) -> String {
    format!("{TEMPLATE_VOLUME}{template}")
}

fn archive_name(build: &str) -> String {
    format!("{build}.tar.gz")
}

/// Reads the tags of a request; without any, it is the default one.
pub(super) fn check_tags(name: &SnapshotLabel, tags: Vec<String>) -> Answer<Vec<String>> {
    let mut all = tags;
    if name.tag() != DEFAULT_TAG || all.is_empty() {
        all.insert(0, name.tag().to_owned());
    }
    all.sort_unstable();
    all.dedup();
    if let Some(wrong) = all.iter().find(|tag| !SnapshotLabel::is_word(tag)) {
        return Err(Problem::invalid(format!(
            "`tags`: {wrong:?} is not a tag; use 1 to 128 letters, digits, `-`, `_` and `.`"
        )));
    }
    if all.len() > MAX_TAGS {
        return Err(Problem::invalid(format!(
            "`tags`: there are {}, the limit is {MAX_TAGS}",
            all.len()
        )));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> BuildRecord {
        BuildRecord {
            envs: BTreeMap::new(),
            workdir: "/home/user".to_owned(),
            start: None,
            ready: None,
            python: "3.13".to_owned(),
            created_ms: 0,
            bytes: 1,
        }
    }

    #[test]
    fn a_build_is_forgotten_when_no_tag_names_it() {
        let tags = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let mut index = TemplateIndex::default();
        index.add("one", record(), &tags(&["default", "v1"]), 1).unwrap();
        index.add("two", record(), &tags(&["default"]), 2).unwrap();
        assert_eq!(index.builds.len(), 2);
        index.assign("two", &tags(&["v1"]), 3).unwrap();
        assert_eq!(index.builds.keys().collect::<Vec<_>>(), ["two"]);
        for number in 0..MAX_BUILDS - 1 {
            let id = number.to_string();
            index.add(&id, record(), std::slice::from_ref(&id), 4).unwrap();
        }
        assert!(index.add("last", record(), &tags(&["last"]), 5).is_err());
    }

    #[test]
    fn an_index_that_could_not_be_read_again_is_not_saved() {
        let mut index = TemplateIndex::default();
        let mut large = record();
        index.builds.insert("one".to_owned(), large.clone());
        assert!(encoded(&index).is_ok());
        large.start = Some("x".repeat(usize::try_from(MAX_INDEX).unwrap()));
        index.builds.insert("two".to_owned(), large);
        let message = encoded(&index).unwrap_err().0.message;
        assert!(message.contains("remove tags"), "{message}");
    }

    #[test]
    fn a_name_is_part_of_the_name_of_a_volume() {
        for (name, is_valid) in [
            ("my-app_1.0", true),
            ("", false),
            (".a", false),
            ("My-App", false),
            ("a/b", false),
            (&*"x".repeat(MAX_NAME + 1), false),
        ] {
            assert_eq!(is_template_name(name), is_valid, "{name:?}");
        }
    }
}
