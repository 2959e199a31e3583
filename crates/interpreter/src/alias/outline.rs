//! A result at increasing lengths, from its alias alone to everything that a model may reread of
//! it.

use cellblock_protocol::text::counted;

use crate::render::plain::{line, lines};

use super::entry::Entry;
use super::shape::{Shape, ShapeColumn, ShapeKind};

/// Maximum number of lines about keys, on all levels together.
const LINES: usize = 200;
/// Maximum number of characters of a key.
const NAME_CHARS: usize = 60;
/// Maximum number of characters of a value.
const VALUE_CHARS: usize = 80;
/// Maximum number of types that are named per key.
const TYPES: usize = 4;

/// The same result at increasing lengths.
#[derive(Debug)]
pub(super) struct Outline {
    alias: String,
    head: String,
    keys: Vec<Key>,
    whole: Option<String>,
    /// The available steps with their lengths in characters; strictly increasing.
    steps: Vec<(DetailLevel, usize)>,
}

#[derive(Debug)]
struct Key {
    brief: String,
    full: String,
}

/// Level of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailLevel {
    /// Only the alias.
    Reference,
    /// Also the kind and size.
    Line,
    /// Also this many keys with their types.
    Shape(usize),
    /// All keys, this many of them with nulls, first and last value.
    Samples(usize),
    /// The whole value.
    Whole,
}

impl Outline {
    pub(super) fn of(entry: &Entry) -> Self {
        let mut outline = Self {
            alias: entry.alias.clone(),
            head: head(entry),
            keys: Vec::new(),
            whole: entry.whole.as_deref().map(lines),
            steps: Vec::new(),
        };
        outline.describe(&entry.shape, "");
        outline.plan();
        outline
    }

