//! Skills that the operator shares, and archives of skills that sessions use.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use cellblock_artifact::ArtifactId;
use cellblock_interpreter::skill::SkillBundle;
use parking_lot::Mutex;

use crate::now_ms;
use crate::options::SkillOptions;
use crate::records::{SkillRow, SkillVersionRow};

/// Beginning of the IDs of versions of shared skills.
pub(crate) const OPERATOR: &str = "operator-";

/// The operator's skills, and the archives that are open.
#[derive(Debug, Default)]
pub(crate) struct SkillShelf {
    pub(crate) shared: Vec<SharedSkill>,
    /// Sessions with the same version share its archive.
    open: Mutex<HashMap<ArtifactId, Weak<SkillBundle>>>,
}

/// A skill that the operator shares, in its only version.
#[derive(Debug)]
pub(crate) struct SharedSkill {
    pub(crate) row: SkillRow,
    pub(crate) version: SkillVersionRow,
    pub(crate) bundle: Arc<SkillBundle>,
}

impl SharedSkill {
    fn new(bundle: Arc<SkillBundle>, now: i64) -> Self {
        let (name, description) = (&bundle.metadata.name, &bundle.metadata.description);
        let id = format!("{OPERATOR}{name}");
        let version = SkillVersionRow {
            id: id.clone(),
            skill: name.clone(),
            version: 1,
            name: name.clone(),
            description: description.clone(),
            bytes: i64::try_from(bundle.archive_bytes).unwrap_or(i64::MAX),
            sha256: bundle.sha256.to_string(),
            created_ms: now,
        };
        let row = SkillRow {
            id: name.clone(),
            display_name: None,
            name: name.clone(),
            description: description.clone(),
            created_ms: now,
            updated_ms: now,
            default_version: 1,
            latest_version: 1,
            latest_id: id,
        };
        Self { row, version, bundle }
    }
}

impl SkillShelf {
    pub(crate) fn new(options: &SkillOptions) -> Self {
        let now = now_ms();
        let shared = options.shared.iter();
        Self {
            shared: shared
                .map(|bundle| SharedSkill::new(Arc::clone(bundle), now))
                .collect(),
            open: Mutex::default(),
        }
    }

    /// Returns the shared skill with this ID.
    pub(crate) fn shared(&self, id: &str) -> Option<&SharedSkill> {
        self.shared.iter().find(|skill| skill.row.id == id)
    }

    /// Returns an archive that somebody uses.
    pub(crate) fn opened(&self, id: ArtifactId) -> Option<Arc<SkillBundle>> {
        self.open.lock().get(&id).and_then(Weak::upgrade)
    }

    /// Lets later sessions share an archive for as long as somebody uses it.
    pub(crate) fn keep(&self, bundle: SkillBundle) -> Arc<SkillBundle> {
        let bundle = Arc::new(bundle);
        let mut open = self.open.lock();
        open.retain(|_, other| other.strong_count() > 0);
        open.insert(bundle.sha256, Arc::downgrade(&bundle));
        bundle
    }
}
