//! What derives: a session with its sandbox, seen from a turn.

use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde_json::Value;

use crate::contract::{ArtifactKind, DerivationCall};
use crate::error::Result;
use crate::rejection::Rejection;

/// Runs derivation calls. It makes its sandbox at the first one, and counts the attempts.
pub trait Deriver: Send {
    /// Runs one call. A call that was rejected or whose code failed is `Ok`; `Err` is a failure of the host's own.
    fn derive(&mut self, call: DerivationCall) -> impl Future<Output = Result<Derived>> + Send;

    /// Counts a call whose arguments could not be read as a failed attempt. Starts nothing.
    fn refuse(&mut self, rejections: Vec<Rejection>) -> Derived;

    /// Draws a chart from one alias, without Python: the arguments of the `render_chart` tool. Starts nothing.
    fn render_chart(&mut self, arguments: &Value) -> impl Future<Output = Result<Derived>> + Send;

    /// Disposes of the sandbox, if there is one.
    fn close(&mut self) -> impl Future<Output = ()> + Send;

    /// Disposes of it without waiting: called instead of `close`, or when `close` did not come to its end.
    fn abandon(&mut self);
}

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derived {
    /// Whether it ran to its end and kept its contract.
    pub ok: bool,
    /// What was wrong with it.
    pub rejections: Vec<Rejection>,
    /// Why it is not ok, in a line: what was wrong, or the exception.
    pub failure: Option<String>,
    /// Attempts that are left after it.
    pub attempts_left: u32,
    /// What it emitted; only what is part of the answer, so nothing unless `ok`.
    pub artifacts: Vec<Emitted>,
    /// The alias under which its result is kept.
    pub alias: Option<String>,
    /// What the model reads: outputs, mistakes, attempts left.
    pub text: String,
}

/// An artifact that belongs to the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Emitted {
    /// What it is.
    pub kind: ArtifactKind,
    /// The sha256 of its bytes, under which it is stored.
    pub sha256: String,
}

/// Holds a deriver, and disposes of it on every path: waiting where there is time, without waiting on a panic or a cancellation.
#[derive(Debug)]
pub(super) struct Held<D: Deriver> {
    deriver: D,
    closed: bool,
}

impl<D: Deriver> Held<D> {
    pub(super) const fn new(deriver: D) -> Self {
        Self {
            deriver,
            closed: false,
        }
    }

    pub(super) async fn close(mut self) {
        self.deriver.close().await;
        self.closed = true;
    }
}

impl<D: Deriver> Drop for Held<D> {
    fn drop(&mut self) {
        if !self.closed {
            self.deriver.abandon();
        }
    }
}

impl<D: Deriver> Deref for Held<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.deriver
    }
}

impl<D: Deriver> DerefMut for Held<D> {
    fn deref_mut(&mut self) -> &mut D {
        &mut self.deriver
    }
}
