//! Outputs as a model reads them, within a budget.
//!
//! A token is taken to be four characters. The budget is shared so that small outputs are whole and
//! large ones get equal parts of the rest; what is left out is said where it is left out. Pictures
//! are references and cost nothing here, as each provider counts them its own way.

mod figure;
pub(crate) mod page;
pub(crate) mod plain;
pub mod redraw;
mod share;
mod table;
mod text;

use cellblock_protocol::text::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::{
    Answer, ArtifactRef, Chart, Exception, Image, Output, OutputPage, Primitive, Representation, Rich, Scalar,
};

use self::page::cut;
use self::plain::{line, lines};
use self::redraw::redrawn;

/// Characters that one token stands for.
pub const CHARS_PER_TOKEN: usize = 4;

/// Separator between two outputs.
const BETWEEN: &str = "\n---\n";
/// Text for a picture in a minimal view.
const NO_PICTURE: &str = " (not shown)";
/// The most characters of an output in a minimal view.
const MINIMAL: usize = 300;
/// The fewest characters that an output is worth.
const LEAST: usize = 80;

/// A part of what a model is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture, to be taken from the artifact store.
    Image {
        /// Its name, by which the text before it refers to it.
        name: Option<String>,
        /// Its bytes.
        image: ArtifactRef,
    },
}

/// Detail in which a model is shown an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// As much as there is room for, with pictures.
    #[default]
    Full,
    /// Kind and beginning, without pictures: of a table the shape, the columns and at most 3 rows,
    /// of other outputs at most 300 characters. That is enough for a turn that is over.
    Minimal,
}

/// Shows outputs to a model within so many tokens of text.
pub fn to_model(outputs: &[Output], tokens: usize) -> Vec<Block> {
    detailed(outputs, Detail::Full, tokens)
}

/// Shows outputs to a model in this detail, within so many tokens of text.
pub fn detailed(outputs: &[Output], detail: Detail, tokens: usize) -> Vec<Block> {
    let chars = tokens.saturating_mul(CHARS_PER_TOKEN);
    let (shown, note) = fitting(outputs, chars);
    let spent = note.chars().count() + BETWEEN.len() * shown.len();
    let needs: Vec<usize> = shown
        .iter()
        .map(|output| text_of(output, detail, chars).chars().count())
        .map(|needs| match detail {
            Detail::Full => needs,
            Detail::Minimal => (needs + NO_PICTURE.len()).min(MINIMAL),
        })
        .collect();
    let shares = share::fairly(&needs, chars.saturating_sub(spent));
    let mut blocks = Vec::new();
    for (index, (output, share)) in shown.iter().zip(shares).enumerate() {
        let picture = picture(output);
        let mut text = match detail {
            Detail::Minimal if picture.is_some() => {
                text_of(output, detail, share.saturating_sub(NO_PICTURE.len())) + NO_PICTURE
            }
            Detail::Full | Detail::Minimal => text_of(output, detail, share),
        };
        if index + 1 < shown.len() {
            text.push_str(BETWEEN);
        }
        push(&mut blocks, text);
        blocks.extend(picture.filter(|_| detail == Detail::Full));
    }
    push(&mut blocks, cut(&note, chars));
    blocks
}

/// Shows the text of one output in this detail, within so many tokens.
pub fn text(output: &Output, detail: Detail, tokens: usize) -> String {
    let blocks = detailed(std::slice::from_ref(output), detail, tokens);
    let texts = blocks.into_iter().filter_map(|block| match block {
        Block::Text { text } => Some(text),
        Block::Image { .. } => None,
    });
    texts.collect()
}

/// Shows a page of an output within so many tokens. If not even narrow cells of a table fit, the
/// output is shown as usual.
pub fn page(output: &Output, page: &OutputPage, tokens: usize) -> String {
    let chars = tokens.saturating_mul(CHARS_PER_TOKEN);
    match (output, page) {
        (Output::Dataframe(table), OutputPage::Rows(page)) => table::page_text(table, page, chars),
        (_, OutputPage::Text(page)) => text::page(output.name(), page, chars),
        _ => text_of(output, Detail::Full, chars),
    }
}

/// Shows what was written to a stream within so many tokens, as it stands after its redraws; its
/// end says most.
pub fn stream(written: &str, tokens: usize) -> String {
    text::ends(&lines(&redrawn(written)), tokens.saturating_mul(CHARS_PER_TOKEN))
}

/// Keeps as many outputs as are worth showing: the first ones, and the last one, which may be an exception.
fn fitting(outputs: &[Output], chars: usize) -> (Vec<&Output>, String) {
    let most = chars / (LEAST + BETWEEN.len());
    if outputs.len() <= most {
        return (outputs.iter().collect(), String::new());
    }
    let left_out = outputs.len() - most;
    let note = format!(
        "({left_out} of {} outputs are not shown: show fewer per cell)",
        outputs.len()
    );
    let shown = match (outputs.split_last(), most) {
        (Some((last, rest)), 1..) => rest.iter().take(most - 1).chain([last]).collect(),
        _ => Vec::new(),
    };
    (
        shown,
        if most == 0 {
            note
        } else {
            format!("{BETWEEN}{note}")
        },
    )
}

fn push(blocks: &mut Vec<Block>, more: String) {
    match blocks.last_mut() {
        _ if more.is_empty() => {}
        Some(Block::Text { text }) => text.push_str(&more),
        _ => blocks.push(Block::Text { text: more }),
    }
}