    /// Returns the length of each step in characters.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.steps.iter().map(|(_, length)| *length)
    }

    pub(super) fn step(&self, at: usize) -> DetailLevel {
        self.steps[at].0
    }

    pub(super) fn text(&self, at: usize) -> String {
        match self.steps[at].0 {
            DetailLevel::Reference => self.alias.clone(),
            DetailLevel::Line => self.head.clone(),
            DetailLevel::Shape(shown) => self.listing(shown, 0),
            DetailLevel::Samples(full) => self.listing(self.keys.len(), full),
            DetailLevel::Whole => {
                let whole = self.whole.as_deref().unwrap_or_default();
                format!("{}\n  value: {whole}", self.head)
            }
        }
    }

    /// Returns the kind and the keys with their types, in one line without the alias.
    pub(super) fn summary(&self) -> String {
        let head = self.head.strip_prefix(&self.alias).unwrap_or(&self.head);
        let keys = self.keys.iter().map(|key| key.brief.as_str());
        let parts = std::iter::once(head.trim_start_matches([':', ' ']));
        parts.chain(keys).collect::<Vec<_>>().join("; ")
    }

    fn listing(&self, shown: usize, full: usize) -> String {
        let mut text = self.head.clone();
        for (index, key) in self.keys.iter().take(shown).enumerate() {
            text.push_str("\n  ");
            text.push_str(if index < full { &key.full } else { &key.brief });
        }
        text.push_str(&more(self.keys.len() - shown));
        text
    }

    /// Collects the steps. A step that is not shorter than a later one is dropped: the later one
    /// says more.
    fn plan(&mut self) {
        let count = |text: &str| text.chars().count();
        let mut steps = vec![
            (DetailLevel::Reference, count(&self.alias)),
            (DetailLevel::Line, count(&self.head)),
        ];
        let mut length = count(&self.head);
        for (index, key) in self.keys.iter().enumerate() {
            length += count("\n  ") + count(&key.brief);
            let left = count(&more(self.keys.len() - index - 1));
            steps.push((DetailLevel::Shape(index + 1), length + left));
        }
        for (index, key) in self.keys.iter().enumerate() {
            length += count(&key.full) - count(&key.brief);
            steps.push((DetailLevel::Samples(index + 1), length));
        }
        if let Some(whole) = &self.whole {
            steps.push((
                DetailLevel::Whole,
                count(&self.head) + count("\n  value: ") + count(whole),
            ));
        }
        let mut least = usize::MAX;
        for (step, length) in steps.into_iter().rev() {
            if length < least {
                least = length;
                self.steps.push((step, length));
            }
        }
        self.steps.reverse();
    }

    /// Adds a line per key, those of inner values below their own.
    fn describe(&mut self, shape: &Shape, path: &str) {
        if let Some(sample) = &shape.sample {
            let text = format!("value: {}", shown(sample, VALUE_CHARS));
            self.push(text.clone(), text);
        }
        let below = match shape.kind {
            ShapeKind::Table | ShapeKind::Array => format!("{path}[]"),
            ShapeKind::Object | ShapeKind::Scalar => path.to_owned(),
        };
        for column in &shape.columns {
            if self.keys.len() >= LINES {
                return;
            }
            let name = shown(&column.name, NAME_CHARS);
            let place = match (path, column.name.as_str()) {
                (_, "") => below.clone(),
                ("", _) => name,
                _ => format!("{below}.{name}"),
            };
            self.column(column, &place);
            if let Some(inner) = &column.inner {
                self.describe(inner, &place);
            }
        }
        if shape.unlisted > 0 {
            let text = format!("and {} under other keys", counted(shape.unlisted, "value"));
            self.push(text.clone(), text);
        }
    }

    fn column(&mut self, column: &ShapeColumn, place: &str) {
        let types: Vec<_> = column
            .types
            .iter()
            .take(TYPES)
            .map(|name| shown(name, NAME_CHARS))
            .collect();
        let mut brief = format!(
            "{place}: {}",
            if types.is_empty() {
                "null".to_owned()
            } else {
                types.join("|")
            }
        );
        if let Some(Shape {
            count: Some(count),
            kind,
            ..
        }) = column.inner.as_deref()
            && *kind != ShapeKind::Object
        {
            brief = format!("{brief} of up to {count}");
        }
        let mut full = brief.clone();
        if let Some(nulls @ 1..) = column.nulls {
            full = format!("{full}, {nulls} null");
        }
        if column.missing > 0 {
            full = format!("{full}, {} missing", column.missing);
        }
        match (&column.first, &column.last) {
            (Some(first), Some(last)) if first != last => {
                let (first, last) = (shown(first, VALUE_CHARS), shown(last, VALUE_CHARS));
                full = format!("{full}; first {first}, last {last}");
            }
            (Some(first), _) => full = format!("{full}; {}", shown(first, VALUE_CHARS)),
            _ => {}
        }
        self.push(brief, full);
    }

    fn push(&mut self, brief: String, full: String) {
        if self.keys.len() < LINES {
            self.keys.push(Key { brief, full });
        }
    }
}

fn head(entry: &Entry) -> String {
    let shape = &entry.shape;
    let count = shape.count.unwrap_or_default();
    let what = match shape.kind {
        ShapeKind::Table => {
            let more = if shape.unlisted > 0 { "more than " } else { "" };
            let (rows, columns) = (counted(count, "row"), counted(shape.columns.len(), "column"));
            format!("table, {rows} × {more}{columns}")
        }
        ShapeKind::Array => format!("array, {}", counted(count, "item")),
        ShapeKind::Object => format!("object, {}", counted(count, "key")),
        ShapeKind::Scalar => "value".to_owned(),
    };
    format!("{}: {what}, {}", entry.alias, counted(entry.bytes, "byte"))
}

fn more(left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        _ => format!("\n  … {}", counted(left_out, "more line")),
    }
}

/// Formats foreign text on one line, escaped and cut.
fn shown(text: &str, chars: usize) -> String {
    let mut visible = line(text);
    if let Some((end, _)) = visible.char_indices().nth(chars) {
        visible.truncate(end);
        visible.push('…');
    }
    visible
}
