//! An execution as an answer.

use cellblock_artifact::{Store, extension};
use cellblock_interpreter::Execution;
use cellblock_interpreter::connector::fetch_log;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::{ArtifactRef, Exception, Output, Scalar};
use cellblock_interpreter::render::{self, Block, CHARS_PER_TOKEN, Detail};
use serde_json::Value;

use super::hints;
use super::shape::{CellFailure, Link, RanCell, ShownValue, TableColumn};
use super::{CallAnswer, LINKS};
use crate::sessions::{MadeArtifact, SessionEntry};

/// Maximum number of outputs that are reported as data.
const OUTPUTS: usize = 50;
/// Maximum number of findings, and of skipped files, that are reported.
const FINDINGS: usize = 20;
/// The fewest tokens that outputs get, however long the rest is.
const LEAST: usize = 200;

/// Tells a model what came of a cell, within so many tokens of text.
pub(crate) async fn told(
    entry: &SessionEntry,
    store: &Store,
    execution: &Execution,
    tokens: usize,
) -> CallAnswer {
    let mut answer = CallAnswer::default();
    let ran = ran(entry, execution, tokens);
    // Its last line is the session's handle, which stays.
    let end = render::stream(&end(&ran), tokens / 2);
    let (stdout, stderr) = (&execution.stdout.text, &execution.stderr.text);
    let mut head = String::new();
    if !stdout.is_empty() {
        head.push_str(&render::stream(stdout, tokens / 4));
    }
    if !stderr.is_empty() {
        if !head.is_empty() && !head.ends_with('\n') {
            head.push('\n');
        }
        head.push_str("[stderr]\n");
        head.push_str(&render::stream(stderr, tokens / 8));
    }
    let spent = (head.chars().count() + end.chars().count()).div_ceil(CHARS_PER_TOKEN);
    answer.text(head);
    for block in render::to_model(&execution.outputs, tokens.saturating_sub(spent).max(LEAST)) {
        match block {
            // Blocks are apart as they are.
            Block::Text { text } => answer.text(text.trim_end_matches("\n---\n")),
            Block::Image { image, .. } => answer.picture(store, &image).await,
        }
    }
    answer.text(end);
    for link in ran
        .outputs
        .iter()
        .flat_map(|shown| &shown.resources)
        .chain(&ran.files)
    {
        answer.link(link);
    }
    if execution.outcome != Outcome::Completed {
        answer.fail();
    }
    answer.structured(&ran);
    answer
}

/// What stands below the outputs.
fn end(ran: &RanCell) -> String {
    let mut lines = Vec::new();
    if !ran.fetch_log.is_empty() {
        lines.push(ran.fetch_log.clone());
    }
    if let Some(error) = &ran.error {
        if error.exception.is_none() {
            let line = error
                .line
                .map(|line| format!(" (line {line})"))
                .unwrap_or_default();
            lines.push(format!("[{}] {}{line}", ran.outcome, error.message));
        } else if let Some(line) = error.line {
            lines.push(format!("[raised in line {line} of the code]"));
        }
        lines.push(format!("[what to try] {}", error.hint));
    }
    if let Some(note) = &ran.note {
        lines.push(format!("[note] {note}"));
    }
    if !ran.files.is_empty() {
        let files = ran
            .files
            .iter()
            .map(|it| format!("{} ({} bytes)", it.name, it.bytes.unwrap_or(0)));
        let mut files: Vec<_> = files.collect();
        if ran.files_left_out > 0 {
            files.push(format!("{} more", ran.files_left_out));
        }
        lines.push(format!("[files] {}", files.join(", ")));
    }
    for skipped in &ran.skipped_files {
        lines.push(format!("[file left out] {}: {}", skipped.path, skipped.reason));
    }
    for finding in &ran.findings {
        lines.push(format!("[finding {}] {}", finding.code, finding.message));
    }
    if ran.outcome == "completed" && ran.outputs.is_empty() && ran.stdout.is_empty() && ran.stderr.is_empty()
    {
        lines.push("[no output]".to_owned());
    }
    lines.push(format!("[session] {}", ran.session));
    lines.join("\n")
}

fn ran(entry: &SessionEntry, execution: &Execution, tokens: usize) -> RanCell {
    let share = (tokens / 2 / execution.outputs.len().clamp(1, OUTPUTS)).max(20);
    let shown: Vec<_> = execution
        .outputs
        .iter()
        .take(OUTPUTS)
        .map(|output| shown(entry, output, share))
        .collect();
    let mut files = Vec::new();
    for file in &execution.files {
        let Ok(id) = file.sha256.parse() else { continue };
        let made = MadeArtifact {
            id,
            name: file.name.clone(),
            media_type: crate::uri::media_type(&file.name).to_owned(),
            bytes: file.bytes,
        };
        files.push(Link::from(&made));
        entry.remember(made);
    }
    let all_files = files.len();
    files.truncate(LINKS);
    for fetch in &execution.fetches {
        if let Some(artifact) = &fetch.artifact {
            let name = format!("{}.{}", fetch.connector, fetch.function);
            entry.remember(made("table", Some(&name), artifact));
        }
    }
    let left_out = execution.outputs.len() - shown.len();
    RanCell {
        session: entry.id.clone(),
        cell: execution.cell,
        outcome: execution.outcome.name().to_owned(),
        variables: execution.state,
        duration_ms: execution.duration.as_secs_f64() * 1000.0,
        stdout: render::stream(&execution.stdout.text, tokens / 4),
        stderr: render::stream(&execution.stderr.text, tokens / 8),
        outputs: shown,
        outputs_left_out: left_out as u64 + u64::from(execution.outputs_dropped),
        files_left_out: (all_files - files.len()) as u64,
        files,
        skipped_files: execution.skipped_files.iter().take(FINDINGS).cloned().collect(),
        findings: execution.findings.iter().take(FINDINGS).cloned().collect(),
        fetch_log: fetch_log(&execution.fetches, execution.fetches_dropped, tokens / 8),
        error: failure(execution, tokens),
        origins: execution.origins.clone(),
        note: execution.note.clone(),
    }
}

