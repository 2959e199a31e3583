//! The configuration as it was written: a tree that knows where each of its parts comes from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Place in which a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In a file; lines and columns count from 1.
    File {
        path: Arc<PathBuf>,
        line: u64,
        column: u64,
    },
    /// In an environment variable.
    Variable(String),
    /// On the command line.
    Argument(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(formatter, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => formatter.write_str(name),
            Self::Argument(name) => formatter.write_str(name),
        }
    }
}

/// A value, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) origin: Origin,
}

impl Node {
    /// The part at a path of keys, or of the places of a list's items.
    pub(super) fn at(&self, path: &[&str]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        let part = match &self.value {
            Value::Map(entries) => entries
                .iter()
                .find(|(key, _)| key.name == *first)
                .map(|(_, node)| node),
            Value::List(items) => first.parse::<usize>().ok().and_then(|place| items.get(place)),
            _ => None,
        };
        part?.at(rest)
    }

    /// Returns where the part at a path was written, or the nearest part that would contain it.
    pub(super) fn origin_of(&self, path: &[&str]) -> &Origin {
        (0..=path.len())
            .rev()
            .find_map(|length| self.at(&path[..length]))
            .map_or(&self.origin, |node| &node.origin)
    }

    /// Puts a value at a path of keys, over what is there. Keys are taken for those that are there
    /// when they differ only in case, or in `-` and `_`, which environment variables cannot tell
    /// apart.
    pub(super) fn set(&mut self, path: &[String], value: Self) {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        if !matches!(self.value, Value::Map(_)) {
            self.value = Value::Map(Vec::new());
            self.origin = value.origin.clone();
        }
        let Value::Map(entries) = &mut self.value else {
            return;
        };
        let place = entries
            .iter()
            .position(|(key, _)| plain(&key.name) == plain(first));
        let place = place.unwrap_or_else(|| {
            let origin = value.origin.clone();
            let key = Key {
                name: first.clone(),
                origin: origin.clone(),
            };
            entries.push((
                key,
                Self {
                    value: Value::Null,
                    origin,
                },
            ));
            entries.len() - 1
        });
        entries[place].1.set(rest, value);
    }
}

fn plain(key: &str) -> String {
    key.to_lowercase().replace('-', "_")
}
