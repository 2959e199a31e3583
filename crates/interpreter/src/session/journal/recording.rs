//! Records of a session's runs, where somebody takes them.
//!
//! A record names the run before it in the same sandbox, and what else has changed the sandbox
//! since its first run: that is what a replay has to repeat, or cannot.

use std::io::Read as _;
use std::time::Instant;

use cellblock_artifact::{ArtifactDescription, Kind};
use cellblock_sandbox::limits::NetworkPolicy;
use cellblock_settings::clock;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use crate::binding::Binding;
use crate::cell::Cell;
use crate::error::Result;
use crate::execution::{Execution, VariablesState};
use crate::handle::mint;
use crate::input::Input;
use crate::run_record::{
    MAX_CODE, RunCall, RunDependency, RunDurations, RunRecord, RunSetup, RunSkill, RunSnippet, RunStream,
    failure, hex, sha256,
};
use crate::session::contents::Contents;
use crate::session::journal::Journal;
use crate::session::journal::recorder::EndedRun;
use crate::session::runtime::Runtime;
use crate::skill::SessionSkill;

/// Maximum size of an input that is put into the artifact store, so that its runs can be replayed.
/// Larger ones are only hashed.
const STORED_INPUT: u64 = 8 << 20;
/// Bytes that are hashed at once.
const PART: usize = 64 << 10;

/// A run that is going to be recorded.
#[derive(Debug)]
pub(in crate::session) struct RunRecording {
    record: RunRecord,
    since: Instant,
}

impl Runtime {
    /// Begins the record of a run, if somebody takes it. Nothing is recorded of code that is only checked.
    pub(in crate::session) fn recording(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        cell: &Cell,
        binding: Option<&Binding>,
    ) -> Option<RunRecording> {
        self.options.runs.as_ref().filter(|_| !cell.dry_run)?;
        journal.chain.begun = None;
        let since = Instant::now();
        let started_ms = clock::signed_unix_millis();
        let timeout = cell.timeout.unwrap_or(self.limits.cell_timeout);
        let report = self.sandbox_report();
        let name = format!("<cell {}>", journal.cells + 1);
        let results = binding.map(|_| RunDependency::ToolResults);
        let record = RunRecord {
            id: mint("run_"),
            session: journal.id.clone(),
            cell: 0,
            started_ms,
            code: (cell.code.len() <= MAX_CODE).then(|| cell.code.clone()),
            code_sha256: sha256(cell.code.as_bytes()),
            call: RunCall {
                name: cell.name.clone().unwrap_or(name),
                line: cell.line,
                language: cell.language,
                argv: cell.argv.clone(),
                mode: cell.mode,
                echo: cell.echo,
                store: cell.store,
                collect_files: cell.collect_files,
                last: cell.last,
                timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
                requirements: cell.requirements.clone(),
            },
            setup: self.recorded_setup(),
            inputs: Vec::new(),
            image: crate::run_record::RunImage {
                name: self.shared.base.manifest().name.clone(),
                digest: report.image,
                python: self.shared.base.manifest().python.clone(),
            },
            layers: Vec::new(),
            backend: report.backend,
            wall: report.wall,
            protections: object(&report.protections),
            limits: object(&self.limits),
            network: report.network.name().to_owned(),
            parent: None,
            parent_checkpoint: self.kept.parent.clone(),
            tried: self.trial.is_some(),
            after_reset: false,
            depends_on: results.into_iter().chain(self.always_there(contents)).collect(),
            replay_of: None,
            fetches: Vec::new(),
            outcome: String::new(),
            state: VariablesState::Kept,
            error: None,
            outputs: Vec::new(),
            stdout: RunStream::default(),
            stderr: RunStream::default(),
            files: Vec::new(),
            durations: RunDurations::default(),
        };
        Some(RunRecording { record, since })
    }

