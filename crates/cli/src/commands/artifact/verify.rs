//! Checking all artifacts, and restoring damaged ones.

use std::fmt::Write as _;

use cellblock_artifact::{ArtifactError, Store};
use serde_json::json;

use crate::artifact_store::failed;
use crate::env_vars::REMOTE_STORE;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::render::Screen;
use crate::render::json::print;

/// Checks the bytes of each artifact. With `repair`, restores those that are missing or damaged.
pub(super) async fn verify(store: &Store, repair: bool, json: bool) -> Result<ExitCode> {
    if repair && !store.has_remote() {
        return Err(Error::Refused(format!(
            "`--repair` needs another store to restore from; name it in {}, such as `s3://bucket/prefix`",
            REMOTE_STORE.name
        )));
    }
    let (mut intact, mut repaired, mut damaged) = (0_u64, Vec::new(), Vec::new());
    let listed = if repair {
        store.list_all().await
    } else {
        store.list().await
    };
    for id in listed.map_err(failed("list artifacts"))? {
        let Err(error) = store.check(id).await else {
            intact += 1;
            continue;
        };
        if repair && store.verify(id).await.is_ok() {
            repaired.push(id);
        } else {
            damaged.push((id, problem(&error)));
        }
    }
    let advice = (!damaged.is_empty()).then(|| advise(store.has_remote(), repair));
    if json {
        let damaged = damaged
            .iter()
            .map(|(id, error)| json!({"sha256": id, "error": error}));
        print(&json!({
            "intact": intact,
            "repaired": repaired,
            "damaged": damaged.collect::<Vec<_>>(),
            "advice": advice,
        }));
    } else {
        let mut text = String::new();
        for (_, error) in &damaged {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{error}");
        }
        let _ = write!(
            text,
            "{intact} intact, {} repaired, {} damaged",
            repaired.len(),
            damaged.len()
        );
        if let Some(advice) = advice {
            let _ = write!(text, "\n{advice}");
        }
        Screen::new().show(&text);
    }
    Ok(if damaged.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Raised
    })
}

/// Returns what is wrong with an artifact, without advice for all stores.
fn problem(error: &ArtifactError) -> String {
    match error {
        ArtifactError::Damaged { id, actual } => {
            format!("artifact {id} is damaged: its bytes hash to {actual}")
        }
        ArtifactError::NotFound { id } => format!("artifact {id} is missing"),
        ArtifactError::Metadata { id, .. } => format!("could not read the metadata of artifact {id}"),
        error => error.to_string(),
    }
}

/// Returns what heals damaged artifacts of a store.
fn advise(has_remote: bool, repaired: bool) -> String {
    let remote = REMOTE_STORE.name;
    match (has_remote, repaired) {
        (true, false) => {
            format!(
                "run `cellblock artifact verify --repair` to restore them from the store that {remote} names"
            )
        }
        (true, true) => format!(
            "the store that {remote} names does not have them intact either; remove them, and run again \
             what made them"
        ),
        (false, _) => format!(
            "if another store has them, name it in {remote} and run `cellblock artifact verify --repair`; \
             else remove them, and run again what made them"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_repair_where_another_store_may_heal() {
        assert!(advise(true, false).starts_with("run `cellblock artifact verify --repair`"));
        assert!(advise(false, false).contains("CELLBLOCK_REMOTE_STORE"));
        assert!(!advise(true, true).contains("--repair"));
    }
}
