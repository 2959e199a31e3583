//! A single pass over a JSON document that checks it and derives its shape, in limited memory.

use std::fmt;
use std::io::Read;

use cellblock_protocol::text::counted;
use cellblock_settings::json::TYPES;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::shape::{Shape, ShapeColumn, ShapeKind};

/// Maximum number of tracked values on all levels together.
const NODES: usize = 1024;
/// Maximum number of tracked keys per level.
const KEYS: usize = 64;
/// Maximum tracked depth; deeper values are only checked.
const DEPTH: u8 = 5;
/// Maximum length of a tracked key in bytes.
const KEY_BYTES: usize = 200;
/// Maximum length of a text sample in characters.
const SAMPLE_CHARS: usize = 64;

/// Checks bytes and returns their shape.
pub(super) fn of_slice(bytes: &[u8]) -> serde_json::Result<Shape> {
    run(serde_json::Deserializer::from_slice(bytes))
}

/// Checks a reader's data and returns its shape.
pub(super) fn of_reader(reader: impl Read) -> serde_json::Result<Shape> {
    run(serde_json::Deserializer::from_reader(reader))
}

fn run<'de, R: serde_json::de::Read<'de>>(
    mut document: serde_json::Deserializer<R>,
) -> serde_json::Result<Shape> {
    let mut top = Node::default();
    let mut room = NODES;
    let follow = NodeReader {
        node: &mut top,
        room: &mut room,
        depth: 0,
    };
    follow.deserialize(&mut document)?;
    document.end()?;
    Ok(top.shape())
}

/// Indexes in [`TYPES`].
const NULL: usize = 0;
const ARRAY: usize = 5;
const OBJECT: usize = 6;

/// Observations at one location in the document.
#[derive(Debug, Default)]
struct Node {
    counts: [u64; TYPES.len()],
    first: Option<Sample>,
    last: Option<Sample>,
    /// Index of the next expected key: rows usually have the same keys in the same order.
    next: usize,
    keys: Vec<(String, Node)>,
    unlisted: u64,
    items: Option<Box<Node>>,
    /// Maximum number of items or keys of one value.
    most: u64,
}

#[derive(Debug, Clone)]
enum Sample {
    Null,
    Bool(bool),
    Integer(i128),
    Number(f64),
    /// A text, and whether it was cut.
    Text(String, bool),
    Array(u64),
    Object(u64),
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => write!(f, "{value:?}"),
            Self::Text(text, cut) => {
                let json = serde_json::to_string(text).map_err(|_| fmt::Error)?;
                f.write_str(&json)?;
                f.write_str(if *cut { "…" } else { "" })
            }
            Self::Array(length) => write!(f, "[{}]", counted(*length, "item")),
            Self::Object(keys) => write!(f, "{{{}}}", counted(*keys, "key")),
        }
    }
}

impl Node {
    fn see(&mut self, kind: usize, sample: Sample) {
        self.counts[kind] += 1;
        if self.first.is_none() {
            self.first = Some(sample.clone());
        }
        self.last = Some(sample);
    }

    /// Stores the last text in the memory of the previous one.
    fn see_text(&mut self, text: &str) {
        let kept = match text.char_indices().nth(SAMPLE_CHARS) {
            Some((end, _)) => &text[..end],
            None => text,
        };
        let cut = kept.len() < text.len();
        self.counts[4] += 1;
        if let Some(Sample::Text(last, was_cut)) = &mut self.last {
            last.clear();
            last.push_str(kept);
            *was_cut = cut;
        } else {
            self.last = Some(Sample::Text(kept.to_owned(), cut));
        }
        if self.first.is_none() {
            self.first.clone_from(&self.last);
        }
    }

