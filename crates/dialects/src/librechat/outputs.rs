//! Outputs of a run: files in a storage session of the caller, and words.

use cellblock_interpreter::Output;
use cellblock_interpreter::execution::{Execution, Outcome};
use cellblock_interpreter::output::ArtifactRef;
use cellblock_interpreter::render::redraw::redrawn;
use cellblock_interpreter::render::{Detail, text};
use chrono::Utc;
use serde_json::{Map, Value, json};

use super::names;
use super::run::{FileStamps, Input, RunJob, WORKSPACE};
use super::storage::StoredFile;

/// Tokens of a value's text.
const TOKENS: usize = 8000;

/// The outputs of a run, as the fields of its answer.
#[derive(Debug)]
pub(super) struct Outputs<'a> {
    job: &'a RunJob<'a>,
    pub(super) answer: Map<String, Value>,
}

impl<'a> Outputs<'a> {
    pub(super) fn new(job: &'a RunJob<'a>) -> Self {
        Self {
            job,
            answer: Map::new(),
        }
    }

    /// Stores new and changed files, and tells which inputs are as they were, changed or gone.
    pub(super) fn collect(&mut self, execution: &Execution, before: &FileStamps, after: &FileStamps) {
        let session = names::id();
        let mut stored = Vec::new();
        let mut shown = Vec::new();
        let mut echoed = Vec::new();
        for (name, sha256, bytes) in made(execution) {
            let Ok(artifact) = sha256.parse() else { continue };
            let input = self.input(&name);
            if let Some(input) = input.filter(|it| it.file.artifact == artifact) {
                echoed.push(input.name.clone());
                shown.push(inherited(input));
                continue;
            }
            let file = StoredFile {
                id: names::id(),
                name,
                artifact,
                bytes,
                modified: Utc::now(),
            };
            let mut entry = json!({
                "id": file.id,
                "name": file.name,
                "storage_session_id": session,
                "path": format!("/mnt/data/{}", file.name),
                "kind": "user",
                "size": bytes,
            });
            if let Some(input) = input {
                entry["modified_from"] = json!({"id": input.file.id, "storage_session_id": input.session});
            }
            self.job.room.held.kept.place(&file.name, &file.id);
            shown.push(entry);
            stored.push(file);
        }
        let unchanged = self.job.inputs.iter().filter(|it| {
            let here = after.get(&it.name);
            here.is_some() && here == before.get(&it.name) && !echoed.contains(&it.name)
        });
        shown.extend(unchanged.map(inherited));
        let deleted: Vec<_> = before.keys().filter(|it| !after.contains_key(*it)).collect();
        let failed = execution.skipped_files.len();
        let attempted = stored.len() + failed;
        self.set("session_id", json!(session));
        self.set("files", json!(shown));
        if !deleted.is_empty() {
            self.set("deleted_files", json!(deleted));
        }
        let (owner, reader) = (self.job.caller.owner.name(), self.job.caller.own());
        let delivered = stored.len();
        let kept = if stored.is_empty() {
            Ok(())
        } else {
            self.job.state.storage.add(owner, &session, &reader, stored)
        };
        if let Err(problem) = &kept {
            tracing::info!(owner, reason = problem.text(), "files of a run are not stored");
            let input_only = |it: &Value| it["inherited"] == true;
            shown.retain(input_only);
            self.set("files", json!(shown));
        }
        let delivered = if kept.is_ok() { delivered } else { 0 };
        if attempted > delivered {
            let status = if delivered == 0 { "failed" } else { "partial" };
            self.set(
                "artifact_delivery",
                json!({
                    "code": "artifact_delivery_failed",
                    "status": status,
                    "attempted": attempted,
                    "delivered": delivered,
                    "failed": attempted - delivered,
                }),
            );
        }
    }

    fn input(&self, name: &str) -> Option<&'a Input> {
        self.job.inputs.iter().find(|it| it.name == name)
    }

    fn set(&mut self, name: &str, value: Value) {
        self.answer.insert(name.to_owned(), value);
    }
}

