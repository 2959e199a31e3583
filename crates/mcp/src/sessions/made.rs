//! Artifacts that a session's calls have made, and that its owner may read.

use std::collections::VecDeque;

use cellblock_artifact::ArtifactId;

/// Artifacts that are remembered; of more the latest.
const MOST: usize = 1000;

/// An artifact that a call made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeArtifact {
    pub(crate) id: ArtifactId,
    /// A file's name, with its extension.
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: u64,
}

/// The artifacts of one session, oldest first, each once.
#[derive(Debug, Default)]
pub(super) struct SessionArtifacts(VecDeque<MadeArtifact>);

impl SessionArtifacts {
    pub(super) fn add(&mut self, made: MadeArtifact) {
        self.0.retain(|known| known.id != made.id);
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(made);
    }

    pub(super) fn all(&self) -> Vec<MadeArtifact> {
        self.0.iter().cloned().collect()
    }

    pub(super) fn find(&self, id: ArtifactId) -> Option<MadeArtifact> {
        self.0.iter().find(|made| made.id == id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_artifact_is_remembered_once_and_the_oldest_are_forgotten() {
        let mut remembered = SessionArtifacts::default();
        let made = |number: usize| MadeArtifact {
            id: ArtifactId::of(&number.to_le_bytes()),
            name: format!("{number}.csv"),
            media_type: "text/csv".into(),
            bytes: 8,
        };
        for number in 0..=MOST {
            remembered.add(made(number));
            remembered.add(made(number));
        }
        assert_eq!(remembered.all().len(), MOST);
        assert_eq!(remembered.find(made(0).id), None);
        assert_eq!(remembered.find(made(1).id), Some(made(1)));
    }
}
