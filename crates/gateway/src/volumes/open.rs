//! Opening a volume for a session.

use std::sync::Arc;

use axum::http::StatusCode;
use cellblock_agent::wire::{ErrorKind, Ids};
use cellblock_interpreter::volume::{SessionVolume, VolumeManifest};

use super::keep::RecordKeeper;
use crate::now_ms;
use crate::problem::Problem;
use crate::records::{VolumeOpening, VolumeRow, VolumeWriter};
use crate::state::sessions::VolumeAccess;
use crate::state::{Caller, Gateway};

/// Maximum length of a name.
const NAME: usize = 64;

/// The volume that a request wants for its session.
#[derive(Debug)]
pub(crate) struct VolumeRequest<'a> {
    pub(crate) name: &'a str,
    pub(crate) access: VolumeAccess,
    pub(crate) session: &'a str,
    /// Maximum size of the session's `/workspace`.
    pub(crate) disk: u64,
}

/// Opens a volume. One that a session writes is held until that session ends; the session releases it.
pub(crate) async fn open(
    gateway: &Gateway,
    caller: &Caller,
    asked: &VolumeRequest<'_>,
) -> Result<SessionVolume, Problem> {
    check_name(asked.name)?;
    let records = &gateway.records;
    let limits = &gateway.options.volumes;
    let writer = VolumeWriter {
        session: asked.session.to_owned(),
        gateway: gateway.id.clone(),
    };
    let to_write = asked.access == VolumeAccess::Write;
    let mut opening = records.read_volume(&caller.owner, asked.name).await?;
    if let VolumeOpening::Opened(row, manifest) = &opening {
        // Before it is held: nobody would release it after an error.
        fits(&row.name, read(manifest)?.bytes(), asked.disk)?;
    }
    if to_write {
        let id = Ids::random().mint("vol");
        let most = limits.max_per_key;
        let opened = records.write_volume(&caller.owner, asked.name, &id, writer.clone(), most, now_ms());
        opening = opened.await?;
    }
    let (row, manifest) = match opening {
        VolumeOpening::Opened(row, manifest) => (row, manifest),
        VolumeOpening::Held(row) => {
            let fix = "delete this session, or create yours with \"volume_access\": \"read\" for a copy \
                       of the last revision";
            return Err(held(&row, fix));
        }
        VolumeOpening::Unknown => return Err(super::missing(asked.name)),
        VolumeOpening::Full => {
            let message = format!(
                "there are {0} volumes, and `volumes.max_per_key` allows {0}; delete one with DELETE \
                 /v1/volumes/{{name}}",
                limits.max_per_key
            );
            return Err(Problem::busy("too_many_volumes", message));
        }
    };
    let keeper = to_write.then(|| RecordKeeper::new(gateway, &caller.owner, &row.id, writer));
    Ok(SessionVolume {
        notice: notice(&row).filter(|_| to_write),
        name: row.name,
        revision: u64::try_from(row.revision).unwrap_or(0),
        manifest: read(&manifest)?,
        keeper: keeper.map(|keeper| Arc::new(keeper) as _),
        max_bytes: limits.max_bytes,
        max_files: limits.max_files,
    })
}

/// Returns the error for a volume that another session writes.
pub(super) fn held(row: &VolumeRow, fix: &str) -> Problem {
    let (name, writer) = (&row.name, row.writer.as_deref().unwrap_or_default());
    Problem::new(
        StatusCode::CONFLICT,
        ErrorKind::InvalidRequestError,
        "volume_held",
        format!("the session {writer:?} writes the volume {name:?}; {fix}"),
    )
}

fn read(manifest: &str) -> Result<VolumeManifest, Problem> {
    serde_json::from_str(manifest).map_err(|error| Problem::internal("read the manifest of a volume", &error))
}

fn fits(name: &str, bytes: u64, disk: u64) -> Result<(), Problem> {
    if bytes <= disk {
        return Ok(());
    }
    let message = format!(
        "{name:?} has {bytes} bytes, and `disk_bytes` of this session is {disk}; create it \
         with higher `limits`"
    );
    Err(Problem::invalid("volume", message))
}

/// Returns a note for the first cell if the session before could not save everything.
fn notice(row: &VolumeRow) -> Option<String> {
    let (name, revision) = (&row.name, row.revision);
    let writer = row.writer.as_deref().unwrap_or_default();
    match row.state.as_deref()? {
        "lost" => Some(format!(
            "the volume `{name}` has revision {revision}: the server ended while the session {writer} \
             wrote it, so later changes are lost"
        )),
        "incomplete" => Some(format!(
            "the volume `{name}` has revision {revision}: the last changes of the session {writer} could \
             not be saved"
        )),
        _ => None,
    }
}

fn check_name(name: &str) -> Result<(), Problem> {
    let plain = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '.' | '_' | '-')
    };
    if (1..=NAME).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.') {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME).collect();
    let message = format!(
        "{shown:?} is not a valid name; use 1 to {NAME} lowercase letters, digits, `.`, `_` and `-`, and \
         do not begin with `.`"
    );
    Err(Problem::invalid("volume", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_short_plain_word_that_does_not_begin_with_a_dot() {
        for name in ["a", "data-2.v_1", "-", "7", &"x".repeat(NAME)] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
        for name in [
            "",
            ".",
            "..",
            ".a",
            "A",
            "a/b",
            "a b",
            "é",
            "a\0",
            "a\n",
            &"x".repeat(NAME + 1),
        ] {
            let problem = check_name(name).unwrap_err();
            assert_eq!(problem.error().param.as_deref(), Some("volume"), "{name:?}");
        }
    }
}
