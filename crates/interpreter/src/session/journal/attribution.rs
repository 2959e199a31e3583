//! Origins of what a cell made: which session and cell, and which stored tables it was made from.

use std::collections::BTreeSet;

use cellblock_artifact::{ArtifactId, Origin};
use futures_util::{StreamExt as _, stream};

use crate::connector::FetchRecord;
use crate::execution::ProducedFile;
use crate::output::Output;
use crate::session::journal::Journal;
use crate::session::runtime::Runtime;

/// Maximum number of origins that are written at the same time.
const AT_ONCE: usize = 8;

/// Things that a cell made.
#[derive(Debug)]
pub(in crate::session) struct CellProducts<'a> {
    pub(in crate::session) outputs: &'a [Output],
    pub(in crate::session) files: &'a [ProducedFile],
    pub(in crate::session) fetches: &'a [FetchRecord],
}

impl Journal {
    /// Returns the note for the model, in addition to the outcome.
    pub(in crate::session) fn note(
        &mut self,
        before: Vec<String>,
        of_outcome: Option<String>,
    ) -> Option<String> {
        let notes: Vec<_> = before
            .into_iter()
            .chain(self.unreported.drain(..))
            .chain(of_outcome)
            .collect();
        (!notes.is_empty()).then(|| notes.join(". "))
    }
}

impl Runtime {
    /// Adds the origins of a cell's artifacts. A failure is logged: it must not cost the cell its result.
    pub(in crate::session) async fn attribute(
        &self,
        journal: &Journal,
        cell: u64,
        made: &CellProducts<'_>,
        inputs: &BTreeSet<ArtifactId>,
    ) {
        let origin = |name: Option<String>, inputs: Vec<ArtifactId>| Origin {
            session: journal.id.clone(),
            cell: Some(cell),
            name,
            inputs,
        };
        let behind = |name: Option<&str>| {
            let variable = name.and_then(|name| journal.lineage.origins().get(name));
            let inputs = variable.map_or(inputs, |variable| &variable.artifacts);
            inputs.iter().copied().collect()
        };
        let outputs = made.outputs.iter().flat_map(|output| {
            let origin = origin(output.name().map(str::to_owned), behind(output.name()));
            let artifacts = output.artifacts().into_iter();
            artifacts.map(move |artifact| (artifact.sha256, origin.clone()))
        });
        let files = made.files.iter().filter_map(|file| {
            let id = file.sha256.parse().ok()?;
            Some((id, origin(Some(file.name.clone()), behind(None))))
        });
        let fetches = made.fetches.iter().filter_map(|fetch| {
            // A cached answer has the origin of its first call.
            let id = fetch.artifact_id().filter(|_| !fetch.cached)?;
            Some((id, origin(fetch.reference(), Vec::new())))
        });
        let all: Vec<_> = outputs.chain(files).chain(fetches).collect();
        let mut written = stream::iter(all)
            .map(async |(id, origin)| self.shared.store.add_origin(id, &origin).await)
            .buffer_unordered(AT_ONCE);
        while let Some(written) = written.next().await {
            if let Err(error) = written {
                tracing::warn!(%error, "could not write the origin of an artifact");
            }
        }
    }
}
