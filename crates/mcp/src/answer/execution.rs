//! An execution as an answer.

use cellblock_artifact::extension;
use cellblock_interpreter::Execution;
use cellblock_interpreter::connector::fetch_log;
use cellblock_interpreter::execution::Outcome;
use cellblock_interpreter::output::{ArtifactRef, Exception, Output, Scalar};
use cellblock_interpreter::render::{self, Block, CHARS_PER_TOKEN, Detail};
use serde_json::{Value, json};

use super::hints;
use super::shape::{CellFailure, Link, RanCell, ShownValue, TableColumn};
use super::{CallAnswer, LINKS};
use crate::sessions::{MadeArtifact, SessionEntry};

/// Maximum number of outputs that are reported as data.
const OUTPUTS: usize = 50;
/// Maximum number of findings, and of skipped files, that are reported.
const FINDINGS: usize = 20;
/// Maximum number of characters in the first line of an answer.
const FIRST_LINE: usize = 300;
/// The fewest tokens that outputs get, however long the rest is.
const LEAST: usize = 200;

/// Tells a model what came of a cell, within so many tokens of text. A cell that raised is an
/// ordinary answer: some clients hide the text of others from the model, which then cannot repair
/// its code.
pub(crate) fn told(entry: &SessionEntry, execution: &Execution, tokens: usize) -> CallAnswer {
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
    let first = ran.error.as_ref().map(|error| first_line(&ran.outcome, error));
    let first = first.unwrap_or_default();
    let spent =
        (first.chars().count() + head.chars().count() + end.chars().count()).div_ceil(CHARS_PER_TOKEN);
    answer.text(first);
    answer.text(head);
    for block in render::to_model(&execution.outputs, tokens.saturating_sub(spent).max(LEAST)) {
        match block {
            // Blocks are apart as they are.
            Block::Text { text } => answer.text(text.trim_end_matches("\n---\n")),
            Block::Image { image, .. } => answer.picture(&image),
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
        answer.incomplete();
    }
    if matches!(execution.outcome, Outcome::KernelLost { .. }) {
        answer.fail();
    }
    answer.structured(&ran);
    answer
}

/// The line that an answer begins with if its code did not complete, such as `ValueError: no rows`:
/// clients that drop the mark of an error show this.
fn first_line(outcome: &str, error: &CellFailure) -> String {
    let message = error.message.lines().next().unwrap_or_default();
    let kind = match outcome {
        "raised" => "",
        "interrupted" => "Interrupted: ",
        "kernel_lost" => "KernelLost: ",
        "limit_exceeded" => "LimitExceeded: ",
        _ => "Rejected: ",
    };
    format!("{kind}{message}").chars().take(FIRST_LINE).collect()
}

/// Returns the text below the outputs.
fn end(ran: &RanCell) -> String {
    let mut lines = Vec::new();
    if !ran.fetch_log.is_empty() {
        lines.push(ran.fetch_log.clone());
    }
    if let Some(error) = &ran.error {
        if let Some(line) = error.line {
            lines.push(format!("[{} in line {line} of the code]", ran.outcome));
        }
        if error.exception.is_none() && error.message.contains('\n') {
            lines.push(error.message.clone());
        }
        lines.push(format!("[what to try] {}", error.hint));
    }
    if let Some(note) = &ran.note {
        lines.push(format!("[note] {note}"));
    }
    if ran.outputs_left_out > 0 {
        lines.push(format!("[outputs left out] {}", ran.outputs_left_out));
    }
    let outputs = ran.outputs.iter().flat_map(|shown| &shown.resources);
    lines.extend(outputs.map(|link| link.line("output")));
    lines.extend(ran.files.iter().map(|link| link.line("file")));
    if ran.files_left_out > 0 {
        lines.push(format!("[files left out] {}", ran.files_left_out));
    }
    for skipped in &ran.skipped_files {
        lines.push(format!("[file left out] {}: {}", skipped.path, skipped.reason));
    }
    for finding in &ran.findings {
        lines.push(format!("[finding {}] {}", finding.code, finding.message));
    }
    let shows = !ran.outputs.is_empty() || !ran.stdout.is_empty() || !ran.stderr.is_empty();
    if ran.outcome == "completed" && !shows && ran.files.is_empty() {
        lines.push("[no output]".to_owned());
    }
    if !ran.origins.is_empty() {
        lines.push(format!("[origins] {}", json!(ran.origins)));
    }
    let (cell, outcome, ms) = (ran.cell, &ran.outcome, ran.duration_ms);
    let variables = json!(ran.variables);
    let variables = variables.as_str().unwrap_or_default();
    lines.push(format!(
        "[cell {cell}] {outcome} in {ms:.0} ms, variables {variables}"
    ));
    lines.push(format!("[session_id] {}", ran.session_id));
    lines.join("\n")
}

fn ran(entry: &SessionEntry, execution: &Execution, tokens: usize) -> RanCell {
    let share = (tokens / 2 / execution.outputs.len().clamp(1, OUTPUTS)).max(20);
    let mut shown: Vec<_> = execution
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
    // The text and the data name the same ones.
    let mut room = tokens * CHARS_PER_TOKEN / 4;
    let mut fits = |link: &Link| {
        let taken = link.line("output").len() + 1;
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    };
    for output in &mut shown {
        output.resources.retain(&mut fits);
    }
    let all_files = files.len();
    files.retain(fits);
    files.truncate(LINKS);
    for fetch in &execution.fetches {
        if let Some(artifact) = &fetch.artifact {
            let name = format!("{}.{}", fetch.connector, fetch.function);
            entry.remember(made("table", Some(&name), artifact));
        }
    }
    let left_out = execution.outputs.len() - shown.len();
    RanCell {
        session_id: entry.id.clone(),
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