/// Shows one output in at most so many characters.
fn text_of(output: &Output, detail: Detail, chars: usize) -> String {
    let text = match output {
        Output::Dataframe(table) => table::text(table, detail, chars),
        Output::Figure(figure) => figure::text(figure, chars),
        Output::Image(image) => image_text(image),
        Output::Primitive(primitive) => primitive_text(primitive, chars),
        Output::Rich(rich) => rich_text(rich, chars),
        Output::Chart(drawn) => chart_text(drawn, chars),
        Output::Result(answer) => answer_text(answer, chars),
        Output::Exception(exception) => exception_text(exception, chars),
    };
    cut(&text, chars)
}

fn picture(output: &Output) -> Option<Block> {
    let image = match output {
        Output::Figure(figure) => figure.image.as_ref(),
        Output::Image(image) => image.image.as_ref(),
        Output::Chart(chart) => chart.image.as_ref(),
        Output::Rich(rich) => rich
            .bundle
            .iter()
            .map(|form| &form.artifact)
            .find(|artifact| is_picture(artifact)),
        Output::Dataframe(_) | Output::Primitive(_) | Output::Result(_) | Output::Exception(_) => None,
    };
    let image = image.filter(|artifact| is_picture(artifact))?.clone();
    Some(Block::Image {
        name: output.name().map(line),
        image,
    })
}

/// Says whether models can see it; a drawing they can not.
fn is_picture(artifact: &ArtifactRef) -> bool {
    ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&artifact.media_type.as_str())
}

/// `name: `, or nothing.
fn label(name: Option<&str>) -> String {
    name.map(|name| format!("{}: ", line(name))).unwrap_or_default()
}

fn note(note: Option<&str>) -> String {
    note.map(|note| format!("\n({})", line(note))).unwrap_or_default()
}

/// Shows content and a remark of ours after it in at most so many characters. Only the content is
/// cut; a remark for which there is no room is left out.
fn with_remark(content: &str, remark: &str, chars: usize) -> String {
    let length = remark.chars().count();
    let fits = content.chars().count() + length <= chars;
    if fits || length <= chars / 2 {
        cut(content, chars - length) + remark
    } else {
        cut(content, chars)
    }
}

fn chart_text(drawn: &Chart, chars: usize) -> String {
    let kind = drawn.spec.get("type").and_then(Value::as_str).unwrap_or("chart");
    let title = drawn
        .title
        .as_deref()
        .map(|title| format!(" \"{}\"", line(title)));
    let content = format!(
        "chart{}: {}, {}",
        title.unwrap_or_default(),
        line(kind),
        counted(drawn.rows, "row")
    );
    with_remark(&content, &note(drawn.note.as_deref()), chars)
}

fn answer_text(answer: &Answer, chars: usize) -> String {
    const LABEL: &str = "result: ";
    let value = lines(&answer.value.to_string());
    format!(
        "{LABEL}{}",
        text::pages(&value, chars.saturating_sub(LABEL.len()), false)
    )
}

fn image_text(image: &Image) -> String {
    let size = match (image.width, image.height) {
        (Some(width), Some(height)) => format!(", {width}×{height} pixels"),
        _ => String::new(),
    };
    let what = match &image.image {
        Some(artifact) if is_picture(artifact) => "",
        Some(_) => " (a drawing, which is stored but can not be shown here)",
        None => " (left out: it has more bytes than an output may have, or could not be stored)",
    };
    format!(
        "{}image, {}{size}{what}",
        label(image.name.as_deref()),
        image.mime.as_str()
    )
}

fn primitive_text(primitive: &Primitive, chars: usize) -> String {
    let value = match &primitive.value {
        Scalar::Null => "None".to_owned(),
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        Scalar::Integer(value) => value.to_string(),
        Scalar::Float(value) => format!("{value:?}"),
        Scalar::Text(text) => lines(text),
    };
    let (label, note) = (label(primitive.name.as_deref()), note(primitive.note.as_deref()));
    let room = chars.saturating_sub(label.chars().count() + note.chars().count());
    let content = format!("{label}{}", text::pages(&value, room, primitive.truncated));
    with_remark(&content, &note, chars)
}

fn rich_text(rich: &Rich, chars: usize) -> String {
    let label = label(rich.name.as_deref());
    let value = lines(&rich.text);
    let least = label.chars().count() + value.chars().count();
    let forms = stored(&rich.bundle, chars.saturating_sub(least).max(chars / 2));
    let room = chars.saturating_sub(label.chars().count() + forms.chars().count());
    let content = format!("{label}{}", text::pages(&value, room, rich.truncated));
    with_remark(&content, &forms, chars)
}

/// Lists the forms in which a value is stored, or their number if the list has more than so many characters.
fn stored(forms: &[Representation], chars: usize) -> String {
    if forms.is_empty() {
        return String::new();
    }
    let listed: Vec<_> = forms
        .iter()
        .map(|form| format!("{} ({})", line(&form.mime), counted(form.artifact.bytes, "byte")))
        .collect();
    let listed = format!("\n(also stored as {})", listed.join(", "));
    if listed.chars().count() <= chars {
        return listed;
    }
    format!("\n(also stored in {})", counted(forms.len(), "other form"))
}

fn exception_text(exception: &Exception, chars: usize) -> String {
    let mut text = lines(&exception.traceback);
    let summary = match exception.message.as_str() {
        "" => line(&exception.exception),
        message => format!("{}: {}", line(&exception.exception), lines(message)),
    };
    if !text.contains(&summary) {
        text = if text.is_empty() {
            summary
        } else {
            format!("{}\n{summary}", text.trim_end())
        };
    }
    for note in &exception.notes {
        let note = lines(note);
        if !text.contains(&note) {
            text = format!("{text}\n{note}");
        }
    }
    text::ends(text.trim_end(), chars)
}

#[cfg(test)]
mod tests;