    fn seen(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn only(&self, kind: usize) -> bool {
        self.counts[kind] > 0 && self.counts[kind] + self.counts[NULL] == self.seen()
    }

    /// Returns the node that counts a key's values, unless there are too many.
    fn key(&mut self, key: &str, room: &mut usize) -> Option<usize> {
        let expected = self.keys.get(self.next).is_some_and(|(name, _)| name == key);
        let found = if expected {
            Some(self.next)
        } else {
            self.keys.iter().position(|(name, _)| name == key)
        };
        let at = match found {
            Some(at) => at,
            None if self.keys.len() < KEYS && *room > 0 && key.len() <= KEY_BYTES => {
                *room -= 1;
                self.keys.push((key.to_owned(), Self::default()));
                self.keys.len() - 1
            }
            None => return None,
        };
        self.next = at + 1;
        Some(at)
    }

    fn shape(&self) -> Shape {
        let mut shape = Shape {
            kind: ShapeKind::Scalar,
            count: None,
            columns: Vec::new(),
            unlisted: 0,
            sample: None,
        };
        match &self.items {
            Some(items) if self.only(ARRAY) => {
                shape.count = Some(self.most);
                if items.only(OBJECT) {
                    shape.kind = ShapeKind::Table;
                    (shape.columns, shape.unlisted) = items.columns();
                } else {
                    shape.kind = ShapeKind::Array;
                    shape.columns = vec![items.column("", items.seen())];
                }
            }
            _ if self.only(ARRAY) => {
                shape.kind = ShapeKind::Array;
                shape.count = Some(self.most);
            }
            _ if self.only(OBJECT) => {
                shape.kind = ShapeKind::Object;
                shape.count = Some(self.most);
                (shape.columns, shape.unlisted) = self.columns();
            }
            _ => shape.sample = self.first.as_ref().map(ToString::to_string),
        }
        shape
    }

    fn columns(&self) -> (Vec<ShapeColumn>, u64) {
        let rows = self.counts[OBJECT];
        let columns = self.keys.iter().map(|(name, node)| node.column(name, rows));
        (columns.collect(), self.unlisted)
    }

    fn column(&self, name: &str, rows: u64) -> ShapeColumn {
        let types = TYPES.iter().zip(self.counts).skip(1);
        let types = types.filter(|(_, count)| *count > 0);
        let nested = self.only(ARRAY) || self.only(OBJECT);
        ShapeColumn {
            name: name.to_owned(),
            types: types.map(|(name, _)| (*name).to_owned()).collect(),
            nulls: Some(self.counts[NULL]),
            missing: rows.saturating_sub(self.seen()),
            first: self.first.as_ref().map(ToString::to_string),
            last: self.last.as_ref().map(ToString::to_string),
            inner: nested.then(|| Box::new(self.shape())),
        }
    }
}

/// Reads one value into a node.
struct NodeReader<'a> {
    node: &'a mut Node,
    room: &'a mut usize,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for NodeReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.node.see(NULL, Sample::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.node.see(1, Sample::Bool(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.node.see(2, Sample::Integer(value.into()));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.node.see(2, Sample::Integer(value.into()));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.node.see(3, Sample::Number(value));
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.node.see_text(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut length = 0;
        if self.depth < DEPTH && (self.node.items.is_some() || *self.room > 0) {
            let item = self.node.items.get_or_insert_with(|| {
                *self.room -= 1;
                Box::default()
            });
            while items
                .next_element_seed(NodeReader {
                    node: item,
                    room: self.room,
                    depth: self.depth + 1,
                })?
                .is_some()
            {
                length += 1;
            }
            if item.seen() == 0 {
                // Only empty lists so far.
                self.node.items = None;
                *self.room += 1;
            }
        } else {
            while items.next_element::<DepthCheck>()?.is_some() {
                length += 1;
            }
        }
        self.node.most = self.node.most.max(length);
        self.node.see(ARRAY, Sample::Array(length));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut keys = 0;
        self.node.next = 0;
        let follow = self.depth < DEPTH;
        loop {
            let key = Key {
                node: self.node,
                room: self.room,
                follow,
            };
            let Some(at) = entries.next_key_seed(key)? else {
                break;
            };
            keys += 1;
            if let Some(at) = at {
                entries.next_value_seed(NodeReader {
                    node: &mut self.node.keys[at].1,
                    room: self.room,
                    depth: self.depth + 1,
                })?;
            } else {
                self.node.unlisted += 1;
                entries.next_value::<DepthCheck>()?;
            }
        }
        self.node.most = self.node.most.max(keys);
        self.node.see(OBJECT, Sample::Object(keys));
        Ok(())
    }
}

/// Reads a key, and finds its node.
struct Key<'a> {
    node: &'a mut Node,
    room: &'a mut usize,
    follow: bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(if self.follow {
            self.node.key(key, self.room)
        } else {
            None
        })
    }
}

/// Checks a value without tracking it. Unlike `IgnoredAny`, limits the nesting depth.
struct DepthCheck;

impl<'de> Deserialize<'de> for DepthCheck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for DepthCheck {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        while entries.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}