/// The files that a run has made in its working directory, and pictures that it has shown: name,
/// hash and size.
fn made(execution: &Execution) -> Vec<(String, String, u64)> {
    let below = format!("{WORKSPACE}/");
    let files = execution.files.iter().filter(|it| it.path.starts_with(&below));
    let mut made: Vec<_> = files
        .map(|it| (it.name.clone(), it.sha256.clone(), it.bytes))
        .collect();
    let pictures = execution.outputs.iter().filter_map(picture);
    for (number, picture) in (1..).zip(pictures) {
        let extension = picture.media_type.rsplit('/').next().unwrap_or("png");
        let extension = extension.split('+').next().unwrap_or(extension);
        let name = format!("figure-{number}.{extension}");
        if made.iter().all(|(other, ..)| *other != name) {
            made.push((name, picture.sha256.to_string(), picture.bytes));
        }
    }
    made
}

fn picture(output: &Output) -> Option<&ArtifactRef> {
    match output {
        Output::Figure(figure) => figure.image.as_ref(),
        Output::Image(image) => image.image.as_ref(),
        Output::Chart(chart) => chart.image.as_ref(),
        _ => None,
    }
}

/// Returns what a run printed, followed by the tables and other rich values that it displayed: this
/// protocol has no place for values, and a program that ends with a table should show it. Numbers
/// and texts are left out: code prints those that it wants to show, and a program that ends with
/// `file.write(…)` would show a count.
pub(super) fn printed(execution: &Execution) -> String {
    let mut printed = redrawn(&execution.stdout.text).into_owned();
    let values = execution.outputs.iter().filter(|it| picture(it).is_none());
    for value in values.filter(|it| !matches!(it, Output::Exception(_) | Output::Primitive(_))) {
        if !printed.is_empty() && !printed.ends_with('\n') {
            printed.push('\n');
        }
        printed.push_str(text(value, Detail::Full, TOKENS).trim_end());
        printed.push('\n');
    }
    printed
}

/// An input that is as it was.
fn inherited(input: &Input) -> Value {
    let mut entry = json!({
        "id": input.file.id,
        "name": input.name,
        "storage_session_id": input.session,
        "path": format!("/mnt/data/{}", input.name),
        "inherited": true,
    });
    let resource = input.given.resource();
    for (name, value) in [
        ("kind", resource.kind),
        ("resource_id", resource.id),
        ("version", resource.version),
    ] {
        if let Some(value) = value {
            entry[name] = match value.parse::<i64>() {
                Ok(number) if name == "version" => json!(number),
                _ => json!(value),
            };
        }
    }
    entry
}

/// Returns what a run wrote to stderr with the reason that it failed, and a message for its user.
pub(super) fn words(execution: &Execution) -> (String, Option<String>) {
    let mut stderr = redrawn(&execution.stderr.text).into_owned();
    let mut add = |text: &str| {
        if !stderr.is_empty() && !stderr.ends_with('\n') {
            stderr.push('\n');
        }
        stderr.push_str(text.trim_end());
        stderr.push('\n');
    };
    for output in &execution.outputs {
        if let Output::Exception(exception) = output {
            add(&exception.traceback);
        }
    }
    let note = execution.note.clone().unwrap_or_default();
    let message = match &execution.outcome {
        Outcome::Completed | Outcome::Raised => None,
        Outcome::Interrupted => Some(format!("the run was stopped; {note}")),
        Outcome::KernelLost { reason } => Some(reason.clone()),
        Outcome::LimitExceeded(it) => Some(format!(
            "the limit for the {} was exceeded: {}; {note}",
            it.which.describe(),
            it.limit
        )),
        Outcome::Rejected { rejections } => {
            let reasons: Vec<_> = rejections.iter().map(|it| it.message.as_str()).collect();
            Some(reasons.join("\n"))
        }
    };
    if let Some(message) = &message {
        add(message);
    }
    (stderr, message)
}

/// A short name of how a run ended, which is null if it came to its end.
pub(super) fn status(execution: &Execution) -> Option<&'static str> {
    match execution.outcome {
        Outcome::Completed => None,
        Outcome::Raised => Some("RE"),
        Outcome::Interrupted => Some("TO"),
        Outcome::LimitExceeded(_) => Some("OL"),
        Outcome::KernelLost { .. } => Some("SG"),
        Outcome::Rejected { .. } => Some("XX"),
    }
}
