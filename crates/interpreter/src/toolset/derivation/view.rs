//! Text that a model reads of a call.

use std::fmt::Write;

use cellblock_artifact::ArtifactEnvelope;
use cellblock_protocol::text::counted;

use super::derived::DerivationResult;
use crate::render::{self, Block, CHARS_PER_TOKEN};

/// Maximum number of findings that are reported one by one.
const FINDINGS: usize = 10;
/// The least that outputs get, in tokens.
const LEAST: usize = 100;

impl DerivationResult {
    /// All that a model has to know, within about so many tokens: outputs and streams are cut,
    /// mistakes and what was emitted are not.
    pub fn for_model(&self, tokens: usize) -> String {
        let mut text = String::new();
        let status = if self.ok() { "ok" } else { self.outcome.name() };
        let _ = write!(text, "status: {status}");
        if let Some(error) = self.error() {
            let _ = write!(text, "\n{}", error.message);
        }
        if let Some(alias) = &self.output_alias {
            let _ = write!(text, "\nresult alias: {alias}");
        }
        for artifact in &self.artifacts {
            let _ = write!(text, "\n{}", emitted(artifact));
        }
        for finding in self.findings.iter().take(FINDINGS) {
            let _ = write!(text, "\nfinding {}: {}", finding.code, finding.message);
        }
        if self.findings.len() > FINDINGS {
            let _ = write!(
                text,
                "\n({})",
                counted(self.findings.len() - FINDINGS, "more finding")
            );
        }
        let left = tokens.saturating_sub(text.chars().count() / CHARS_PER_TOKEN);
        self.ran(&mut text, left.max(LEAST));
        text
    }

    fn ran(&self, text: &mut String, tokens: usize) {
        let Some(execution) = &self.execution else { return };
        if let (true, Some(note)) = (self.error().is_none(), &execution.note) {
            let _ = write!(text, "\nnote: {note}");
        }
        for block in render::to_model(&execution.outputs, tokens) {
            match block {
                Block::Text { text: shown } if !shown.trim().is_empty() => {
                    let _ = write!(text, "\n{}", shown.trim_end());
                }
                Block::Text { .. } | Block::Image { .. } => {}
            }
        }
        for (name, stream) in [("stdout", &execution.stdout), ("stderr", &execution.stderr)] {
            if !stream.text.is_empty() {
                let shown = render::stream(&stream.text, tokens / 2);
                let _ = write!(text, "\n{name}:\n{}", shown.trim_end());
            }
        }
    }
}

fn emitted(artifact: &ArtifactEnvelope) -> String {
    let (title, alt) = match artifact {
        ArtifactEnvelope::Image(it) => (&it.title, &it.alt),
        ArtifactEnvelope::Chart(it) => (&it.title, &it.alt),
    };
    let note = match artifact {
        ArtifactEnvelope::Image(_) => None,
        ArtifactEnvelope::Chart(it) => it.note.as_ref(),
    };
    let note = note.map(|note| format!("; {note}")).unwrap_or_default();
    let name = title.as_ref().or(alt.as_ref()).map_or("", String::as_str);
    format!("emitted {}: {name} ({}){note}", artifact.kind(), artifact.id())
}
