//! Answers of the API about volumes.

use serde::Serialize;

use crate::records::VolumeRow;

/// A volume.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct VolumeAnswer {
    /// ID of the volume.
    pub id: String,
    /// `volume`.
    pub object: &'static str,
    /// Its name, unique for its owner.
    pub name: String,
    /// In seconds since 1970.
    pub created_at: i64,
    /// Time at which the last revision was saved, in seconds since 1970; absent if nothing was saved yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<i64>,
    /// Number of the last revision; 0 if nothing was saved yet.
    pub revision: i64,
    /// Size of all files.
    pub bytes: i64,
    /// Number of files.
    pub files: i64,
    /// The last session that wrote the volume; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_writer: Option<VolumeWriterAnswer>,
}

/// A session that writes or wrote a volume.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct VolumeWriterAnswer {
    /// ID of the session.
    pub session: String,
    /// State of its changes: `writing` (the session holds the volume), `saved` (it ended and all were
    /// saved), `incomplete` (it ended and the last ones could not be saved), `lost` (its server ended;
    /// changes after the last revision are lost).
    pub state: String,
}

impl VolumeAnswer {
    pub(super) fn of(row: &VolumeRow) -> Self {
        let row = row.clone();
        let writer = row.writer.zip(row.state);
        Self {
            id: row.id,
            object: "volume",
            name: row.name,
            created_at: row.created_ms / 1000,
            saved_at: row.saved_ms.map(|ms| ms / 1000),
            revision: row.revision,
            bytes: row.bytes,
            files: row.files,
            last_writer: writer.map(|(session, state)| VolumeWriterAnswer { session, state }),
        }
    }
}
