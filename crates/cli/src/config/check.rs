//! Collects the mistakes of a configuration whose types are right.

use std::time::Duration;

use cellblock_settings::Time;

use super::mistake::Mistake;
use super::node::{Node, Origin, Value};
use super::same_as;

/// The mistakes so far, and the tree that says where they are.
#[derive(Debug)]
pub(super) struct Check<'a> {
    tree: &'a Node,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'a> Check<'a> {
    pub(super) const fn new(tree: &'a Node) -> Self {
        let mistakes = Vec::new();
        Self { tree, mistakes }
    }

    /// The value of a key is wrong.
    pub(super) fn wrong(&mut self, path: &[&str], message: impl Into<String>) {
        let path = same_as(path).filter(|theirs| self.has(theirs)).unwrap_or(path);
        let origin = self.tree.origin_of(path);
        self.mistakes.push(Mistake::of(origin, path, message));
    }

    /// Reports an error of the operation that a key requires.
    pub(super) fn failed(&mut self, path: &[&str], error: &dyn std::error::Error) {
        let mut message = error.to_string();
        if let Some(cause) = error.source() {
            message = format!("{message}: {cause}");
        }
        self.wrong(path, message);
    }

    /// A key should not be there.
    pub(super) fn wrong_key(&mut self, path: &[&str], origin: &Origin, message: &str) {
        self.mistakes.push(Mistake::of(origin, path, message));
    }

    /// Returns the value that was written at a path.
    pub(super) fn part(&self, path: &[&str]) -> Option<&'a Node> {
        self.tree.at(path)
    }

    /// Rejects a time of 0.
    pub(super) fn positive(&mut self, path: &[&str], time: Duration) {
        if time.is_zero() {
            self.wrong(path, "must be greater than 0");
        }
    }

    /// Rejects a time above the one whose key begins with `max_`.
    pub(super) fn below_maximum(&mut self, path: &[&str; 2], time: Duration, most: Duration) {
        if time > most {
            let ([section, key], time, most) = (path, Time(time), Time(most));
            let message = format!(
                "must be at most `{section}.max_{key}` ({most}), not {time}; lower it, or raise that one"
            );
            self.wrong(path, message);
        }
    }

    /// Whether the key was written, with a value.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.tree.at(path).is_some_and(|node| node.value != Value::Null)
    }
}