fn failure(execution: &Execution, tokens: usize) -> Option<CellFailure> {
    let raised = execution.outputs.last().and_then(|last| match last {
        Output::Exception(raised) => Some(raised),
        _ => None,
    });
    let raised = raised.filter(|_| execution.outcome == Outcome::Raised);
    let (message, rejections, limit) = match &execution.outcome {
        Outcome::Completed => return None,
        Outcome::Raised => (message_of(raised, tokens), Vec::new(), None),
        Outcome::Interrupted => (
            "its time was over, or it was interrupted".to_owned(),
            Vec::new(),
            None,
        ),
        Outcome::KernelLost { reason } => (reason.clone(), Vec::new(), None),
        Outcome::LimitExceeded(exceeded) => {
            let message = format!(
                "it ran into the limit of {}: {} (limit), {} (used or asked for)",
                exceeded.which.describe(),
                exceeded.limit,
                exceeded.actual
            );
            (message, Vec::new(), Some(exceeded.clone()))
        }
        Outcome::Rejected { rejections } => {
            let messages: Vec<_> = rejections.iter().map(|it| it.message.as_str()).collect();
            (messages.join("; "), rejections.clone(), None)
        }
    };
    let line = raised.and_then(|it| it.line);
    Some(CellFailure {
        exception: raised.map(|it| it.exception.clone()),
        message,
        line: line.or_else(|| rejections.first().and_then(|it| it.line)),
        hint: hints::after(execution, raised),
        rejections,
        limit,
    })
}

fn message_of(raised: Option<&Exception>, tokens: usize) -> String {
    match raised {
        Some(raised) => render::stream(&format!("{}: {}", raised.exception, raised.message), tokens / 8),
        None => "the code raised an exception".to_owned(),
    }
}

pub(super) fn shown(entry: &SessionEntry, output: &Output, tokens: usize) -> ShownValue {
    let (rows, columns) = match output {
        Output::Dataframe(table) => {
            let columns = table.columns.iter().take(OUTPUTS).map(|column| TableColumn {
                name: column.name.clone(),
                dtype: column.dtype.clone(),
            });
            (Some(table.rows), columns.collect())
        }
        Output::Chart(chart) => (Some(chart.rows), Vec::new()),
        _ => (None, Vec::new()),
    };
    let name = output.name().map(str::to_owned);
    let resources = output.artifacts().into_iter().map(|artifact| {
        let made = made(kind(output), name.as_deref(), artifact);
        let link = Link::from(&made);
        entry.remember(made);
        link
    });
    ShownValue {
        kind: kind(output).to_owned(),
        text: render::text(output, Detail::Full, tokens),
        rows,
        columns,
        value: value(output, tokens),
        resources: resources.collect(),
        name,
    }
}

fn kind(output: &Output) -> &'static str {
    match output {
        Output::Dataframe(_) => "dataframe",
        Output::Figure(_) => "figure",
        Output::Image(_) => "image",
        Output::Primitive(_) => "primitive",
        Output::Rich(_) => "rich",
        Output::Chart(_) => "chart",
        Output::Result(_) => "result",
        Output::Exception(_) => "exception",
    }
}

/// Returns a value that is small enough to be reported as a whole.
fn value(output: &Output, tokens: usize) -> Value {
    let value = match output {
        Output::Primitive(primitive) => match &primitive.value {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => (*value).into(),
            Scalar::Integer(value) => (*value).into(),
            Scalar::Float(value) => (*value).into(),
            Scalar::Text(text) => text.as_str().into(),
        },
        Output::Result(answer) => answer.value.clone(),
        _ => Value::Null,
    };
    if value.to_string().len() > tokens * CHARS_PER_TOKEN {
        return Value::Null;
    }
    value
}

/// An artifact under a file's name.
pub(super) fn made(kind: &str, name: Option<&str>, artifact: &ArtifactRef) -> MadeArtifact {
    let stem: String = name
        .unwrap_or(kind)
        .chars()
        .take(80)
        .map(|c| {
            if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') {
                c
            } else {
                '_'
            }
        })
        .collect();
    MadeArtifact {
        id: artifact.sha256,
        name: format!("{stem}.{}", extension(&artifact.media_type)),
        media_type: artifact.media_type.clone(),
        bytes: artifact.bytes,
    }
}
