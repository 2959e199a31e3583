//! Checking all artifacts, and restoring damaged ones.

use std::fmt::Write as _;

use cellblock_artifact::Store;
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
            damaged.push((id, error.to_string()));
        }
    }
    if json {
        let damaged = damaged
            .iter()
            .map(|(id, error)| json!({"sha256": id, "error": error}));
        print(&json!({
            "intact": intact,
            "repaired": repaired,
            "damaged": damaged.collect::<Vec<_>>(),
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
        Screen::new().show(&text);
    }
    Ok(if damaged.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Raised
    })
}