    /// Ends a record before the run's end is reported, and lets it be completed beside that: who
    /// looks for it then waits for it.
    pub(in crate::session) async fn record(
        &mut self,
        contents: &mut Contents,
        journal: &mut Journal,
        recording: Option<RunRecording>,
        result: &Result<Execution>,
    ) {
        let (Some(recording), Some(sink)) = (recording, self.options.runs.clone()) else {
            return;
        };
        let RunRecording { mut record, since } = recording;
        let begun = journal.chain.begun.take();
        let prepared = begun.as_ref().map(|(at, _)| at.saturating_duration_since(since));
        let before = begun.map_or_else(|| journal.chain.now.clone(), |(_, before)| before);
        let lost = before.lost;
        record.parent = before.parent;
        record.after_reset = before.reset;
        record.depends_on.extend(before.depends_on);
        record.depends_on.sort_unstable();
        record.layers = self.layers.iter().map(ToString::to_string).collect();
        let mut inputs: Vec<_> = contents
            .inputs
            .iter()
            .map(|it| {
                (
                    it.name.clone(),
                    it.format,
                    journal.chain.inputs.get(&it.name).cloned(),
                )
            })
            .collect();
        inputs.sort_by(|one, other| one.0.cmp(&other.0));
        // A cell that took its sandbox along is nobody's parent.
        if prepared.is_some() && journal.chain.now.lost == lost {
            journal.chain.now.parent = Some(record.id.clone());
            journal.chain.now.reset = false;
        }
        let run = EndedRun {
            record,
            made: match result {
                Ok(execution) => Ok(Box::new(execution.clone())),
                Err(error) => Err(failure(error)),
            },
            inputs,
            prepared,
            took: since.elapsed(),
            expected: sink.expect(),
            sink,
        };
        journal.recorder.take(run).await;
    }

    /// Computes the hash of an input while it is copied into the sandbox, and stores a small one.
    pub(in crate::session) fn digest(&self, input: &Input) -> JoinHandle<Option<(String, u64)>> {
        let opened = input.open(self.limits.data_bytes);
        let store = self.shared.store.clone();
        tokio::spawn(async move {
            let read = tokio::task::spawn_blocking(move || {
                let mut content = opened.ok()?;
                let (mut hash, mut bytes, mut kept) = (Sha256::new(), 0, Vec::new());
                let mut part = vec![0; PART];
                loop {
                    let length = content.read(&mut part).ok()?;
                    if length == 0 {
                        break;
                    }
                    hash.update(&part[..length]);
                    bytes += length as u64;
                    if bytes <= STORED_INPUT {
                        kept.extend_from_slice(&part[..length]);
                    }
                }
                Some((hex(&hash.finalize()), bytes, kept))
            });
            let (text, bytes, kept) = read.await.ok().flatten()?;
            if bytes <= STORED_INPUT {
                let about = ArtifactDescription {
                    kind: Kind::Dataset,
                    media_type: "application/octet-stream".to_owned(),
                    origin: None,
                };
                if let Err(error) = store.put(kept, &about).await {
                    tracing::warn!(%error, "store an input of a run; it cannot be replayed");
                }
            }
            Some((text, bytes))
        })
    }

    fn recorded_setup(&self) -> RunSetup {
        let snippets = self.options.setup.iter().map(|snippet| RunSnippet {
            name: snippet.name.clone(),
            sha256: sha256(snippet.code.as_bytes()),
            code: snippet.guarded.then(|| snippet.code.clone()),
        });
        RunSetup {
            prelude: self.options.prelude.clone(),
            guard: self.options.guard,
            rescue: self.options.rescue,
            snippets: snippets.collect(),
            skills: self.options.skills.iter().map(recorded_skill).collect(),
        }
    }

    /// Returns the dependencies that every run of the session can use in addition to those in its record.
    fn always_there(&self, contents: &Contents) -> impl Iterator<Item = RunDependency> + use<> {
        let project = self.options.project.is_some() || contents.member.is_some();
        let egress = self.limits.network == NetworkPolicy::Egress;
        [
            (project, RunDependency::Project),
            (contents.volume.is_some(), RunDependency::Volume),
            (egress, RunDependency::Egress),
        ]
        .into_iter()
        .filter_map(|(there, dependency)| there.then_some(dependency))
    }
}

fn recorded_skill(skill: &SessionSkill) -> RunSkill {
    RunSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        version: skill.version.clone(),
        sha256: skill.bundle.sha256,
    }
}

/// Something that is written as a JSON object.
fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
