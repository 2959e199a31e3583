//! Whether two runs made the same.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::RunRecord;
use crate::execution::ProducedFile;

/// Something that two runs made differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunDifference {
    /// `outcome`, `error`, `stdout`, `stderr`, `output N` (from 1) or `file NAME`.
    pub what: String,
    /// Value or hash in the recorded run; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// Value or hash in the replay; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<String>,
}

/// Returns what two runs made differently, by their hashes; nothing if they made the same.
pub fn differences(recorded: &RunRecord, replayed: &RunRecord) -> Vec<RunDifference> {
    let mut found = DifferenceList(Vec::new());
    found.compare("outcome", Some(&recorded.outcome), Some(&replayed.outcome));
    let kind = |record: &RunRecord| record.error.as_ref().map(|error| error.kind.clone());
    found.compare("error", kind(recorded).as_ref(), kind(replayed).as_ref());
    for (what, one, other) in [
        ("stdout", &recorded.stdout, &replayed.stdout),
        ("stderr", &recorded.stderr, &replayed.stderr),
    ] {
        found.compare(what, Some(&one.sha256), Some(&other.sha256));
    }
    for index in 0..recorded.outputs.len().max(replayed.outputs.len()) {
        let hash = |record: &'_ RunRecord| record.outputs.get(index).map(|output| output.sha256.clone());
        let what = format!("output {}", index + 1);
        found.compare(&what, hash(recorded).as_ref(), hash(replayed).as_ref());
    }
    let (before, after) = (by_name(&recorded.files), by_name(&replayed.files));
    for (name, hash) in &before {
        found.compare(&format!("file {name}"), Some(hash), after.get(name));
    }
    for (name, hash) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        found.compare(&format!("file {name}"), None, Some(hash));
    }
    found.0
}

fn by_name(files: &[ProducedFile]) -> BTreeMap<String, String> {
    let pair = |file: &ProducedFile| (file.name.clone(), file.sha256.clone());
    files.iter().map(pair).collect()
}

struct DifferenceList(Vec<RunDifference>);

impl DifferenceList {
    fn compare(&mut self, what: &str, recorded: Option<&String>, replayed: Option<&String>) {
        if recorded != replayed {
            self.0.push(RunDifference {
                what: what.to_owned(),
                recorded: recorded.cloned(),
                replayed: replayed.cloned(),
            });
        }
    }
}
